"""Who has been heard from lately: one lease a host, on the receiver's monotonic clock.

The caller decides what renews a lease (an authenticated datagram with a new number of the current epoch, and
nothing else). All leases have one duration, so the order of renewal is the order of expiry and no heap is
needed.
"""

from collections.abc import Iterator
from typing import Final

from ark.units import NS_PER_S

LEASE_NS: Final = 3 * NS_PER_S
"""Default duration: twelve heartbeats, so that 30 % loss ends a live host's lease once in two million
times."""

HEARTBEAT_NS: Final = NS_PER_S // 4
"""Default time between two heartbeats of a stream."""


class Leases:
    """Hosts with a running lease, in order of expiry; there are at most as many as the caller knows peers."""

    __slots__ = ("_expires_at", "duration_ns")

    def __init__(self, duration_ns: int = LEASE_NS) -> None:
        if duration_ns <= 0:
            raise ValueError(f"a lease must last longer than nothing, got {duration_ns} ns")
        self.duration_ns = duration_ns
        self._expires_at: dict[int, int] = {}

    def __contains__(self, host: int) -> bool:
        return host in self._expires_at

    def __len__(self) -> int:
        return len(self._expires_at)

    def __iter__(self) -> Iterator[int]:
        return iter(self._expires_at)

    def renew(self, host: int, now: int) -> None:
        """Let the lease of ``host`` run for its whole duration from the monotonic time ``now`` on."""
        self._expires_at.pop(host, None)
        self._expires_at[host] = now + self.duration_ns

    def end(self, host: int) -> None:
        """End the lease of ``host`` at once; nothing happens if it has none."""
        self._expires_at.pop(host, None)

    def expired(self, now: int) -> list[int]:
        """Take out and return the hosts whose lease is over at ``now``, longest over first."""
        over: list[int] = []
        for host, expires_at in self._expires_at.items():
            if expires_at > now:
                break
            over.append(host)
        for host in over:
            del self._expires_at[host]
        return over

    def next_deadline(self) -> int | None:
        """When the next lease ends, in monotonic nanoseconds; None without leases."""
        return next(iter(self._expires_at.values()), None)

    def check(self) -> None:
        """Assert that the order of the table is the order of expiry."""
        times = list(self._expires_at.values())
        assert times == sorted(times), times
