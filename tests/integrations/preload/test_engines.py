"""Unmodified Mooncake and NIXL in a lab of namespaces, under ``ark run``, with agents: ``make test-engines``.

The wheels of PyPI, TCP, memory of the host. Which spine a transfer took is counted by the leaf's uplinks.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from ark.client import Client
from ark.fabric import leaf_spine
from ark.lab.counters import Counters
from ark.lab.lab import Lab, lab
from ark.lab.scaled import scaled

ENGINES: Final = os.environ.get("ARK_ENGINES", "")
SPINES: Final = 4
SIZE: Final = 16 << 20
ROUNDS: Final = 6
TRANSFERS: Final = 5
FABRIC: Final = scaled(leaf_spine(2, SPINES, 1), 2 * 10**9, hash_seed=5)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ENGINES, reason="needs Mooncake and NIXL; run: make test-engines"),
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2"),
]


@pytest.fixture(scope="module")
def built() -> Iterator[Lab]:
    with lab(FABRIC.lab, name=f"ark-lab.engines{os.getpid()}") as made:
        made.agents.start("ark")
        made.agents.wait()
        yield made


@pytest.fixture(params=["mooncake", "nixl"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Program:
    """An engine's program on a host of the lab; it and the test speak JSON, a line each."""

    def __init__(
        self, built: Lab, host: str, engine: str, role: str, log: Path, *flags: str, **more: str
    ) -> None:
        fabric = built.made.fabric
        nic = fabric.nic(host)
        leaf = fabric.links[fabric.ports(nic)[0][0]].target
        ours = {
            "NIXL_LOG_LEVEL": "ERROR",
            "UCX_TLS": "tcp",
            "UCX_NET_DEVICES": leaf,
            "UCX_LOG_LEVEL": "error",
        }
        script = Path(__file__).parent / "engines" / f"{engine}_program.py"
        ark = [sys.executable, "-m", "ark.cli.main", "run", "--socket", str(built.agents.socket(host))]
        inside = [
            "ip",
            "netns",
            "exec",
            built.made.namespace(host),
        ]  # with a /sys of its own, where UCX looks
        program = [str(script), role, nic.address, str(SIZE)]
        self.log = log
        self.process = subprocess.Popen(
            [*inside, *ark, "--log", str(log), "--wait", "1s", *flags, "--", ENGINES, *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | ours | more,
        )

    def ask(self, **order: object) -> dict[str, object]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self) -> dict[str, object]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, object] = json.loads(line)
                return found
        raise AssertionError(f"the program ended with {self.process.wait()}")

    def end(self) -> None:
        self.process.communicate()

    def paths(self) -> list[int]:
        """The paths of its connections, in order."""
        return [
            int(found)
            for found in re.findall(r"path=(\d+)", self.log.read_text() if self.log.exists() else "")
        ]


class Pair:
    """A receiver, and senders that come and go; each transfer is counted and verified."""

    def __init__(self, built: Lab, engine: str, folder: Path, stack: ExitStack) -> None:
        self.built = built
        self.engine = engine
        self.folder = folder
        self.stack = stack
        fabric = built.made.fabric
        uplinks = [
            next(
                link.index
                for link in fabric.links
                if (link.source, link.target) == ("leaf0", f"spine{number}")
            )
            for number in range(SPINES)
        ]
        self.counters = Counters(built.made, uplinks)
        stack.callback(self.counters.close)
        self.receiver = self.program("h1", "receive")
        self.where = self.receiver.hear()
        self.sent = 0

    def program(self, host: str, role: str, *flags: str, **more: str) -> Program:
        log = self.folder / f"{role}{len(list(self.folder.iterdir()))}.log"
        log.touch()
        made = Program(self.built, host, self.engine, role, log, *flags, **more)
        self.stack.callback(made.end)
        return made

    def transfer(self, sender: Program, at_once: int = 1) -> list[int]:
        """Bytes over each spine of one transfer (or of several at once), whose data have arrived."""
        self.sent += 1
        self.counters.clear()
        self.counters.read(0.0)
        assert sender.ask(value=self.sent % 256, at_once=at_once, **self.where) == {"ok": True}
        assert self.receiver.ask() == {"sum": self.sent % 256 * SIZE}
        self.counters.read(1.0)
        sent: list[int] = self.counters.series()[1][-1].tolist()
        return sent


@pytest.fixture
def pair(built: Lab, engine: str, tmp_path: Path) -> Iterator[Pair]:
    with ExitStack() as stack:
        yield Pair(built, engine, tmp_path, stack)


def all_on(counted: list[int], spines: set[int]) -> bool:
    """Whether a transfer is on these spines; a handshake or an acknowledgement may be elsewhere."""
    return sum(counted[spine] for spine in spines) >= max(SIZE, 0.999 * sum(counted))


def test_transfers_take_the_spine_that_ark_chose(pair: Pair, built: Lab) -> None:
    """Other transfers load all spines but one, another one each round: 30 of 30 take the one that is left."""
    right = 0
    for number in range(ROUNDS):
        wanted = number % SPINES
        client = Client(built.agents.socket("h0"), timeout_s=10)
        others = [client.transfer("h1", 10**9, dport=1, proto="tcp") for _ in range(3 * SPINES)]
        for other in others:
            if other.path == wanted:
                other.release()
        sender = pair.program("h0", "send", "--size", "1 GiB", MC_TCP_LANES_PER_PEER="1")
        for _ in range(TRANSFERS):
            counted = pair.transfer(sender)
            right += all_on(counted, {wanted})
        assert sender.paths()[-1] == wanted
        sender.end()
        client.close()
    assert right == ROUNDS * TRANSFERS


def test_pooled_connections_are_lanes(pair: Pair) -> None:
    """Without a size: connections to a peer lie on several paths, each on the one that it was given."""
    sender = pair.program("h0", "send", MC_TCP_LANES_PER_PEER=str(SPINES))
    right = sum(all_on(pair.transfer(sender), set(sender.paths())) for _ in range(TRANSFERS))
    assert right == TRANSFERS
    paths = sender.paths()
    assert len(set(paths)) == min(len(paths), SPINES)


def test_transfers_at_once_use_all_spines(built: Lab, tmp_path: Path) -> None:
    """Mooncake keeps as many connections to a peer as it is told, and chooses which one a transfer takes."""
    with ExitStack() as stack:
        pair = Pair(built, "mooncake", tmp_path, stack)
        sender = pair.program("h0", "send", MC_TCP_LANES_PER_PEER=str(SPINES))
        pair.transfer(sender, at_once=4 * SPINES)
        assert set(sender.paths()[-SPINES:]) == set(range(SPINES))
        counted = pair.transfer(sender, at_once=4 * SPINES)
        assert min(counted) >= SIZE


def test_without_an_agent_the_program_is_as_it_was(pair: Pair, built: Lab) -> None:
    """Killed while a program runs, and absent when one starts."""
    sender = pair.program("h0", "send")
    pair.transfer(sender)
    built.agents.kill("h0")
    try:
        for _ in range(TRANSFERS):
            pair.transfer(sender)
        late = pair.program("h0", "send")
        for _ in range(TRANSFERS):
            pair.transfer(late)
        assert late.paths() == []
    finally:
        built.agents.restart("h0")
        built.agents.wait()
