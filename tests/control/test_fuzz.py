"""Fuzzed datagrams through a real controller: nothing breaks, nothing grows, only the signer's rows change.

``ARK_DATAGRAMS`` says how many; ``make test-long`` sends a million.
"""

import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from random import Random

import msgspec
import pytest
from tests.control.rig import ADDRESSES, FABRIC, KEY, SIZE, WALL_NS, A, B, C, Wires, acquainted

from ark.control.controller import Controller
from ark.control.outbox import Send
from ark.control.wire import (
    DATAGRAM_MAX,
    MAC_BYTES,
    ROOM,
    Answer,
    Ask,
    Beat,
    Challenge,
    Chunk,
    Drop,
    Key,
    Message,
    Newer,
    Numbered,
    Put,
    Refusal,
    direct,
    encode_message,
    mac,
    seal,
)

DATAGRAMS = int(os.environ.get("ARK_DATAGRAMS", "40000"))
PACE_NS = 30_000
"""Between two datagrams: just below the rate that is taken from one peer."""
EDGES = (
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    2**31,
    2**32 - 1,
    2**50,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
FLOWS = 200
OTHER_KEY = Key(1, b"a key of somebody else's")


class Fuzz:
    """Makes datagrams: well-formed ones with odd contents, broken ones, and noise."""

    def __init__(self, seed: int, controller: Controller) -> None:
        self.rng = Random(seed)
        self.controller = controller

    def signed(self) -> bytes:
        """Inside a valid MAC, most of them by B."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            return self.formed()
        body = bytearray(self.formed()[:-MAC_BYTES])
        if kind < 0.8:
            for _ in range(rng.choice((1, 1, 2, 8))):
                body[rng.randrange(len(body))] = rng.randrange(256)
        elif kind < 0.9:
            body = body[: rng.randrange(1, len(body))]
        elif kind < 0.97:
            body = bytearray(
                msgspec.msgpack.encode([self.thing() for _ in range(10)])[: DATAGRAM_MAX - MAC_BYTES]
            )
        else:
            body = bytearray(rng.randbytes(rng.randrange(1, DATAGRAM_MAX - MAC_BYTES)))
        return bytes(body) + mac(bytes(body), KEY)

    def unsigned(self, recorded: deque[bytes]) -> bytes:
        """Outside: genuine ones with bits changed, cut, signed by another key, or noise."""
        rng = self.rng
        data = bytearray(rng.choice(recorded) if rng.random() < 0.5 else self.formed())
        kind = rng.random()
        if kind < 0.5:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind < 0.7:
            del data[rng.randrange(len(data)) :]
        elif kind < 0.9:
            data[-MAC_BYTES:] = mac(bytes(data[:-MAC_BYTES]), OTHER_KEY)
        else:
            data = bytearray(rng.randbytes(rng.randrange(2 * DATAGRAM_MAX)))
        return bytes(data)

    def formed(self) -> bytes:
        """A datagram of B's that follows what B has said, more or less."""
        rng = self.rng
        peer = self.controller.replica.peers[B]
        subject = rng.choice(("", "", "", direct(A), direct(A), "up.0", "x", direct(C)))
        stream = peer.streams.get(subject)
        number, seq = (1, 1) if stream is None else (stream.window.newest + 1, stream.newest + 1)
        if rng.random() < 0.2:
            number = max(1, min(2**63 - 1, number + rng.randrange(-20, 20)))
        if rng.random() < 0.2:
            seq = max(1, min(2**62, seq + rng.choice((-30, -3, -1, 1, 3, 1000, 2**40))))
        epoch = min(2**63 - 1, peer.epoch + rng.choices((0, 1, -1), (500, 1, 5))[0])
        host = rng.choices((B, C, A, 77), (1000, 10, 1, 5))[0]
        fabric = FABRIC.digest() if rng.random() < 0.99 else rng.randbytes(16)
        parts, room = [], ROOM
        for _ in range(rng.choice((0, 1, 1, 2, 5, 30))):
            part = encode_message(self.message())
            if len(part) > room:
                break
            parts.append(part)
            room -= len(part)
        return seal(KEY, fabric, host, epoch, subject, min(number, 2**63 - 1), seq, parts)

    def message(self) -> Message:
        """Of any type, with contents that are mostly plausible."""
        rng = self.rng
        draw = rng.random()
        if draw < 0.4:
            return self.put()
        if draw < 0.6:
            return Drop(rng.randrange(FLOWS))
        if draw < 0.75:
            stream = self.controller.replica.peers[B].streams.get("")
            right = stream is not None and rng.random() < 0.5
            return (
                Beat(len(stream.rows), stream.digest)
                if right and stream
                else Beat(self.natural(), self.word())
            )
        if draw < 0.8:
            missing = tuple(rng.randrange(2048) for _ in range(rng.choice((0, 1, 200))))
            return Ask(rng.choice(("", "up.1", "x")), self.word(), missing)
        if draw < 0.9:
            rows = tuple(Numbered(1 + self.natural() % 2**62, self.put()) for _ in range(rng.randrange(4)))
            count = rng.randrange(1, 2048)
            return Chunk(
                rng.choice(("", "x")), self.word(), self.natural(), rng.randrange(count), count, rows
            )
        return rng.choice((Challenge, Answer))(self.word()) if draw < 0.97 else Newer(rng.choice((5, 90, 99)))

    def put(self) -> Put:
        """A row, which fits this fabric or does not."""
        rng = self.rng
        paths = tuple(rng.choice((0, 1, 2, 3, 3, 4, 65_535)) for _ in range(rng.choice((1, 1, 1, 2, 16))))
        leaf = rng.choice((0, 0, 0, 1, 1, 2, 65_535))
        stamp = rng.choice((WALL_NS, 0, 2**63 - 1))
        return Put(
            rng.randrange(FLOWS), rng.randrange(2), paths, leaf, rng.choice((0, 1, 1)),
            self.natural() % 2**50, stamp, rng.random() < 0.1, rng.randrange(3),
        )  # fmt: skip

    def natural(self) -> int:
        return min(self.word(), 2**63 - 1)

    def word(self) -> int:
        return self.rng.choice(EDGES) if self.rng.random() < 0.5 else self.rng.getrandbits(64)

    def thing(self, depth: int = 0) -> object:
        """Anything that msgpack knows."""
        rng = self.rng
        kind = rng.randrange(9 if depth < 3 else 7)
        if kind < 3:
            return rng.choice((self.word(), -self.natural() - 1))
        if kind < 7:
            return (rng.randbytes(rng.randrange(40)), "x" * rng.randrange(40), rng.random(), None)[kind - 3]
        things = [self.thing(depth + 1) for _ in range(rng.randrange(5))]
        return things if kind == 7 else dict(enumerate(things))


def size(thing: object, seen: set[int]) -> int:
    """Bytes of an object and of all it holds."""
    if id(thing) in seen or isinstance(thing, type) or thing is FABRIC:
        return 0
    seen.add(id(thing))
    return sys.getsizeof(thing) + sum(size(part, seen) for part in parts_of(thing))


def parts_of(thing: object) -> Iterator[object]:
    if isinstance(thing, Mapping):
        for key, value in thing.items():
            yield from (key, value)
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        yield from thing
    elif type(thing).__module__.startswith("ark."):
        names = [name for one in type(thing).__mro__ for name in getattr(one, "__slots__", ())]
        for name in (*names, *getattr(thing, "__dict__", ())):
            yield getattr(thing, name, None)


def give(wires: Wires, one: Controller, data: bytes, address: str) -> list[Send]:
    """Let the controller take in a datagram; what it sends."""
    return one.message_received(wires.now, WALL_NS + wires.now, data, address).sends


def others_rows(controller: Controller) -> set[tuple[object, ...]]:
    """All rows in the table but those of B, without what their own hosts decide when B's rows come."""
    return {
        (row.key, row.epoch, row.paths, row.source, row.target, row.size_bytes, row.stamp)
        for row in controller.view.table
        if row.host != B
    }


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["ark", "paper"])
def test_fuzzed_datagrams_change_only_the_rows_of_their_signer(policy: str) -> None:
    wires = acquainted(A, B, C, policy=policy)
    for host in (A, C):
        for flow in range(3):
            wires.arrive(host, flow, size_bytes=10**6 * SIZE)
        wires.follow(host, wires.hosts[host].tick(wires.now, WALL_NS + wires.now))
    recorded = deque((send.data for _, send in wires.sent), maxlen=100)
    wires.wait(2_000_000)
    del wires.hosts[B]
    one, other = wires.hosts[A], wires.hosts[C]
    fuzz = Fuzz(11, one)
    counters = one.replica.counters
    before, changed, sizes = others_rows(one), 0, []
    assert len(before) == 6
    for count in range(1, DATAGRAMS // 2 + 1):
        wires.now += PACE_NS
        rows = len(one.view.table)
        wires.sent += [(A, send) for send in give(wires, one, fuzz.signed(), ADDRESSES[B])]
        changed += len(one.view.table) != rows
        taken = counters.received
        assert not give(wires, one, fuzz.unsigned(recorded), fuzz.rng.choice(list(ADDRESSES.values())))
        assert counters.received == taken
        if count % 256 == 0:
            recorded.extend(send.data for _, send in wires.sent)
            wires.sent = [(source, send) for source, send in wires.sent if send.host != B]
            wires.wait(0)
            assert others_rows(one) == before
        if count % (DATAGRAMS // 8) == 0:
            sizes.append(size(one, set()))
    one.check()
    other.check()
    assert len(one.replica.peers) == 2
    assert changed > DATAGRAMS // 100
    assert counters.refused[Refusal.FORGED] > DATAGRAMS // 4
    assert max(sizes[1:]) < 1.5 * sizes[0] + 200_000, sizes
