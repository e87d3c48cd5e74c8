"""The agent as a process: signals, reload, systemd, metrics, and its sudden death."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.agent.agents import SECRET, write_cluster, write_config
from tests.agent.cohort import PATIENCE_S

from ark.client import Client
from ark.errors import AgentUnavailable

pytestmark = pytest.mark.slow

GB = 10**9


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def free_ports(count: int, kind: socket.SocketKind) -> list[int]:
    """Ports that are free now; nobody else on a test machine takes them so soon."""
    sockets = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Processes:
    """Agents of three hosts, each a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_cluster(folder)
        ports = free_ports(3, socket.SOCK_DGRAM)
        self.metrics_port = free_ports(1, socket.SOCK_STREAM)[0]
        self.peers = {f"h{index}": f"127.0.0.1:{port}" for index, port in enumerate(ports)}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.clients: list[Client] = []
        for name in self.peers:
            self.write(name)
            self.start(name)

    def write(self, name: str, more: str = "") -> None:
        metrics = f'[metrics]\nlisten = "127.0.0.1:{self.metrics_port}"\n' if name == "h0" else ""
        control = f'[control]\nbind = "{self.peers[name]}"\nheartbeat = "50ms"\nlease = "1s"\n'
        policy = '[policy]\nhold = "0"\nmin_bytes = "1 MB"\n'
        write_config(self.folder, name, peers=self.peers, more=f"{more}\n{control}{policy}{metrics}")

    def start(self, name: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ark.cli.main", "agent", "--config", f"{self.folder}/{name}.toml"]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(command, stderr=log, env=os.environ | environment)
        self.running[name] = process
        return process

    def client(self, name: str) -> Client:
        client = Client(self.folder / f"{name}.sock", timeout_s=PATIENCE_S)
        self.clients.append(client)
        until(lambda: self.status(client).get("host") == name)
        return client

    def status(self, client: Client, table: str = "summary") -> dict[str, object]:
        try:
            return client.status(table)
        except AgentUnavailable:
            return {}

    def log(self, name: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.folder / f"{name}.log").read_text().splitlines()]

    def events(self, name: str) -> list[object]:
        return [line["event"] for line in self.log(name)]

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for process in self.running.values():
            process.kill()
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    made = Processes(tmp_path_factory.mktemp("processes"))
    try:
        clients = [made.client(name) for name in made.peers]
        until(lambda: all(made.status(client).get("peers_heard") == 2 for client in clients))
        yield made
    finally:
        made.close()


def test_kill_9_in_mid_transfer_leaves_the_transfer_on_its_path(three: Processes) -> None:
    mine, other = three.client("h0"), three.client("h1")
    with mine.transfer("h2", 100 * GB, dport=4791) as transfer:
        assert transfer.path is not None
        until(lambda: three.status(other)["reservations"] == 1)
        epoch = three.status(mine)["epoch"]
        three.running["h0"].kill()
        three.running["h0"].wait(PATIENCE_S)
        until(lambda: three.status(other)["reservations"] == 0)
        three.start("h0")
        until(lambda: three.status(mine).get("transfers") == 1)
        until(lambda: three.status(other)["reservations"] == 1)
        rows = three.status(other, "reservations")["results"]
        assert [row["paths"] for row in rows] == [[transfer.path]]  # type: ignore[attr-defined]
        assert three.status(mine)["epoch"] > epoch  # type: ignore[operator]
        assert transfer.move(50 * GB) is False
    until(lambda: three.status(other)["reservations"] == 0)


def test_a_client_that_is_killed_holds_nothing_any_more(three: Processes) -> None:
    code = (
        "import ark, sys\n"
        "held = [ark.transfer('h2', 10**11, dport=4791) for _ in range(20)]\n"
        "print(sum(one.path is not None for one in held), flush=True)\n"
        "sys.stdin.read()\n"
    )
    environment = os.environ | {"ARK_SOCKET": str(three.folder / "h1.sock")}
    client = three.client("h1")
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        held = int(process.stdout.readline())  # on a busy machine an answer may come too late for some
        until(lambda: three.status(client)["transfers"] == held)
        process.kill()
    until(lambda: three.status(client)["transfers"] == 0)


def test_reload_changes_what_can_be_changed_and_names_the_rest(three: Processes) -> None:
    client = three.client("h1")
    keys = three.folder / "cluster.key"
    keys.write_text(f"1 {SECRET}\n2 {SECRET[::-1]}\n")
    three.write("h1", 'dry_run = true\nrecord = "flows.csv"')
    three.running["h1"].send_signal(signal.SIGHUP)
    until(lambda: "needs a restart to change" in three.events("h1"))
    lines = {line["event"]: line for line in three.log("h1")}
    assert lines["reloaded"]["changed"] == ["dry_run", "keys"]
    assert lines["needs a restart to change"]["keys"] == ["record"]
    with client.transfer("h2", GB, dport=4791) as transfer:
        assert (transfer.path, transfer.reason) == (None, "dry run")
        assert three.status(client)["reservations"] == 1
    three.write("h1", "dry_run = 7")
    three.running["h1"].send_signal(signal.SIGHUP)
    until(lambda: "not reloaded" in three.events("h1"))
    assert three.status(client)["dry_run"] is True
    keys.write_text(f"1 {SECRET}\n")
    three.write("h1")
    three.running["h1"].send_signal(signal.SIGHUP)
    until(lambda: three.status(client)["dry_run"] is False)
    assert three.status(client)["peers_heard"] == 2


def test_metrics_are_served(three: Processes) -> None:
    url = f"http://127.0.0.1:{three.metrics_port}"
    with three.client("h0").transfer("h2", GB, dport=4791) as transfer:
        with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE_S) as answer:
            lines = answer.read().decode().splitlines()
        assert "ark_peers_heard 2.0" in lines
        assert f'ark_link_flows{{source="leaf0",target="spine{transfer.path}"}} 1.0' in lines
        assert any(line.startswith("ark_decision_seconds_bucket") for line in lines)
        assert 'ark_refused_total{reason="forged"} 0.0' in lines
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{url}/", timeout=PATIENCE_S)
    with socket.create_connection(("127.0.0.1", three.metrics_port), PATIENCE_S) as garbage:
        garbage.sendall(b"\xff" * 20_000)
        garbage.settimeout(PATIENCE_S)
        with suppress(ConnectionResetError):
            assert garbage.recv(100) == b""


def test_systemd_is_told_and_sigterm_ends_it(three: Processes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.settimeout(PATIENCE_S)
        systemd.bind(str(three.folder / "notify.sock"))
        three.running["h2"].terminate()
        assert three.running["h2"].wait(PATIENCE_S) == 0
        assert not (three.folder / "h2.sock").exists()
        assert three.events("h2")[-1] == "stopped"
        notify = {"NOTIFY_SOCKET": str(three.folder / "notify.sock"), "WATCHDOG_USEC": "100000"}
        process = three.start("h2", **notify)
        assert systemd.recv(1000) == b"READY=1\nSTATUS=h2: 2 peers"
        assert systemd.recv(1000) == b"WATCHDOG=1"
        process.send_signal(signal.SIGHUP)
        told = [systemd.recv(1000) for _ in range(1)]
        while told[-1] != b"RELOADING=1":
            told.append(systemd.recv(1000))
        process.terminate()
        while told[-1] != b"STOPPING=1":
            told.append(systemd.recv(1000))
        assert process.wait(PATIENCE_S) == 0


GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "agent.md"


def test_the_guides_two_agents_on_one_machine(tmp_path: Path) -> None:
    text = GUIDE.read_text("utf-8").partition("## Try it on one machine")[2].partition("\n## ")[0]
    write_cluster(tmp_path)  # for the key; the fabric is the guide's
    ports = free_ports(2, socket.SOCK_DGRAM)
    for block in re.findall(r"```toml\n# (\S+)\n(.*?)```", text, re.DOTALL):
        content = block[1].replace(":7471", f":{ports[0]}").replace(":7472", f":{ports[1]}")
        (tmp_path / block[0]).write_text(content)
    [program] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ark = [sys.executable, "-m", "ark.cli.main"]
    agents = [
        subprocess.Popen([*ark, "agent", "--config", f"{name}.toml"], cwd=tmp_path, stderr=subprocess.DEVNULL)
        for name in ("h0", "h1")
    ]
    try:
        for name in ("h0", "h1"):
            until(lambda name=name: "peers heard     1 of 1" in _status(tmp_path, name))  # type: ignore[misc]
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=os.environ | {"ARK_SOCKET": "h0.sock"},
            check=True,
            capture_output=True,
            text=True,
        )
        found = re.fullmatch(r"<transfer path=([0-3]) source_port=(\d+)>\n", done.stdout)
        assert found, done.stdout
        assert int(found[2]) >= 0xC000
    finally:
        for agent in agents:
            agent.kill()
            agent.wait(PATIENCE_S)


def _status(folder: Path, name: str) -> str:
    command = [sys.executable, "-m", "ark.cli.main", "status", "--socket", f"{name}.sock"]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True).stdout
