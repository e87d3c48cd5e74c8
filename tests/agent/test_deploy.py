"""What lies in ``deploy/`` names only what exists."""

import json
import re
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from tests.agent.agents import write_cluster
from tests.agent.cohort import Cohort

from ark.agent import load_config
from ark.agent.metrics import AgentCollector

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def test_the_dashboard_asks_for_metrics_that_the_agent_has(four: Cohort) -> None:
    registry = CollectorRegistry()
    registry.register(AgentCollector(four["h0"]))
    exported = set(re.findall(r"^# TYPE (\w+)", generate_latest(registry).decode(), re.MULTILINE))
    exported |= {f"{name}_{part}" for name in exported for part in ("bucket", "sum", "count")}
    board = json.loads((DEPLOY / "grafana" / "ark.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\bark_\w+", target["expr"])
    }
    assert len(asked) > 20
    assert asked <= exported


def test_a_scrape_takes_nothing_from_the_next(four: Cohort) -> None:
    registry = CollectorRegistry()
    registry.register(AgentCollector(four["h0"]))
    four.call(lambda: four["h0"].controller.replica.lags.add(3_000_000))
    for _ in range(2):
        lines = generate_latest(registry).decode().splitlines()
        assert 'ark_control_lag_seconds_bucket{le="0.002"} 0.0' in lines
        assert 'ark_control_lag_seconds_bucket{le="0.005"} 1.0' in lines
        assert "ark_control_lag_seconds_count 1.0" in lines


def test_the_charts_configuration_is_one(tmp_path: Path) -> None:
    """The chart's default values, put into its template as Helm does."""
    write_cluster(tmp_path)
    values = (DEPLOY / "helm" / "ark-agent" / "values.yaml").read_text()
    blocks = {
        name: re.sub(r"^  ", "", body, flags=re.MULTILINE)
        for name, body in re.findall(r"^(fabric|config): \|\n((?:  .*\n|\n)+)", values, re.MULTILINE)
    }
    (tmp_path / "fabric.toml").write_text(blocks["fabric"])
    template = (DEPLOY / "helm" / "ark-agent" / "templates" / "configmap.yaml").read_text()
    agent = template.partition("agent.toml: |\n")[2]
    text = re.sub(r"^    ", "", agent, flags=re.MULTILINE)
    text = text.replace("{{ .Values.config | indent 4 }}", blocks["config"])
    text = text.replace("/run/ark-key/cluster.key", "cluster.key")
    (tmp_path / "agent.toml").write_text(f'host = "h0"\n{text}')
    assert load_config(tmp_path / "agent.toml").dry_run
