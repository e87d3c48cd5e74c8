"""``ark agent``: run this host's agent, or check its configuration."""

import asyncio
from pathlib import Path
from typing import Annotated, Final

import cyclopts
from cyclopts import Parameter

from ark.agent.addresses import format_address
from ark.agent.config import AgentConfig, load_config
from ark.agent.run import serve
from ark.cli.output import note, print_json
from ark.control.wire import host_id
from ark.errors import ConfigError
from ark.units import format_rate, format_time

app: Final = cyclopts.App(name="agent")


@app.default
def agent(
    *,
    config: Annotated[Path, Parameter(help="Configuration file (TOML).")] = Path("/etc/ark/agent.toml"),
    check_config: Annotated[bool, Parameter(help="Check the configuration and exit.", negative=())] = False,
    json: Annotated[
        bool, Parameter(help="Print one JSON object (with --check-config).", negative=())
    ] = False,
) -> None:
    """Run this host's agent: reserve paths for its transfers, and keep in touch with its peers.

    SIGHUP reads the configuration again, SIGTERM ends it; transfers go on either way.
    """
    try:
        found = load_config(config)
    except ConfigError as error:
        if json:
            print_json({"ok": False, "faults": [str(fault) for fault in error.faults]})
        raise
    if not check_config:
        asyncio.run(serve(found))
    elif json:
        print_json({"ok": True, "warnings": found.warnings, **_facts(found)})
    else:
        print(f"{config}: ok")
        for name, value in _facts(found).items():
            print(f"  {name:<12}{value}")
        for warning in found.warnings:
            note(f"warning: {warning}")


def _facts(found: AgentConfig) -> dict[str, object]:
    policy = found.policy
    return {
        "host": found.host.name,
        "fabric": f"{found.fabric.name} ({found.fabric.digest().hex()})",
        "id": f"{host_id(found.host.name):016x}",
        "address": " ".join(found.nats.servers) if found.transport == "nats" else format_address(found.bind),
        "transport": found.transport,
        "peers": len(found.peers),
        "line_rate": format_rate(policy.line_rate_bps),
        "policy": policy.name,
        "hold": format_time(policy.hold_ns / 1e9),
        "lease": format_time(found.lease_ns / 1e9),
        "socket": str(found.socket),
        "metrics": "off" if found.metrics is None else format_address(found.metrics),
    }
