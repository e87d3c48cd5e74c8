"""How fast to probe: as fast as answers keep coming, because routers limit the ICMP errors that they send.

Linux limits a router's errors to one receiver by ``icmp_ratelimit`` (by default one a second after a burst
of six) and all of them by ``icmp_msgs_per_sec``; hardware switches police what reaches their processor.
Neither says so: a limited answer is a lost answer.
"""

from dataclasses import dataclass
from typing import Final

START_NS: Final = 40_000_000
FASTEST_NS: Final = 2_000_000
"""500 probes a second: all of them were answered by Linux with no limit of its own but the global one."""
SLOWEST_NS: Final = 1_100_000_000
"""Just below the rate that Linux allows by default."""

_FASTER_AT_FIRST: Final = 0.9
_FASTER: Final = 0.98
_SLOWER: Final = 1.6


@dataclass(slots=True)
class Pacer:
    """The pace of the probes that die at one distance, which different switches answer than at another.

    The interval shrinks by 10 % with each answer until the first loss, then by 2 %, and grows by 60 % with a
    loss, but once only for all probes that were under way at the time: it settles where 5 % are lost.
    """

    fastest_ns: int = FASTEST_NS
    interval_ns: int = START_NS
    next_ns: int = 0
    slowed_ns: int = -1
    is_settled: bool = False

    def sent(self, now: int) -> None:
        """Note that a probe left at ``now``."""
        self.next_ns = now + self.interval_ns

    def answered(self) -> None:
        """Note an answer."""
        factor = _FASTER if self.is_settled else _FASTER_AT_FIRST
        self.interval_ns = max(self.fastest_ns, int(self.interval_ns * factor))

    def lost(self, sent_ns: int, now: int) -> bool:
        """Note that a probe that left at ``sent_ns`` found no answer; whether that slowed the pace."""
        if sent_ns <= self.slowed_ns:
            return False
        self.is_settled = True
        self.slowed_ns = now
        self.interval_ns = min(SLOWEST_NS, int(self.interval_ns * _SLOWER))
        return True

    def never_answered(self, slowed: int) -> None:
        """Take back how often a probe has slowed the pace that met a silent switch, as it seems now."""
        self.interval_ns = max(self.fastest_ns, int(self.interval_ns / _SLOWER**slowed))
