"""What to probe for one pair of NICs, and what the answers mean. Pure: no socket, no clock.

A search goes through phases. *Distance*: how many switches are on the way (unless that is known), by a
traceroute to a port of its own, so that no probe to the transfers' port ever reaches a host. *Survey*: a
dozen ports at every switch: which switches vary? *Repeat*: does one port always go the same way? *Queue
pairs*: where nothing varies, does the destination queue pair decide? *Collect*: more ports, only at the
switches that vary, until each path has as many as are wanted and a path that was missed is unlikely.
"""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import log
from typing import Final

from ark.discover.probe import HOPS_MAX, Flow, Probe
from ark.fabric.five_tuple import UDP
from ark.fabric.pathmap import PORTS_KEPT, Influence
from ark.fabric.roce import DPORT

TRACE_DPORT: Final = 33_434
"""Where traceroute's packets go by custom; nothing listens there."""

SURVEY_PORTS: Final = 12
REPEATED_PORTS: Final = 4
REPEATS: Final = 3
"""Four ports are asked three times more: eight equal choices in a row by a sprayer of two are 1 in 4096."""

MISSED: Final = 0.001
"""Greatest chance that a path with the least share is missed when a search stops on its own."""

PORTS_TRIED_MAX: Final = 4096
"""Ports tried for one pair when not all are asked for; even a path of 1 in 500 is then found."""

ROUNDS: Final = 3
"""How often unanswered ports are asked again at the end: by then the pace suits the routers."""

_SILENT_AFTER: Final = 3
"""A switch is silent when so many probes to it have been given up and none was ever answered."""

_TRACE_WINDOW: Final = 4


class _Phase(Enum):
    DISTANCE = "distance"
    SURVEY = "survey"
    REPEAT = "repeat"
    QUEUE_PAIRS = "queue pairs"
    COLLECT = "collect"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Task:
    """What to learn.

    Attributes
    ----------
    flow
        Addresses, protocol, destination port and queue pair; its source port does not count.
    ports
        Source ports to try, in this order.
    per_path
        How many are wanted for each path; ``None`` asks for every port's path.
    switches
        How many switches are on the way, where that is known.
    paths
        How many paths there are, where that is known: a search that has found all need not look for more.
    share_min
        The least share of all ports that a path may have and must still be found by; by default half of that
        of one more equal path.
    names
        The switch that an address belongs to; other addresses stand for themselves.
    """

    flow: Flow
    ports: Sequence[int]
    per_path: int | None = PORTS_KEPT
    switches: int | None = None
    paths: int | None = None
    share_min: float | None = None
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was learned about one pair.

    Attributes
    ----------
    flow
        The flow of the task.
    hops
        The switches that every port crosses, by position from 1; ``None`` where they vary or are silent.
    varying
        Positions at which the port decides.
    ports
        For each port that is known, the switches at the varying positions.
    influence, reason
        Whether the port decides the path, and that in a sentence.
    unanswered
        Ports whose probes were not all answered.
    silent
        Positions of switches that never answer.
    """

    flow: Flow
    hops: tuple[str | None, ...]
    varying: tuple[int, ...]
    ports: Mapping[int, tuple[str, ...]]
    influence: Influence
    reason: str
    unanswered: tuple[int, ...]
    silent: tuple[int, ...]

    def switches(self, port: int) -> tuple[str | None, ...]:
        """All switches on the way of a known port."""
        at = dict(zip(self.varying, self.ports[port], strict=True))
        return tuple(at.get(position, name) for position, name in enumerate(self.hops, 1))


class Search:
    """One pair's search: ``next_probe`` says what to send, ``answered`` and ``gave_up`` what came of it."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._queue: deque[Probe] = deque()
        self._out = 0
        self._phase = _Phase.DISTANCE if task.switches is None else _Phase.SURVEY
        self._switches = task.switches or 0
        self._traced: dict[int, str | None] = {}
        self._target_at: int | None = None
        self._seen: dict[tuple[int, int], str] = {}
        self._repeated: dict[int, set[str]] = {}
        self._of_queue_pairs: set[str] = set()
        self._failures: Counter[int] = Counter()
        self._answers: Counter[int] = Counter()
        self._silent: set[int] = set()
        self._varying: tuple[int, ...] = ()
        self._tried = 0
        self._rounds = 0
        self._found: dict[int, tuple[str, ...]] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()
        if self._phase is _Phase.SURVEY:
            self._start_survey()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to ask."""
        return self._phase is _Phase.DONE

    def next_probe(self) -> Probe | None:
        """The next probe to send; ``None`` while answers are awaited, and when all is known."""
        if not self._queue and self._phase is _Phase.COLLECT:
            self._ask_more()
        if not self._queue:
            return None
        self._out += 1
        return self._queue.popleft()

    def answered(self, probe: Probe, router: str, *, expired: bool) -> None:
        """Take the answer to a probe: who sent it, and whether the probe expired on its way."""
        name = self.task.names.get(router, router)
        if self._phase is _Phase.DISTANCE:
            if expired:
                self._traced[probe.hop] = name
            elif router == self.task.flow.dst:
                self._target_at = min(probe.hop, self._target_at or probe.hop)
            else:
                self._traced[probe.hop] = None
        elif expired:
            self._answers[probe.hop] += 1
            self._note(probe, name)
        self._settled()

    def gave_up(self, probe: Probe) -> None:
        """Take it that a probe is never answered."""
        if self._phase is _Phase.DISTANCE:
            self._traced[probe.hop] = None
        else:
            self._failures[probe.hop] += 1
            if not self._answers[probe.hop] and self._failures[probe.hop] >= _SILENT_AFTER:
                self._silent.add(probe.hop)
                self._queue = deque(waiting for waiting in self._queue if waiting.hop != probe.hop)
        self._settled()

    def finding(self) -> Finding:
        """What is known; also before the end."""
        positions = range(1, self._switches + 1)
        at: dict[int, set[str]] = {position: set() for position in positions}
        for (_, position), name in self._seen.items():
            at[position].add(name)
        influence, reason = self._meaning()
        tried = self.task.ports[: self._tried]
        return Finding(
            self.task.flow,
            tuple(next(iter(at[k])) if len(at[k]) == 1 else None for k in positions),
            self._varying,
            dict(sorted(self._found.items())),
            influence,
            reason,
            tuple(sorted(port for port in tried if port not in self._found)),
            tuple(sorted(self._silent)),
        )

    def check(self) -> None:
        """Assert what always holds."""
        assert self._out >= 0
        assert sum(self._counts.values()) == len(self._found)
        assert not (self.is_done and (self._queue or self._out))

    # Phases

    def _settled(self) -> None:
        """One probe less is under way; with the last one of a phase the next phase begins."""
        self._out -= 1
        if self._queue or self._out:
            return
        match self._phase:
            case _Phase.DISTANCE:
                self._trace_on()
            case _Phase.SURVEY:
                self._phase = _Phase.REPEAT
                self._varying = self._positions_that_vary()
                for turn in range(1, REPEATS + 1):
                    self._ask(self.task.ports[:REPEATED_PORTS], self._varying, turn=turn)
                if not self._queue:
                    self._after_repeats()
            case _Phase.REPEAT:
                self._after_repeats()
            case _Phase.QUEUE_PAIRS:
                self._collect()
            case _:
                self._ask_more()

    def start(self) -> None:
        """Begin; ``next_probe`` gives nothing before."""
        if self._phase is _Phase.DISTANCE:
            self._trace_on()

    def _trace_on(self) -> None:
        """Ask the next few switches, or begin the survey when the target was reached or all is silent."""
        last = max(self._traced, default=0)
        if self._target_at is not None:
            self._switches = self._target_at - 1
        else:
            speaking = [hop for hop, name in self._traced.items() if name is not None]
            reached = max(speaking, default=0)
            if last < HOPS_MAX and last - reached < _TRACE_WINDOW:
                flow = replace(self.task.flow, proto=UDP, dport=TRACE_DPORT, sport=self.task.ports[0])
                end = min(HOPS_MAX, last + _TRACE_WINDOW)
                self._queue += [Probe(flow, hop) for hop in range(last + 1, end + 1)]
                return
            self._switches = reached
        self._start_survey()

    def _start_survey(self) -> None:
        self._phase = _Phase.SURVEY
        self._tried = min(SURVEY_PORTS, len(self.task.ports))
        self._ask(self.task.ports[: self._tried], range(1, self._switches + 1))
        if not self._queue:
            self._phase = _Phase.DONE

    def _after_repeats(self) -> None:
        flow = self.task.flow
        if not self._varying and flow.proto == UDP and flow.dport == DPORT:
            self._phase = _Phase.QUEUE_PAIRS
            start = replace(flow, sport=self.task.ports[0])
            # Numbers that differ in high and low bits; the true one counts among them.
            pairs = [flow.dest_qp ^ (k * 0x01_0203 & 0xFF_FFFF) for k in range(1, SURVEY_PORTS + 1)]
            self._queue += [
                Probe(replace(start, dest_qp=pair), hop) for pair in pairs for hop in self._speaking()
            ]
            if self._queue:
                return
        self._collect()

    def _positions_that_vary(self) -> tuple[int, ...]:
        names: dict[int, set[str]] = {}
        for (_, position), name in self._seen.items():
            names.setdefault(position, set()).add(name)
        return tuple(position for position, some in sorted(names.items()) if len(some) > 1)

    def _collect(self) -> None:
        self._phase = _Phase.COLLECT
        if self._meaning()[0] is Influence.SPRAYED:
            self._phase = _Phase.DONE
            return
        for port in self.task.ports[: self._tried]:
            self._complete(port)
        if not self._varying:
            self._phase = _Phase.DONE
            return
        self._ask_more()

    def _ask_more(self) -> None:
        """Queue one port more if one is needed; end when none is and no answer is awaited."""
        most = len(self.task.ports) if self.task.per_path is None else PORTS_TRIED_MAX
        if self._tried < min(most, len(self.task.ports)) and not self._has_enough():
            self._ask(self.task.ports[self._tried : self._tried + 1], self._varying)
            self._tried += 1
        elif not self._out and not self._ask_again():
            self._phase = _Phase.DONE

    def _ask_again(self) -> bool:
        """Ask the ports once more that went unanswered, where every port is wanted and others answered."""
        if self.task.per_path is not None or not self._found or self._rounds == ROUNDS:
            return False
        self._rounds += 1
        for port in self.task.ports:
            missing = [hop for hop in self._varying if (port, hop) not in self._seen]
            self._ask([port], missing)
        return bool(self._queue)

    def _has_enough(self) -> bool:
        per_path = self.task.per_path
        if per_path is None:
            return False
        if not self._counts:
            return self._tried >= 4 * SURVEY_PORTS  # nobody answers
        if min(self._counts.values()) < per_path:
            return False
        found = len(self._counts)
        if found == self.task.paths:
            return True
        share = self.task.share_min or 1 / (2 * (found + 1))
        return len(self._found) >= ports_needed(found, share)

    def _ask(self, ports: Sequence[int], positions: Sequence[int], *, turn: int = 0) -> None:
        self._queue += [
            Probe(replace(self.task.flow, sport=port), hop, turn)
            for port in ports
            for hop in positions
            if hop not in self._silent
        ]

    def _speaking(self) -> list[int]:
        return [hop for hop in range(1, self._switches + 1) if self._answers[hop]]

    # Answers

    def _note(self, probe: Probe, name: str) -> None:
        port, hop = probe.flow.sport, probe.hop
        if self._phase is _Phase.QUEUE_PAIRS:
            if name != self._seen.get((port, hop), name):
                self._of_queue_pairs.add(name)
        elif self._phase is _Phase.REPEAT:
            if name != self._seen.setdefault((port, hop), name):
                self._repeated.setdefault(port, set()).add(name)
        else:
            self._seen[port, hop] = name
            if self._phase is _Phase.COLLECT:
                self._complete(port)

    def _complete(self, port: int) -> None:
        """Count a port once all switches that vary are known for it."""
        names = [self._seen.get((port, hop)) for hop in self._varying]
        known = tuple(name for name in names if name is not None)
        if port not in self._found and len(known) == len(names):
            self._found[port] = known
            self._counts[known] += 1

    def _meaning(self) -> tuple[Influence, str]:
        if len(self._repeated) > 1:
            return Influence.SPRAYED, (
                "probes of one source port went different ways, so packets are sprayed "
                "(or the fabric changed meanwhile)"
            )
        if self._varying:
            return Influence.PORT, "the source port decides the path"
        if self._of_queue_pairs:
            return Influence.NOT_HASHED, (
                "the destination queue pair decides the path and the source port does not"
            )
        if not self._answers:
            return Influence.NOT_HASHED, "no switch on the way answered, so nothing is known about the paths"
        if (self.task.paths or 1) > 1:
            return Influence.NOT_HASHED, (
                f"there are {self.task.paths} paths, but all source ports took the same one"
            )
        return Influence.ONE_PATH, "all source ports took the same path"


def ports_needed(found: int, share: float) -> int:
    """How many ports to try before it is unlikely (``MISSED``) that there is a path more than were found.

    Parameters
    ----------
    found
        Paths found so far.
    share
        The share of the ports that each path has at least, 0 to 1 exclusive.

    Source: the stopping rule of multipath detection (Augustin, Friedman, Teixeira, "Multipath tracing with
    Paris traceroute", 2007), by the union bound over the paths, for unequal shares.
    """
    return -int(log((found + 1) / MISSED) / log(1 - share) // 1)
