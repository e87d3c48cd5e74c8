"""Notice that a learned map is no longer true, while transfers run. Pure.

::

    valid ──── a port moved, a path is silent, or counters disagree ───▶ suspect
      ▲  ▲                                                                 │  │
      │  └──── two ports of every path, and what moved, are as learned ────┘  │
      │                                                                       ▼
      └──────────────────── learned anew, with the next epoch ◀──────────── stale

A map that is not valid gives no ports: transfers go unsteered, as without ARK, until it is valid again.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from ark.discover.check import Check, Verdict
from ark.discover.learned import LearnedMap, renewed
from ark.discover.probe import Flow
from ark.discover.search import Finding, Search
from ark.errors import ConfigError
from ark.fabric import Influence

INTERVAL_NS: Final = 10_000_000_000
"""One probe a pair and 10 s: a hundred peers cost ten probes a second."""

SUSPECT_PORTS: Final = 2
SILENT_MAX: Final = 3
"""Checks of one path in a row that find no answer before the map is suspected: single ones get lost."""

COUNTED_SHARE_MIN: Final = 0.9
"""Least share of a transfer's bytes that its uplink must have counted meanwhile."""

NEWS_MAX: Final = 64
"""What happened last; older entries are dropped."""


class State(StrEnum):
    """Whether a map can be used."""

    VALID = "valid"
    SUSPECT = "suspect"
    STALE = "stale"


class Watch:
    """The life of one pair's map. The shell calls ``step`` when ``next_ns`` has come or a search has ended.

    Parameters
    ----------
    learned
        The map, with the state in which it was left; it must say at which switches its ports differ.
    names
        The switch that an address belongs to.
    search
        Makes the search that learns the map anew.
    number
        Makes a map out of what such a search found, with an epoch; raises ``ConfigError`` where that makes
        no sense.
    now, interval_ns
        When the watch begins, and the time between two checks, in nanoseconds.
    turn
        Which path is checked first: maps that begin with different ones notice sooner what concerns one.
    """

    def __init__(
        self,
        learned: LearnedMap,
        *,
        names: Mapping[str, str],
        search: Callable[[], Search],
        number: Callable[[Finding, int], LearnedMap],
        now: int,
        interval_ns: int = INTERVAL_NS,
        turn: int = 0,
    ) -> None:
        self.learned = learned
        self.state = State(learned.state)
        self.epoch = learned.epoch + (self.state is State.STALE)
        self.news: deque[str] = deque(maxlen=NEWS_MAX)
        self.next_ns = now + interval_ns if self.state is State.VALID else now
        self._names = names
        self._search = search
        self._number = number
        self._interval_ns = interval_ns
        self._running: Check | Search | None = None
        self._is_of_all = False
        self._turns = turn
        self._silent: Counter[int] = Counter()
        self._moved: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a search or check is under way, so that time alone changes nothing."""
        return self._running is not None and not self._running.is_done

    @property
    def current(self) -> LearnedMap:
        """The map with its state, as others may use it."""
        return replace(self.learned, state=self.state.value)

    def ports(self, path: int) -> tuple[int, ...]:
        """The ports that lead to a path; none while the map is not valid."""
        return self.current.path_map().ports(path)

    def hurry(self, now: int) -> None:
        """Check a valid map at once, because another one is not true any more."""
        if self.state is State.VALID:
            self.next_ns = min(self.next_ns, now)

    def step(self, now: int) -> Check | Search | None:
        """Take the result of what has ended; return what is to be probed next, if it is time."""
        if self._running is not None:
            if not self._running.is_done:
                return None
            ended, self._running = self._running, None
            if isinstance(ended, Check):
                self._checked(ended, now)
            else:
                self._searched(ended, now)
        if now < self.next_ns:
            return None
        self._is_of_all = self.state is State.SUSPECT
        match self.state:
            case State.VALID:
                self._running = self._check(self._one_port())
            case State.SUSPECT:
                self._running = self._check(self._ports_of_every_path())
            case State.STALE:
                self._running = self._search()
        self.next_ns = now + self._interval_ns
        return self._running

    def counted(self, path: int, *, expected_bytes: int, counted_bytes: int, now: int) -> None:
        """Compare a transfer with the counter of its path's uplink over the same time.

        Other traffic adds to a counter, so that only one that rose too little speaks against the map.
        """
        if self.state is State.VALID and counted_bytes < COUNTED_SHARE_MIN * expected_bytes:
            share = counted_bytes / expected_bytes
            self._suspect(f"path {path} counted {share:.0%} of a transfer's bytes", now)

    def check(self) -> None:
        """Assert what always holds."""
        assert self.epoch >= self.learned.epoch
        assert (self.state is State.STALE) == (self.epoch > self.learned.epoch)

    # Steps

    def _one_port(self) -> list[int]:
        """The next port in turn: one of each path, then the next one of each."""
        paths = [path for path in self.learned.paths if path.ports]
        turn, place = divmod(self._turns, max(1, len(paths)))
        return [paths[place].ports[turn % len(paths[place].ports)]] if paths else []

    def _ports_of_every_path(self) -> list[int]:
        """Some of each, other ones each time, and the one that was seen to move: of a group that has grown
        again, few ports may have moved."""
        some = [
            path.ports[(self._turns + place) % len(path.ports)]
            for path in self.learned.paths
            for place in range(min(SUSPECT_PORTS, len(path.ports)))
        ]
        return some if self._moved is None else [*some, self._moved]

    def _check(self, ports: Sequence[int]) -> Check:
        one = self.learned
        flow = Flow(one.source_address, one.target_address, one.proto, 0, one.dport, one.dest_qp)
        self._turns += 1
        expected = {
            port: {place: hop for place, hop in enumerate(path.hops, 1) if hop and place in one.varying}
            for path in one.paths
            for port in ports
            if port in path.ports
        }
        return Check(flow, expected, self._names, turn=self._turns)

    def _checked(self, check: Check, now: int) -> None:
        by_path: dict[int, list[Verdict]] = {}
        self._moved = None
        for port, verdict in check.verdicts.items():
            if verdict is Verdict.MOVED:
                self._moved = port
            path = self.learned.path_of(port)
            if path is not None:
                by_path.setdefault(path, []).append(verdict)
        if self.state is State.VALID:
            for path, verdicts in by_path.items():
                self._judge_one(path, verdicts[0], now)
        elif self._is_of_all:  # else a counter has spoken meanwhile: one port's verdict says too little
            self._judge_all(by_path, now)

    def _judge_one(self, path: int, verdict: Verdict, now: int) -> None:
        self._silent[path] = self._silent[path] + 1 if verdict is Verdict.SILENT else 0
        if verdict is Verdict.SILENT:  # the same path again at once, by its next port
            self._turns += len([one for one in self.learned.paths if one.ports]) - 1
            self.next_ns = now
        if verdict is Verdict.MOVED:
            self._suspect(f"a port of path {path} takes another path", now)
        elif self._silent[path] >= SILENT_MAX:
            self._suspect(f"path {path} does not answer", now)

    def _judge_all(self, by_path: Mapping[int, Sequence[Verdict]], now: int) -> None:
        moved = [path for path, verdicts in by_path.items() if Verdict.MOVED in verdicts]
        silent = [path for path, verdicts in by_path.items() if set(verdicts) == {Verdict.SILENT}]
        if len(silent) == len(by_path):
            self.news.append("no switch answers; the map stays unused until one does")
        elif len(moved) == 1 and not silent:
            self._outdate(f"path {moved[0]} is gone or has fewer ports: some moved to other paths", now)
        elif moved:
            self._outdate(
                f"ports of {len(moved)} of {len(by_path)} paths moved: new seed, or group resized", now
            )
        elif silent:
            self._outdate(f"path {', '.join(map(str, silent))} does not answer any more", now)
        else:
            self.state = State.VALID
            self._silent.clear()
            self.news.append("all paths are as learned")

    def _searched(self, search: Search, now: int) -> None:
        self.next_ns = now + self._interval_ns
        finding = search.finding()
        if finding.influence is Influence.SPRAYED or not finding.ports:
            self.news.append(finding.reason)
            return
        try:
            found = self._number(finding, self.epoch)
        except ConfigError as error:  # what a search finds while routes change may be no path at all
            self.news.append(f"learned nothing: {error}")
            return
        self.learned = renewed(found, self.learned)
        self.state = State.VALID
        self._silent.clear()
        gone = [path.path for path in self.learned.paths if not path.ports]
        lost = f"; none leads to path {', '.join(map(str, gone))}" if gone else ""
        self.news.append(f"learned anew as epoch {self.epoch}: ports of {len(found.paths)} paths{lost}")

    def _suspect(self, why: str, now: int) -> None:
        self.state = State.SUSPECT
        self.next_ns = now
        self.news.append(f"suspect: {why}")

    def _outdate(self, why: str, now: int) -> None:
        self.state = State.STALE
        self.epoch += 1
        self.next_ns = now
        self.news.append(f"stale: {why}")


def step_all(watches: Sequence[Watch], now: int) -> list[Check | Search]:
    """Step the watches of one host; where a map turns out not to be true, those of the same NIC are next."""
    due = []
    for one in watches:
        epoch = one.epoch
        asking = one.step(now)
        if asking is not None:
            due.append(asking)
        if one.epoch > epoch:
            for other in watches:
                if other.learned.source == one.learned.source:
                    other.hurry(now)
    return due
