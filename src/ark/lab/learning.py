"""Source ports learned on the running lab, for agents that are not told the switches' hash seeds.

Every sending host probes its peers by ``ark discover``, as an operator would, and its agent gets the file.
The fabric file of all agents has other seeds than the kernels, so that a port can only be right by learning.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from ark.errors import LabError
from ark.fabric import Fabric, Switch
from ark.lab.lab import Lab
from ark.lab.orders import PORT

LEARN_S: Final = 120.0
"""How long all hosts together may probe."""

PER_PATH: Final = 6
"""Ports learned for each path: more than transfers that ever run at once between two hosts over one path."""


def learn(lab: Lab, targets: Mapping[str, Sequence[str]]) -> None:
    """Have these hosts learn the ports to their targets, and their agents use them from their next start on.

    Raises
    ------
    LabError
        If a host learns nothing; with what ``ark discover`` said.
    """
    made = lab.made
    lab.agents.write_fabric(with_other_seeds(made.fabric))
    names = lab.directory / "names.csv"
    rows = [f"{address},{switch}" for address, switch in made.addresses.items()]
    names.write_text("\n".join(["address,switch", *rows]) + "\n", "ascii")
    for switch in made.fabric.switches:  # Linux tells one sender once a second, unless told otherwise
        made.write_sysctl(switch.name, ipv4__icmp_ratelimit=0, ipv6__icmp__ratelimit=0)
    probing = {host: _probe(lab, host, its) for host, its in targets.items()}
    try:
        for host, process in probing.items():
            _, said = process.communicate(timeout=LEARN_S)
            if process.returncode:
                raise LabError(f"{host} learned nothing: {said.decode(errors='replace').strip()}")
    except subprocess.TimeoutExpired:
        raise LabError(f"hosts were not done with probing in {LEARN_S:.0f} s") from None
    finally:
        for process in probing.values():
            process.kill()
            process.communicate()


def with_other_seeds(fabric: Fabric) -> Fabric:
    """The fabric with seeds that none of its switches has."""
    return fabric.changed(switches=[_other_seed(switch) for switch in fabric.switches])


def _other_seed(switch: Switch) -> Switch:
    seed = switch.node_id if switch.hash.seed is None else switch.hash.seed
    return replace(switch, hash=msgspec.structs.replace(switch.hash, seed=(seed ^ 0x5A5A_5A5A) or 1))


def _probe(lab: Lab, host: str, targets: Sequence[str]) -> "subprocess.Popen[bytes]":
    directory = lab.directory
    flags = {
        "--from": host,
        "--fabric": directory / "fabric.toml",
        "--names": directory / "names.csv",
        "--proto": "tcp",
        "--dport": PORT,
        "--per-path": PER_PATH,
        "--out": lab.agents.paths(host),
    }
    words = [str(word) for pair in flags.items() for word in pair]
    with lab.made.inside(host):
        return subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", "ark.cli.main", "discover", *targets, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
