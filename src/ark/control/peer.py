"""What is known of one other host: its epoch, whether it is no recording, and its streams."""

from typing import Final

from ark.control.stream import Held, InStream
from ark.units import NS_PER_S

DATAGRAMS_PER_S_MAX: Final = 40_000
"""Datagrams a second that are taken from one peer, ten times what an honest one needs for 50,000 rows a
second. Beyond it they are dropped and counted; what they said is mended by a snapshot."""

DATAGRAMS_BURST_MAX: Final = 8_192
"""Datagrams at once: four of the longest snapshots."""

_TOKEN: Final = NS_PER_S // DATAGRAMS_PER_S_MAX


class Peer:
    """One other host, from its first authentic datagram on.

    Attributes
    ----------
    epoch
        The greatest that it has used.
    address
        Where its last fresh datagram came from.
    proven
        Whether it has answered our nonce: only then its rows count.
    streams
        What we hear of it, by subject; its direct stream to us among them (numbers only).
    """

    __slots__ = (
        "_spent_until", "address", "challenged_at", "epoch", "host", "nonce", "proven", "streams", "told_at",
    )  # fmt: skip

    def __init__(self, host: int, epoch: int, address: str, nonce: int) -> None:
        self.host = host
        self.epoch = epoch
        self.address = address
        self.nonce = nonce
        self.proven = False
        self.challenged_at: int | None = None
        self.told_at: int | None = None
        self.streams: dict[str, InStream] = {}
        self._spent_until: int | None = None

    def allow(self, now: int) -> bool:
        """Whether a datagram is within this peer's rate (a bucket of tokens, kept as the time when it is
        full)."""
        spent = now if self._spent_until is None else max(self._spent_until, now)
        if spent - now > DATAGRAMS_BURST_MAX * _TOKEN:
            return False
        self._spent_until = spent + _TOKEN
        return True

    def stream(self, subject: str) -> InStream:
        """The receiver's side of one of its streams."""
        stream = self.streams.get(subject)
        if stream is None:
            stream = self.streams[subject] = InStream()
        return stream

    def held(self) -> list[tuple[str, Held]]:
        """Its rows with their subjects; they count if it is proven."""
        return [(subject, row) for subject, stream in self.streams.items() for row in stream.rows.values()]

    def check(self) -> None:
        """Assert the invariants of its streams."""
        for stream in self.streams.values():
            stream.check()
