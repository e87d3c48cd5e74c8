"""Notice that a learned map is no longer true, while transfers run. Pure.

::

    valid ──── a port moved, a path is silent, or counters disagree ───▶ suspect
      ▲  ▲                                                                 │  │
      │  └──────────────── one port or two of every path are as learned ───┘  │
      │                                                                       ▼
      └──────────────────── learned anew, with the next epoch ◀──────────── stale

A map that is not valid gives no ports: transfers go unsteered, as without ARK, until it is valid again.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from ark.discover.learned import LearnedMap
from ark.discover.probe import Flow, Probe
from ark.discover.search import Finding, Search

INTERVAL_NS: Final = 10_000_000_000
"""One probe a pair and 10 s: a hundred peers cost ten probes a second."""

SUSPECT_PORTS: Final = 2
SILENT_MAX: Final = 3
"""Checks of one path in a row that find no answer before the map is suspected: single ones get lost."""

COUNTED_SHARE_MIN: Final = 0.9
"""Least share of a transfer's bytes that its uplink must have counted meanwhile."""

NEWS_MAX: Final = 64
"""What happened last; older entries are dropped."""


class Verdict(StrEnum):
    """What a check says of one port."""

    SAME = "same"
    MOVED = "moved"
    SILENT = "silent"


class Check:
    """Asks again which switches some ports cross, and compares; ``Prober`` runs it.

    Parameters
    ----------
    flow
        The pair's flow.
    expected
        The name of the switch at each position, for each port.
    names
        The switch that an address belongs to.
    """

    def __init__(
        self, flow: Flow, expected: Mapping[int, Mapping[int, str]], names: Mapping[str, str], *, turn: int
    ) -> None:
        self.expected = expected
        self._names = names
        self._queue = deque(
            Probe(replace(flow, sport=port), position, turn)
            for port, positions in expected.items()
            for position in positions
        )
        self._left = len(self._queue)
        self._verdicts: dict[int, Verdict] = dict.fromkeys(expected, Verdict.SAME)

    @property
    def is_done(self) -> bool:
        """See ``Asking``."""
        return not self._left

    @property
    def verdicts(self) -> Mapping[int, Verdict]:
        """What became of each port; a port that moved counts as moved also if a switch was silent."""
        return self._verdicts

    def start(self) -> None:
        """See ``Asking``."""

    def next_probe(self) -> Probe | None:
        """See ``Asking``."""
        return self._queue.popleft() if self._queue else None

    def answered(self, probe: Probe, router: str, *, expired: bool) -> None:
        """See ``Asking``."""
        self._left -= 1
        port = probe.flow.sport
        if not expired or self._names.get(router, router) != self.expected[port][probe.hop]:
            self._verdicts[port] = Verdict.MOVED

    def gave_up(self, probe: Probe) -> None:
        """See ``Asking``."""
        self._left -= 1
        if self._verdicts[probe.flow.sport] is Verdict.SAME:
            self._verdicts[probe.flow.sport] = Verdict.SILENT

    def check(self) -> None:
        """See ``Asking``."""
        assert 0 <= len(self._queue) <= self._left


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
        The map; its influence must be the port.
    names
        The switch that an address belongs to.
    search
        Makes the search that learns the map anew.
    number
        Makes a map out of what such a search found, with an epoch.
    now, interval_ns
        When the watch begins, and the time between two checks, in nanoseconds.
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
    ) -> None:
        self.learned = learned
        self.state = State.VALID
        self.epoch = learned.epoch
        self.news: deque[str] = deque(maxlen=NEWS_MAX)
        self.next_ns = now + interval_ns
        self._names = names
        self._search = search
        self._number = number
        self._interval_ns = interval_ns
        self._running: Check | Search | None = None
        self._turns = 0
        self._silent: Counter[int] = Counter()

    @property
    def is_waiting(self) -> bool:
        """Whether a search or check is under way, so that time alone changes nothing."""
        return self._running is not None and not self._running.is_done

    def ports(self, path: int) -> tuple[int, ...]:
        """The ports that lead to a path; none while the map is not valid."""
        if self.state is not State.VALID:
            return ()
        return self.learned.path_map().ports(path)

    def step(self, now: int) -> "Check | Search | None":
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
        return [port for path in self.learned.paths for port in path.ports[:SUSPECT_PORTS]]

    def _check(self, ports: Sequence[int]) -> Check:
        one = self.learned
        flow = Flow(one.source_address, one.target_address, one.proto, 0, one.dport, one.dest_qp)
        self._turns += 1
        expected = {
            port: {place: path.hops[place - 1] for place in one.varying if path.hops[place - 1]}
            for path in one.paths
            for port in ports
            if port in path.ports
        }
        return Check(flow, expected, self._names, turn=self._turns)

    def _checked(self, check: Check, now: int) -> None:
        by_path: dict[int, list[Verdict]] = {}
        for port, verdict in check.verdicts.items():
            path = self.learned.path_of(port)
            if path is not None:
                by_path.setdefault(path, []).append(verdict)
        if self.state is State.VALID:
            for path, verdicts in by_path.items():
                self._judge_one(path, verdicts[0], now)
        else:
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
        finding = search.finding()
        if not finding.ports and finding.influence.value == "not-hashed":
            self.news.append(finding.reason)
            return
        self.learned = self._number(finding, self.epoch)
        self.state = State.VALID
        self._silent.clear()
        self.next_ns = now + self._interval_ns
        self.news.append(f"learned anew as epoch {self.epoch}: {len(self.learned.paths)} paths")

    def _suspect(self, why: str, now: int) -> None:
        self.state = State.SUSPECT
        self.next_ns = now
        self.news.append(f"suspect: {why}")

    def _outdate(self, why: str, now: int) -> None:
        self.state = State.STALE
        self.epoch += 1
        self.next_ns = now
        self.news.append(f"stale: {why}")
