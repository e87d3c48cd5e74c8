"""Source ports learned on the running lab, for agents that are not told the switches' hash seeds.

Every sending host probes its peers by ``ark discover``, as an operator would, and its agent gets the file.
The fabric file of all agents has other seeds than the kernels, so that a port can only be right by learning.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

import msgspec

from ark.errors import LabError
from ark.fabric import Fabric, Switch
from ark.lab.lab import Lab
from ark.lab.orders import PORT

LEARN_S: Final = 120.0
"""How long all hosts together may probe."""

PER_PATH: Final = 6
"""Ports learned for each path: more than transfers that ever run at once between two hosts over one path."""

WATCH_INTERVAL: Final = "1s"
"""One probe a pair: a host with eight peers looks every 125 ms."""

START_S: Final = 60.0
POLL_S: Final = 0.05


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


@contextmanager
def watching(lab: Lab, hosts: Sequence[str]) -> Iterator[None]:
    """Have what these hosts learned watched by ``ark discover watch``; their agents follow the files.

    Raises
    ------
    LabError
        If a watch does not start, or ends by itself; with the last that it said.
    """
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for host in hosts:
            with _log(lab, host).open("wb") as log:
                running[host] = _ark(
                    lab, host, ["watch", lab.agents.paths(host)], log, {"--interval": WATCH_INTERVAL}
                )
        end_s = time.monotonic() + START_S
        while not all("watching" in _said(lab, host) for host in hosts):
            _refuse_ended(lab, running)
            if time.monotonic() > end_s:
                raise LabError(f"after {START_S:.0f} s not all watches have begun")
            time.sleep(POLL_S)
        yield
        _refuse_ended(lab, running)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def with_other_seeds(fabric: Fabric) -> Fabric:
    """The fabric with seeds that none of its switches has."""
    return fabric.changed(switches=[_other_seed(switch) for switch in fabric.switches])


def _other_seed(switch: Switch) -> Switch:
    seed = switch.node_id if switch.hash.seed is None else switch.hash.seed
    return replace(switch, hash=msgspec.structs.replace(switch.hash, seed=(seed ^ 0x5A5A_5A5A) or 1))


def _probe(lab: Lab, host: str, targets: Sequence[str]) -> "subprocess.Popen[bytes]":
    wanted = {"--proto": "tcp", "--dport": PORT, "--per-path": PER_PATH, "--out": lab.agents.paths(host)}
    return _ark(lab, host, targets, subprocess.PIPE, {"--from": host, **wanted})


def _ark(
    lab: Lab, host: str, words: Sequence[object], log: "IO[bytes] | int", flags: Mapping[str, object]
) -> "subprocess.Popen[bytes]":
    """``ark discover`` in the namespace of a host, with the lab's files; what it says goes to ``log``."""
    files = {"--fabric": lab.directory / "fabric.toml", "--names": lab.directory / "names.csv"}
    more = [str(word) for pair in (files | dict(flags)).items() for word in pair]
    with lab.made.inside(host):
        return subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", "ark.cli.main", "discover", *map(str, words), *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if log == subprocess.PIPE else log,
            stderr=log,
            start_new_session=True,
        )


def _log(lab: Lab, host: str) -> Path:
    return lab.directory / f"{host}-watch.log"


def _said(lab: Lab, host: str) -> str:
    return _log(lab, host).read_text("utf-8", errors="replace")


def _refuse_ended(lab: Lab, running: "Mapping[str, subprocess.Popen[bytes]]") -> None:
    for host, process in running.items():
        if process.poll() is not None:
            said = _said(lab, host).strip() or "it said nothing"
            raise LabError(f"the watch of {host} has ended: {said.splitlines()[-1]}")
