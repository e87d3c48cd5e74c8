"""TCP from chosen ports: real sockets on loopback, real conflicts."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ark.errors import LocalProtocolError
from ark.integrations import tcp
from ark.integrations.tcp import connect, connect_async, connect_within, source_port

PORTS = range(0xC000, 0x1_0000)


def connect_in_loop(target: tuple[str, int], *, source: str, ports: list[int]) -> socket.socket:
    return asyncio.run(connect_async(target, source=source, ports=ports))


@pytest.fixture(params=["127.0.0.1", "::1"])
def address(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@pytest.fixture(params=[connect, connect_in_loop])
def how(request: pytest.FixtureRequest) -> Callable[..., socket.socket]:
    made: Callable[..., socket.socket] = request.param
    return made


def listening(stack: ExitStack, address: str) -> tuple[str, int]:
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    stack.enter_context(made)
    made.bind((address, 0))
    made.listen()
    return address, made.getsockname()[1]


def free_ports(address: str, count: int) -> list[int]:
    """Ports above those that the kernel gives away; each process of a parallel run looks elsewhere."""
    with ExitStack() as stack:
        found = []
        start = 61_000 + 150 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 6)
        for port in range(start, 0x1_0000):
            probe = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET))
            try:
                probe.bind((address, port))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise AssertionError("no free ports")


def test_the_first_port_is_used(stack: ExitStack, address: str, how: Callable[..., socket.socket]) -> None:
    target = listening(stack, address)
    ports = free_ports(address, 2)
    made = stack.enter_context(how(target, source=address, ports=ports))
    assert (source_port(made), made.getsockname()[0]) == (ports[0], address)
    assert made.getpeername()[:2] == target
    made.sendall(b"x")


def test_ports_of_other_programs_are_passed_over(
    stack: ExitStack, address: str, how: Callable[..., socket.socket]
) -> None:
    """One that listens, and one that holds the port without having set SO_REUSEADDR."""
    target = listening(stack, address)
    ports = free_ports(address, 3)
    for port, listens in zip(ports[:2], (True, False), strict=True):
        other = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET))
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(listens))
        other.bind((address, port))
        if listens:
            other.listen()
    made = stack.enter_context(how(target, source=address, ports=ports))
    assert source_port(made) == ports[2]


def test_an_open_connection_from_the_same_port_is_passed_over(
    stack: ExitStack, address: str, how: Callable[..., socket.socket]
) -> None:
    target = listening(stack, address)
    ports = free_ports(address, 3)
    used = [source_port(stack.enter_context(how(target, source=address, ports=ports))) for _ in ports]
    assert used == ports


def test_time_wait_is_passed_over(stack: ExitStack, address: str, how: Callable[..., socket.socket]) -> None:
    """A closed connection takes its port to the same target for a minute; to another target it does not."""
    ports = free_ports(address, 2)
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    stack.enter_context(made)
    made.bind((address, 0))
    made.listen()
    target = made.getsockname()[:2]
    other = listening(stack, address)
    first = how(target, source=address, ports=ports)
    served, _ = made.accept()
    first.close()  # we close first: TIME_WAIT is ours
    assert served.recv(1) == b""
    served.close()
    elsewhere = stack.enter_context(how(other, source=address, ports=ports))
    assert source_port(elsewhere) == ports[0]
    again = stack.enter_context(how(target, source=address, ports=ports))
    # Linux takes TIME_WAIT ports again at once on loopback only (net.ipv4.tcp_tw_reuse = 2), after a second.
    assert source_port(again) in ports


def test_one_port_leads_to_many_targets(
    stack: ExitStack, address: str, how: Callable[..., socket.socket]
) -> None:
    ports = free_ports(address, 1)
    for _ in range(3):
        made = stack.enter_context(how(listening(stack, address), source=address, ports=ports))
        assert source_port(made) == ports[0]


def test_without_a_free_port_any_is_taken(
    stack: ExitStack, address: str, how: Callable[..., socket.socket]
) -> None:
    target = listening(stack, address)
    ports = free_ports(address, 1)
    stack.enter_context(how(target, source=address, ports=ports))
    made = stack.enter_context(how(target, source=address, ports=ports))
    assert source_port(made) not in ports
    assert made.getsockname()[0] == address


def test_all_addresses_of_a_name_are_tried(
    stack: ExitStack, how: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name has an address of each family, and its server listens on one: who asks for a name can't know."""
    target = listening(stack, "127.0.0.1")
    ports = free_ports("127.0.0.1", 1)
    resolve = socket.getaddrinfo

    def both(host: str, *more: Any, **named: Any) -> list[Any]:
        addresses = ("::1", "127.0.0.1") if host == "peer" else (host,)
        return [one for address in addresses for one in resolve(address, *more, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    made = stack.enter_context(how(("peer", target[1]), source="", ports=ports))
    assert made.getpeername() == target
    assert source_port(made) == ports[0]


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_what_is_no_port_is_refused(how: Callable[..., socket.socket], port: int) -> None:
    with pytest.raises(LocalProtocolError, match=f"source port {port}: allowed are 1 to 65535"):
        how(("127.0.0.1", 1), source="", ports=[60_000, port])
    with pytest.raises(LocalProtocolError):
        connect_within(("127.0.0.1", 1), ports=range(port, port + 1))


@pytest.mark.parametrize("text", ["80,{0},{1}-{2}\n", "", "garbage\n"])
def test_a_port_that_is_reserved_for_a_service_is_passed_over(
    stack: ExitStack,
    how: Callable[..., socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    text: str,
) -> None:
    target = listening(stack, "127.0.0.1")
    ports = free_ports("127.0.0.1", 4)
    file = tmp_path / "reserved"
    file.write_text(text.format(*ports))
    monkeypatch.setattr(tcp, "RESERVED", file)
    made = stack.enter_context(how(target, source="127.0.0.1", ports=ports))
    assert source_port(made) == ports[3 if "80" in text else 0]


def test_a_port_that_only_root_may_take_is_passed_over(
    stack: ExitStack, how: Callable[..., socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = listening(stack, "127.0.0.1")
    ports = free_ports("127.0.0.1", 1)

    class Unprivileged(socket.socket):
        def bind(self, address: Any) -> None:
            if 0 < address[1] < 1024:
                raise PermissionError(errno.EACCES, "Permission denied")
            super().bind(address)

    monkeypatch.setattr(socket, "socket", Unprivileged)
    made = stack.enter_context(how(target, source="127.0.0.1", ports=[80, *ports]))
    assert source_port(made) == ports[0]


def test_errors_of_the_way_are_told(how: Callable[..., socket.socket]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            how(closed.getsockname(), source="127.0.0.1", ports=free_ports("127.0.0.1", 2))
    with pytest.raises(OSError, match="assign requested address"):
        how(("127.0.0.1", 9), source="192.0.2.1", ports=[0xC001])


def test_a_range_is_left_to_the_kernel(stack: ExitStack, address: str) -> None:
    target = listening(stack, address)
    ports = range(60_900, 60_999)
    made = stack.enter_context(connect_within(target, source=address, ports=ports))
    assert source_port(made) in ports
    assert made.gettimeout() is None


def test_a_full_range_falls_back(stack: ExitStack) -> None:
    target = listening(stack, "127.0.0.1")
    ports = range(60_800, 60_801)
    for _ in range(2):
        made = stack.enter_context(connect_within(target, source="127.0.0.1", ports=ports))
    assert source_port(made) not in ports


@pytest.mark.parametrize("ports", [range(0), range(5000, 5010, 2)])
def test_a_range_with_gaps_is_refused(ports: range) -> None:
    with pytest.raises(LocalProtocolError, match="without gaps"):
        connect_within(("127.0.0.1", 9), ports=ports)
