"""examples/send.py sends from a port of the path that the agent chose, and goes on without an agent."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import PATIENCE_S, Cohort, cohort

from ark.fabric import FiveTuple, route

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "send.py"

pytestmark = pytest.mark.slow


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Cohort]:
    """Agents of h0 and h1, whose NICs are 127.0.0.1 and 127.0.0.2."""
    write_cluster(tmp_path, hosts_per_leaf=1, more='addresses = "127.0.0.1"\n')
    with cohort(tmp_path, 2, more='[policy]\nhold = "0"\nmin_bytes = "1 kB"\n') as made:
        yield made


@pytest.fixture
def receiver() -> Iterator[str]:
    """The port of a receiver that runs."""
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen([sys.executable, EXAMPLE, "receive", "0"], stdout=subprocess.PIPE, text=True)
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]


def sent(agent: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLE, "send", *arguments],
        env=os.environ | {"ARK_SOCKET": str(agent)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_bytes_leave_from_a_port_of_the_chosen_path(two: Cohort, receiver: str) -> None:
    done = sent(two.folder / "h0.sock", "h1", receiver, "3 MB")
    said = re.match(r"path (\d), from port (\d+): 3 MB at .*bit/s\n", done.stdout)
    assert said, done
    fabric = two["h0"].config.fabric
    source, target = fabric.nic("h0"), fabric.nic("h1")
    flow = FiveTuple(source.address, target.address, int(said[2]), int(receiver), socket.IPPROTO_TCP)
    assert route(fabric, flow, source, target).index == int(said[1])


def test_without_an_agent_bytes_are_sent_all_the_same(tmp_path: Path, receiver: str) -> None:
    done = sent(tmp_path / "none.sock", "127.0.0.1", receiver, "3 MB")
    assert re.match(r"no agent.*, from port \d+: 3 MB at", done.stdout), done


def test_who_cannot_be_reached_is_one_line(tmp_path: Path, receiver: str) -> None:
    done = sent(tmp_path / "none.sock", "no.such.host.invalid", receiver, "3 MB")
    assert done.returncode == 1
    assert done.stderr.startswith("no.such.host.invalid, port ")
    assert len(done.stderr.splitlines()) == 1
