"""UDP on loopback: who gets what, and what is counted when it can't."""

import asyncio
import socket
from collections.abc import Callable

import pytest
from tests.agent.cohort import PATIENCE_S

from ark.agent import transport as transport_module
from ark.agent.multicast import MulticastTransport
from ark.agent.transport import Transport, UdpTransport, udp_socket
from ark.control.outbox import Send
from ark.errors import ConfigError

Heard = list[tuple[bytes, str]]


def bound(transport: UdpTransport) -> tuple[str, int]:
    host, port = transport.address.split(":")
    return host, int(port)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is in the kernel
            await asyncio.sleep(0.001)


def listen(transport: Transport) -> Heard:
    heard: Heard = []
    transport.start(lambda data, address: heard.append((data, address)))
    return heard


def test_everybody_and_one_alone() -> None:
    async def work() -> None:
        three = [UdpTransport(("127.0.0.1", 0), receive_buffer_bytes=2**20) for _ in range(3)]
        heard = [listen(one) for one in three]
        a, b, c = three
        a.set_peers({1: bound(b), 2: bound(c)})
        a.send([Send("", None, "", b"all"), Send("to", 2, "elsewhere", b"one"), Send("to", 9, "x", b"none")])
        assert a.counters.sent == 0
        await until(lambda: len(heard[2]) == 2)
        await until(lambda: len(heard[1]) == 1)
        assert heard[2] == [(b"all", a.address), (b"one", a.address)]
        assert (a.counters.sent, a.counters.sent_bytes, c.counters.received) == (3, 9, 2)
        assert a.drops() == 0
        for one in three:
            one.close()

    asyncio.run(work())


def test_a_full_queue_and_a_full_send_buffer_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "QUEUE_MAX", 10)

    async def work() -> None:
        one = UdpTransport(("127.0.0.1", 0), receive_buffer_bytes=2**20)
        listen(one)
        one.set_peers({1: ("127.0.0.1", 9), 2: ("255.255.255.255", 9)})
        one.send([Send("", None, "", b"x")] * 6)
        assert one.counters.queue_full == 2
        await until(lambda: one.counters.sent + one.counters.send_failed >= 10)
        assert one.counters.send_failed >= 5  # broadcast needs a permission that no agent asks for
        one.close()

    asyncio.run(work())


def test_the_kernels_drops_are_read() -> None:
    async def work() -> None:
        slow = UdpTransport(("127.0.0.1", 0), receive_buffer_bytes=2048)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(200):
                sender.sendto(bytes(1000), bound(slow))
        assert slow.drops() > 0
        assert slow.receive_buffer_bytes < 200_000
        slow.close()

    asyncio.run(work())


def test_an_address_in_use_is_named() -> None:
    first = UdpTransport(("127.0.0.1", 0), receive_buffer_bytes=2**20)
    with pytest.raises(OSError, match="control address") as caught:
        udp_socket(bound(first), 2**20)
    assert caught.value.filename == f"control address {first.address}"
    first.close()


def test_ipv6() -> None:
    async def work() -> None:
        try:
            a = UdpTransport(("::1", 0), receive_buffer_bytes=2**20)
        except OSError:
            pytest.skip("this machine has no IPv6")
        heard = listen(a)
        port = int(a.address.rpartition(":")[2])
        a.set_peers({1: ("::1", port)})
        a.send([Send("", None, "", b"x")])
        await until(lambda: heard)
        assert heard == [(b"x", f"[::1]:{port}")]
        assert a.drops() == 0
        a.close()

    asyncio.run(work())


def test_multicast_reaches_the_group_and_one_alone() -> None:
    async def work() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        group = ("239.192.74.71", port)
        made = [MulticastTransport(("127.0.0.1", 0), group, receive_buffer_bytes=2**20) for _ in range(3)]
        heard = [listen(one) for one in made]
        a, _, c = made
        a.set_peers({2: bound(c)})
        a.send([Send("", None, "", b"all"), Send("to", 2, "", b"one")])
        await until(lambda: all(heard) and len(heard[2]) == 2)
        assert heard[0] == [(b"all", a.address)]  # our own echo, which the protocol knows
        assert heard[1] == [(b"all", a.address)]
        assert sorted(heard[2]) == [(b"all", a.address), (b"one", a.address)]
        assert a.drops() == 0
        for one in made:
            one.close()

    asyncio.run(work())


@pytest.mark.parametrize("group", [("10.0.0.1", 1), ("::1", 1)])
def test_what_is_no_group_is_refused(group: tuple[str, int]) -> None:
    with pytest.raises(ConfigError, match="no IPv4 multicast address"):
        MulticastTransport(("127.0.0.1", 0), group, receive_buffer_bytes=2**20)
