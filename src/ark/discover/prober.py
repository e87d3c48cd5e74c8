"""Many searches at once: what to send when, retries, pace, and which answer belongs to which probe. Pure."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from ark.discover.icmp import IcmpError
from ark.discover.pacing import FASTEST_NS, Pacer
from ark.discover.probe import HOPS_MAX, Probe, quoted_mark

ATTEMPTS: Final = 6
ATTEMPTS_THAT_SLOW: Final = 3
"""What was lost more often than that met a silent switch, where going slower would not help."""
TIMEOUT_FIRST_NS: Final = 1_000_000_000
TIMEOUT_MIN_NS: Final = 100_000_000
WINDOW: Final = 16
"""Probes of one pair that wait for an answer or for their turn: enough for 500 a second at 30 ms."""

_Key = tuple[str, str, int, int, int, int]


class Asking(Protocol):
    """What the prober runs: a search for ports, or a check of known ones."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to ask."""

    def start(self) -> None:
        """Begin; called once."""

    def next_probe(self) -> Probe | None:
        """The next probe to send, if there is one now."""

    def answered(self, probe: Probe, router: str, *, expired: bool) -> None:
        """Take the answer to a probe."""

    def gave_up(self, probe: Probe) -> None:
        """Take it that a probe is never answered."""

    def check(self) -> None:
        """Assert what always holds."""


@dataclass(slots=True)
class _Asked:
    search: Asking
    probe: Probe
    attempts: int = 0
    sent_ns: int = 0
    slowed: int = 0


@dataclass(slots=True)
class Counters:
    """What happened, for people: probes sent and sent again, given up, answers, and answers not ours."""

    sent: int = 0
    repeated: int = 0
    given_up: int = 0
    answers: int = 0
    foreign: int = 0


@dataclass(slots=True)
class _Distance:
    """The probes that die at one distance: those that wait for their turn, and the pace."""

    pacer: Pacer
    ready: deque[_Asked] = field(default_factory=deque)


class Prober:
    """Runs searches in parallel; the shell sends what ``probes_to_send`` returns and feeds what it hears.

    Parameters
    ----------
    searches
        One a pair of NICs; ``add`` takes more later.
    nonce
        24 random bits.
    fastest_ns
        The least time between two probes that die at the same distance.
    """

    def __init__(self, searches: Sequence[Asking], *, nonce: int, fastest_ns: int = FASTEST_NS) -> None:
        self.nonce = nonce
        self.counters = Counters()
        self._out: dict[Asking, int] = {}
        self._distances = {hop: _Distance(Pacer(fastest_ns)) for hop in range(1, HOPS_MAX + 1)}
        self._asked: dict[_Key, _Asked] = {}
        self._waiting: dict[_Key, _Asked] = {}
        self._round_trip_ns: int | None = None
        self._added = 0
        for search in searches:
            self.add(search)

    def add(self, search: Asking) -> None:
        """Begin one more search."""
        self._out[search] = 0
        self._added += 1
        search.start()

    @property
    def is_done(self) -> bool:
        """Whether every search has ended."""
        return not self._out

    @property
    def progress(self) -> tuple[int, int]:
        """How many searches have ended, and how many there were."""
        return self._added - len(self._out), self._added

    def probes_to_send(self, now: int) -> list[Probe]:
        """Probes whose time has come, ``now`` in nanoseconds; each is taken for sent."""
        self._expire(now)
        self._refill()
        due: list[Probe] = []
        for distance in self._distances.values():
            while distance.ready and distance.pacer.next_ns <= now:
                asked = distance.ready.popleft()
                key = self._key(asked.probe)
                if key not in self._asked:
                    continue  # a late answer came while it waited for another turn
                asked.attempts += 1
                asked.sent_ns = now
                self._waiting[key] = asked
                distance.pacer.sent(now)
                self.counters.sent += 1
                self.counters.repeated += asked.attempts > 1
                due.append(asked.probe)
        return due

    def icmp_received(self, now: int, error: IcmpError) -> None:
        """Take in an ICMP error; one that quotes no probe of ours changes nothing but a counter."""
        key = (error.src, error.dst, error.proto, error.sport, error.dport, error.mark)
        asked = self._asked.pop(key, None)
        if asked is None:
            self.counters.foreign += 1
            return
        self.counters.answers += 1
        if self._waiting.pop(key, None) is not None and asked.attempts == 1:
            sample = now - asked.sent_ns
            known = self._round_trip_ns
            self._round_trip_ns = sample if known is None else (7 * known + sample) // 8
        self._distances[asked.probe.hop].pacer.answered()
        self._out[asked.search] -= 1
        asked.search.answered(asked.probe, error.router, expired=error.expired)
        self._forget_done()

    def next_deadline(self) -> int | None:
        """When ``probes_to_send`` may have something to do, in nanoseconds; ``None`` when all is done."""
        self._refill()
        if self.is_done:
            return None
        times = [d.pacer.next_ns for d in self._distances.values() if d.ready]
        if self._waiting:
            times.append(min(asked.sent_ns for asked in self._waiting.values()) + self._timeout_ns)
        return min(times, default=0)

    def check(self) -> None:
        """Assert what always holds."""
        assert self._waiting.keys() <= self._asked.keys()
        for search, out in self._out.items():
            assert 0 <= out <= WINDOW
            search.check()

    @property
    def _timeout_ns(self) -> int:
        if self._round_trip_ns is None:
            return TIMEOUT_FIRST_NS
        return min(TIMEOUT_FIRST_NS, max(TIMEOUT_MIN_NS, 8 * self._round_trip_ns))

    def _refill(self) -> None:
        """Take probes from the searches in turn, so that no pair waits for another."""
        taking = True
        while taking:
            taking = False
            for search in self._out:
                probe = search.next_probe() if self._out[search] < WINDOW else None
                if probe is None:
                    continue
                taking = True
                asked = _Asked(search, probe)
                self._out[search] += 1
                key = self._key(probe)
                self._asked[key] = asked
                self._distances[probe.hop].ready.append(asked)
        self._forget_done()

    def _forget_done(self) -> None:
        for search in [one for one in self._out if one.is_done]:
            del self._out[search]

    def _expire(self, now: int) -> None:
        timeout = self._timeout_ns
        for key, asked in list(self._waiting.items()):
            if now - asked.sent_ns < timeout:
                continue
            del self._waiting[key]
            distance = self._distances[asked.probe.hop]
            if asked.attempts <= ATTEMPTS_THAT_SLOW:
                asked.slowed += distance.pacer.lost(asked.sent_ns, now)
            if asked.attempts < ATTEMPTS:
                distance.ready.append(asked)
                continue
            del self._asked[key]
            self.counters.given_up += 1
            distance.pacer.never_answered(asked.slowed)
            self._out[asked.search] -= 1
            asked.search.gave_up(asked.probe)
        self._forget_done()

    def _key(self, probe: Probe) -> _Key:
        flow = probe.flow
        return (flow.src, flow.dst, flow.proto, flow.sport, flow.dport, quoted_mark(probe, self.nonce))
