"""Whether agents that learn their ports by probes know what is lost: nothing goes there until it is back.

Agents are asked for their learned maps over and over, from the moment at which links go down until all of
them know, and again from the moment at which the links are back.
"""

import time
from collections.abc import Mapping, Sequence
from functools import cache
from math import inf
from typing import Final

from ark.errors import AgentUnavailable
from ark.fabric import Fabric
from ark.lab.faults import FaultRun, Schedule
from ark.lab.lab import Lab
from ark.lab.outcome import Choice
from ark.lab.relearned import Relearned

RECOVER_S: Final = 30.0
"""How long after the last transfer all maps may take to be whole again, on a busy machine."""

POLL_S: Final = 0.2


class Attention:
    """Turns a schedule, and looks at what agents know of it."""

    def __init__(self, lab: Lab, fabric: Fabric, fault: FaultRun, schedule: Schedule) -> None:
        self._lab = lab
        self._schedule = schedule
        self._hosts = frozenset(fabric.prefill)
        self._waiting: set[str] = set()
        self._lost_s = self._known_s = self._back_s = self._again_s = inf
        self._recovered = False

        @cache
        def lost_between(source: str, target: str) -> frozenset[int]:
            paths = fabric.paths(fabric.nic(source), fabric.nic(target))
            return frozenset(path.index for path in paths if not set(fault.lost).isdisjoint(path.links))

        self._lost_between = lost_between

    @property
    def knows(self) -> bool:
        """Whether all agents know of what happened last."""
        return not self._waiting

    def turn(self, now_s: float) -> None:
        """Break or mend what is due, and ask those agents that are not known to know."""
        began_s = time.monotonic()
        left = self._schedule.left
        self._schedule.turn(now_s)
        if self._schedule.left < left:
            self._waiting = set(self._hosts)
            if self._schedule.left:
                self._lost_s = now_s
            else:
                self._back_s = now_s
        if not self._waiting or now_s == inf:
            return
        self._ask()
        if not self._waiting:
            known_s = now_s + time.monotonic() - began_s
            if self._schedule.left:
                self._known_s = known_s
            else:
                self._again_s = known_s
                self._recovered = True

    def finish(self) -> None:
        """Wait until all maps are whole again, or for ``RECOVER_S``."""
        end_s = time.monotonic() + RECOVER_S
        while self._waiting and time.monotonic() < end_s:
            self._ask()
            if self._waiting:
                time.sleep(POLL_S)
        self._recovered = not self._waiting

    def relearned(self, choices: Sequence[Choice]) -> Relearned:
        """What came of it, for the transfers of the run."""
        there = [one.asked_s for one in choices if one.path in self._lost_between(one.source, one.target)]
        return Relearned(
            self._lost_s,
            self._known_s,
            self._back_s,
            self._again_s,
            early=sum(self._lost_s <= asked_s < min(self._known_s, self._back_s) for asked_s in there),
            late=sum(self._known_s <= asked_s < self._back_s for asked_s in there),
            again=sum(asked_s >= self._back_s for asked_s in there),
            recovered=self._recovered,
        )

    def _ask(self) -> None:
        is_gone = self._schedule.left == 1
        self._waiting = {host for host in self._waiting if not self._knows(host, is_gone=is_gone)}

    def _knows(self, host: str, *, is_gone: bool) -> bool:
        """Whether all maps of a host hold, and have ports for all paths that are there, and for no others."""
        try:
            rows = self._lab.agents.status(host, "maps")["results"]
        except AgentUnavailable:
            return False
        assert isinstance(rows, list)
        return all(self._is_right(row, is_gone=is_gone) for row in rows)

    def _is_right(self, row: Mapping[str, object], *, is_gone: bool) -> bool:
        missing, source, target = row["missing"], row["source"], row["target"]
        assert isinstance(missing, list)
        gone = self._lost_between(str(source), str(target)) if is_gone else frozenset()
        return row["valid"] is True and set(missing) == gone
