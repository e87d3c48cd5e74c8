import csv
import json
from pathlib import Path
from typing import get_args

import pytest

from ark.cli.main import run
from ark.cli.packets import CcPreset, cost, models_of
from ark.errors import ConfigError
from ark.sim.experiment import Experiment
from ark.sim.packet.settings import PRESETS
from ark.sim.traffic import PresetWorkload


def test_all_presets_can_be_named() -> None:
    assert get_args(CcPreset) == PRESETS


def test_both_engines_have_packets_of_one_size() -> None:
    settings, model = models_of("packet", None, "conweave")
    assert settings.payload_bytes == model.payload_bytes == 1000
    assert model.goodput_share == pytest.approx(1000 / 1048)
    settings, model = models_of("packet", 4096, None)
    assert (settings.preset, settings.payload_bytes, model.payload_bytes) == ("simai", 4096, 4096)
    assert models_of("flow", None, None)[1].payload_bytes == 9000


def test_the_flow_level_has_no_preset() -> None:
    with pytest.raises(ConfigError, match="--cc-preset: the flow level knows no packets"):
        models_of("flow", None, "nvidia")


def test_what_it_costs_is_said_and_what_makes_it_less() -> None:
    full = Experiment(
        engine="packet", workload=PresetWorkload(requests=1000), schemes=("ecmp",), seeds=(0, 1)
    )
    small = Experiment(engine="packet", workload=PresetWorkload(requests=10), scale=100)
    assert cost(small).endswith("data packets in 5 runs, about 0 s of CPU time.")
    assert "data packets in 2 runs, about 7 minutes of CPU time." in cost(full)
    many = Experiment(engine="packet", seeds=tuple(range(10)))
    assert cost(many).endswith(
        "--scale 50 divides sizes and times by 50, --seeds, --schemes and --qps leave runs out."
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cc-preset", "nvidia"], "ark: --cc-preset: the flow level knows no packets; add --engine packet"),
        (["--engine", "packet", "--cc-preset", "simay"], 'ark: invalid value "simay" for --cc-preset.'),
        (["--engine", "packet", "--cc-preset", "simay"], 'Did you mean "simai"?'),
        (
            ["--engine", "packet", "--payload", "63"],
            "ark: --payload: 63 B is out of bounds; allowed are 64 to 65536",
        ),
        (["--engine", "packet", "--scale", "0"], "ark: --scale: 0 is not allowed"),
    ],
)
@pytest.mark.parametrize("command", [["reproduce"], ["simulate", "--trace", "paper"]])
def test_bad_input_is_named_in_one_clear_line(
    command: list[str], arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "--out", str(tmp_path / "out"), *arguments]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert len(shown.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_reproduce_sets_packet_level_flow_level_and_paper_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--engine", "packet", "--qps", "25", "--requests", "30", "--seeds", "1", "--scale", "500"]
    assert run(["reproduce", *small, "--schemes", "ecmp,ark-paper", "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with (tmp_path / "results.csv").open() as file:
        rows = [(row["scheme"], row["engine"]) for row in csv.DictReader(file)]
    assert rows == [(row["scheme"], row["engine"]) for row in told["results"]]
    assert rows == [("ecmp", "packet"), ("ark-paper", "packet"), ("ecmp", "flow"), ("ark-paper", "flow")]
    ecmp, theirs = told["engines"]["rows"]
    assert theirs["mean_paper"] == 0.273
    assert ecmp["fct_mean_packet_s"] == told["results"][0]["fct_mean_s"]
    assert ecmp["fct_mean_flow_s"] == told["results"][2]["fct_mean_s"]
    assert abs(ecmp["longer_share"]) < 0.1
    packet = json.loads((tmp_path / "config.json").read_text())["experiment"]["packet"]
    assert (packet["preset"], packet["payload_bytes"], packet["dcqcn"]["cut_interval_ns"]) == (
        "simai",
        9000,
        4000,
    )
    page = (tmp_path / "report.html").read_text()
    assert "Packet level and flow level" in page
    assert "divided by 500" in page
    assert "--engine packet --payload 9000 --cc-preset simai --scale 500" in page


@pytest.mark.slow
def test_simulate_runs_a_flow_table_packet_by_packet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flows, out = tmp_path / "flows.csv", tmp_path / "out"
    flows.write_text("id,src,dst,size_bytes,start_ns\na,h0,h8,900000,0\nb,h1,h9,900000,0\n")
    asked = [
        "simulate",
        "--flows",
        str(flows),
        "--engine",
        "packet",
        "--cc-preset",
        "dcqcn-paper",
        "--scale",
        "2",
    ]
    assert run([*asked, "--schemes", "ecmp,ark", "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["config"]["experiment"]["packet"]["preset"] == "dcqcn-paper"
    assert [row["mean_paper"] for row in told["engines"]["rows"]] == [None, None]
    with (out / "flows" / "ark_own-times_seed0.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["size_bytes"] for row in rows] == ["450000", "450000"]
    assert {"ecn_marks", "retransmits"} <= rows[0].keys()
