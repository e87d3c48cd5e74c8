"""The agents of a lab: ``ark agent``, as it is, one process in the namespace of each host."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from ark.agent.addresses import PORT
from ark.client import Client
from ark.errors import AgentUnavailable, LabError
from ark.fabric import Fabric
from ark.fabric.write import to_toml
from ark.lab.clos import Clos
from ark.lab.management import Management

START_S: Final = 90.0
"""How long all agents together may take to start and to hear of each other, on a busy machine."""

POLL_S: Final = 0.05
STOP_S: Final = 10.0

PolicyName = Literal["ark", "paper"]


class Agents:
    """The agents of all hosts; those that are not started are simply not there."""

    def __init__(self, made: Clos, management: Management, directory: Path) -> None:
        self._made = made
        self._management = management
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._clients: dict[str, Client] = {}
        self._began = 0.0
        self.hosts = tuple(host.name for host in made.fabric.hosts)
        self.write_fabric(made.fabric)
        keys = directory / "keys"
        keys.touch(mode=0o600)
        keys.write_text(f"1 {secrets.token_hex(32)}\n", "ascii")

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes that run."""
        return [process.pid for process in self._running.values() if process.poll() is None]

    @property
    def running(self) -> list[str]:
        """The hosts whose agent runs."""
        return [host for host, process in self._running.items() if process.poll() is None]

    def socket(self, host: str) -> Path:
        """The Unix socket of a host's agent."""
        return self._directory / f"{host}.sock"

    def configuration(self, host: str) -> Path:
        """The configuration file of a host's agent."""
        return self._directory / f"{host}.toml"

    def paths(self, host: str) -> Path:
        """Where a host's learned ports are, if it has learned any."""
        return self._directory / f"{host}-paths.json"

    def write_fabric(self, fabric: Fabric) -> None:
        """What agents are told of the fabric from their next start on."""
        (self._directory / "fabric.toml").write_text(to_toml(fabric), "utf-8")

    def log(self, host: str) -> Path:
        """What a host's agent writes to standard error."""
        return self._directory / f"{host}.log"

    def start(self, policy: PolicyName, hosts: Iterable[str] | None = None) -> None:
        """Configure all agents with one policy, and start those of ``hosts``; ``wait`` says when they are
        ready."""
        self._began = time.monotonic()
        for host in self.hosts:
            self.configuration(host).write_text(self._configuration(host, policy), "utf-8")
        for host in self.hosts if hosts is None else hosts:
            self._start(host)

    def restart(self, host: str) -> None:
        """Start the agent of a host, as it was configured."""
        self._began = time.monotonic()
        self._start(host)

    def kill(self, host: str) -> None:
        """End the agent of a host without warning, as a crash would."""
        process = self._running.pop(host)
        process.kill()
        process.wait()

    def wait(self, peers: int | None = None) -> None:
        """Return once every agent that runs hears ``peers`` others (by default all that run).

        Raises
        ------
        LabError
            If one ends, or they take too long; with the last line of its log.
        """
        wanted = len(self._running) - 1 if peers is None else peers
        waiting = dict(self._running)
        while waiting:
            for host, process in list(waiting.items()):
                if process.poll() is not None:
                    raise LabError(f"the agent of {host} has ended: {self._last_words(host)}")
                if self._hears(host) >= wanted:
                    del waiting[host]
            if waiting and time.monotonic() > self._began + START_S:
                names = ", ".join(waiting)
                raise LabError(f"after {START_S:.0f} s these agents are not ready: {names}")
            if waiting:
                time.sleep(POLL_S)

    def status(self, host: str, question: str = "summary") -> dict[str, object]:
        """A table of what a host's agent knows.

        Raises
        ------
        AgentUnavailable
            If it does not answer.
        """
        if host not in self._clients:
            self._clients[host] = Client(self.socket(host))
        return self._clients[host].status(question)

    def stop(self) -> None:
        """End all agents, and wait for it."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        for process in self._running.values():
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        for process in self._running.values():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()

    def _start(self, host: str) -> None:
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with self.log(host).open("ab") as log, self._made.inside(host):
            self._running[host] = subprocess.Popen(  # noqa: S603 - our own module, no shell
                [sys.executable, "-m", "ark.cli.main", "agent", "--config", str(self.configuration(host))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C is for the lab, which then ends them in order
            )

    def _hears(self, host: str) -> int:
        if not self.socket(host).exists():
            return -1
        try:
            heard = self.status(host)["peers_heard"]
        except AgentUnavailable:
            return -1
        assert isinstance(heard, int)
        return heard

    def _last_words(self, host: str) -> str:
        lines = self.log(host).read_text("utf-8", errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"

    def _configuration(self, host: str, policy: PolicyName) -> str:
        """Sizes are not judged: the lab steers every transfer, as the simulators do."""
        addresses, learned = self._management.addresses, self.paths(host)
        peers = [
            f"{json.dumps(name)} = {json.dumps(f'{address}:{PORT}')}"
            for name, address in addresses.items()
            if name != host
        ]
        lines = [
            f"host = {json.dumps(host)}",
            'fabric = "fabric.toml"',
            'key_file = "keys"',
            f"state = {json.dumps(f'{host}.epoch')}",
            *([f"paths = {json.dumps(learned.name)}"] if learned.exists() else []),
            "[control]",
            f"bind = {json.dumps(f'{addresses[host]}:{PORT}')}",
            "[policy]",
            f"name = {json.dumps(policy)}",
            'min_bytes = "0 B"',
            "[api]",
            f"socket = {json.dumps(self.socket(host).name)}",
            "[log]",
            'level = "warning"',
            "[peers]",
            *peers,
        ]
        return "\n".join(lines) + "\n"
