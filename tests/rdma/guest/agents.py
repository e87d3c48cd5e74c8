"""Two real agents, ``ark agent``, with the source ports that the leaves' own answers teach."""

import os
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.rdma.guest.network import HOSTS, SPINES, Host, leaf_answers, spine_names

from ark.client import Client
from ark.discover.learned import LearnedMap, learned_map, write_learned
from ark.discover.numbering import FabricNumbering
from ark.discover.probe import Flow
from ark.discover.route_get import read_answers
from ark.errors import AgentUnavailable
from ark.fabric import Fabric, load_fabric
from ark.fabric.roce import DPORT

PORTS: Final = range(50_000, 50_256)
"""Ports that are asked about: some 64 a spine, and the agents keep 16."""

START_TIMEOUT_S: Final = 120.0
ANSWER_TIMEOUT_S: Final = 10.0
"""Emulated, an agent is a hundred times slower than it should be; the usual 20 ms would mean "no agent"."""

FABRIC: Final = f"""\
kind = "leaf-spine"
leaves = 2
spines = {SPINES}
hosts_per_leaf = 1
rate = "100 Mbit/s"
""" + "".join(f'[[host]]\nname = "{host.name}"\naddresses = ["{host.address}"]\n' for host in HOSTS)

CONFIG: Final = """\
host = "{name}"
fabric = "fabric.toml"
key_file = "cluster.key"
state = "{name}.epoch"
paths = "{name}.paths.json"
[peers]
{peer} = "127.0.0.1:{peer_port}"
[control]
bind = "127.0.0.1:{port}"
lease = "10s"
heartbeat = "1s"
[policy]
name = "ark"
moves = true
[api]
socket = "{name}.sock"
"""


class Agents:
    """Both agents, started; ``stop`` ends them, ``close`` their clients."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        self._clients: dict[str, Client] = {}
        folder.mkdir()
        (folder / "fabric.toml").write_text(FABRIC)
        keys = folder / "cluster.key"
        keys.touch(0o600)
        keys.write_text(f"1 {secrets.token_hex(32)}\n")
        fabric = load_fabric(FABRIC, "fabric.toml")
        for host, other in (HOSTS, HOSTS[::-1]):
            (folder / f"{host.name}.paths.json").write_text(
                write_learned([learned(fabric, host, other)], "fabric")
            )
            config = folder / f"{host.name}.toml"
            config.write_text(
                CONFIG.format(
                    name=host.name, peer=other.name, port=7471 + host.number, peer_port=7471 + other.number
                )
            )
            with (folder / f"{host.name}.log").open("wb") as log:
                self._running.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "ark.cli.main", "agent", "--config", str(config)],
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        env=os.environ,
                    )
                )

    def client(self, host: Host) -> Client:
        """What an application on a host uses."""
        if host.name not in self._clients:
            socket = self.folder / f"{host.name}.sock"
            self._clients[host.name] = Client(socket, timeout_s=ANSWER_TIMEOUT_S)
        return self._clients[host.name]

    def wait(self) -> None:
        """Until each has heard the other."""
        deadline = time.monotonic() + START_TIMEOUT_S
        for host, running in zip(HOSTS, self._running, strict=True):
            while not self._has_heard(host):
                if time.monotonic() > deadline or running.poll() is not None:
                    log = (self.folder / f"{host.name}.log").read_text()
                    raise RuntimeError(f"the agent of {host.name} has heard nobody: {log[-2000:]}")
                time.sleep(0.5)

    def close(self) -> None:
        """End the applications' connections."""
        for client in self._clients.values():
            client.close()

    def stop(self) -> None:
        """End both."""
        for one in self._running:
            one.terminate()
        for one in self._running:
            one.wait(30)

    def _has_heard(self, host: Host) -> bool:
        try:
            said = self.client(host).status()
        except AgentUnavailable:
            return False
        return said.get("peers_heard") == 1


def learned(fabric: Fabric, source: Host, target: Host) -> LearnedMap:
    """Which ports lead where, as the source's leaf says; before Linux 6.11 nobody can know its seed."""
    flow = Flow(source.address, target.address, 17, 0, DPORT)
    printed = leaf_answers(source, target, DPORT, PORTS)
    finding = read_answers(printed, flow, PORTS, switch=source.leaf, names=spine_names(source))
    return learned_map(
        finding,
        source=source.name,
        target=target.name,
        numbering=FabricNumbering(fabric),
        method="route-get",
    )
