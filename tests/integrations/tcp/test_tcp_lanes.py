"""Ready connections, one a path, against real agents and a real listener on loopback."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import Cohort, cohort

from ark.client import Client
from ark.fabric import path_map
from ark.integrations.tcp import source_port
from ark.integrations.tcp_lanes import READY_MAX, TcpLanes

SIZE_BYTES = 1 << 30
PEER = "127.0.0.2"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cohort]:
    """Agents of two hosts whose addresses are this machine's own."""
    folder = tmp_path_factory.mktemp("two")
    write_cluster(folder, hosts_per_leaf=1, more='addresses = "127.0.0.1"\n')
    with cohort(folder, 2, more='[policy]\nhold = "0"\nmin_bytes = "1 MB"\n') as made:
        yield made


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as made:
        made.bind((PEER, 0))
        made.listen(64)
        yield made


@pytest.fixture
def client(two: Cohort) -> Client:
    return two.client("h0")


def port_of(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


def test_a_transfer_gets_the_connection_of_its_path(
    two: Cohort, client: Client, listener: socket.socket
) -> None:
    fabric = two["h0"].config.fabric
    led = path_map(fabric, fabric.nic("h0"), fabric.nic("h1"), dport=port_of(listener), proto=6)
    with TcpLanes(("h1", port_of(listener)), client=client).open() as lanes, ExitStack() as stack:
        assert lanes.ready == [0, 1, 2, 3]
        used = set()
        for _ in range(4):  # at once, so that each is given another path
            borrowed = stack.enter_context(lanes.transfer(SIZE_BYTES))
            path = borrowed.transfer.path
            assert path is not None
            assert source_port(borrowed.socket) in led.ports(path)
            assert borrowed.socket.getpeername() == listener.getsockname()
            used.add(path)
        assert used == {0, 1, 2, 3}
        assert lanes.ready == []
        with lanes.transfer(
            SIZE_BYTES
        ) as fifth:  # its path's connection is busy: another one, from another port
            assert source_port(fifth.socket) in led.ports(fifth.transfer.path or 0)
        stack.close()
        assert sorted(path or 0 for path in lanes.ready) == sorted([0, 1, 2, 3, fifth.transfer.path or 0])


def test_what_died_or_failed_is_not_used_again(client: Client, listener: socket.socket) -> None:
    with TcpLanes(("h1", port_of(listener)), client=client) as lanes:
        with lanes.transfer(SIZE_BYTES) as borrowed:
            first = source_port(borrowed.socket)
        served, _ = listener.accept()
        served.close()  # the peer restarts, say
        with lanes.transfer(SIZE_BYTES) as borrowed:
            path = borrowed.transfer.path
            assert first != source_port(borrowed.socket) or path not in lanes.ready
            listener.accept()[0].close()
        with pytest.raises(ValueError, match="midway"), lanes.transfer(SIZE_BYTES):
            raise ValueError("midway")
        assert lanes.ready.count(path) <= 1
    with lanes.transfer(SIZE_BYTES):
        pass
    assert lanes.ready == []  # closed: nothing is kept


def test_without_an_agent_any_connection_serves(tmp_path: Path, listener: socket.socket) -> None:
    client = Client(tmp_path / "none.sock")
    with TcpLanes((PEER, port_of(listener)), client=client).open() as lanes:
        assert lanes.ready == [None]
        with lanes.transfer(SIZE_BYTES) as one, lanes.transfer(SIZE_BYTES) as other:
            assert one.transfer.path is None
            assert one.socket is not other.socket
        assert lanes.ready == [None, None]


def test_idle_connections_are_bounded(tmp_path: Path, listener: socket.socket) -> None:
    client = Client(tmp_path / "none.sock")
    with TcpLanes((PEER, port_of(listener)), client=client) as lanes:
        with ExitStack() as stack:
            for _ in range(READY_MAX + 4):
                stack.enter_context(lanes.transfer(SIZE_BYTES))
        assert len(lanes.ready) == READY_MAX
