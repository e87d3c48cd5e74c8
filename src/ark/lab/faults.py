"""Runs in which something breaks, and what must hold all the same.

Each ends with every transfer complete and right, all agents' tables equal, and no claim left.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ark.fabric import Fabric
from ark.lab.lab import Lab

Action = Callable[[Lab], None]

BEGIN, END = 1 / 3, 2 / 3
"""When something breaks and when it is mended, as shares of the time over which transfers begin."""

LOSS_SHARE: Final = 0.2


@dataclass(frozen=True, slots=True)
class FaultRun:
    """One thing that breaks.

    Attributes
    ----------
    what
        For people.
    late
        Hosts whose agents start with ``mend`` only.
    lost
        Links that go down. Transfers may then leave their chosen paths: switches send them elsewhere.
    """

    name: str
    what: str
    break_: Action
    mend: Action
    late: tuple[str, ...] = ()
    lost: tuple[int, ...] = ()


def fault_runs(fabric: Fabric) -> dict[str, FaultRun]:
    """All fault runs of a fabric, by name."""
    spine = fabric.spines[0]
    uplink = next(link for link in fabric.links if link.target == spine)
    host = fabric.prefill[0]
    at_spine, cable = _links_at(fabric, spine), _cable(fabric, uplink.index)
    runs = [
        FaultRun(
            "spine-down",
            f"{spine} goes down and comes back",
            lambda lab: lab.made.apply(fabric.without_links(at_spine)),
            lambda lab: lab.made.apply(fabric),
            lost=tuple(at_spine),
        ),
        FaultRun(
            "link-down",
            f"the cable between {uplink.source} and {uplink.target} goes down and comes back",
            lambda lab: lab.made.apply(fabric.without_links(cable)),
            lambda lab: lab.made.apply(fabric),
            lost=tuple(cable),
        ),
        FaultRun(
            "agent-killed",
            f"the agent of {host} is killed, and starts again",
            lambda lab: lab.agents.kill(host),
            lambda lab: lab.agents.restart(host),
        ),
        FaultRun(
            "management-loss",
            f"the management network loses {LOSS_SHARE:.0%} of all datagrams",
            lambda lab: lab.management.lose(LOSS_SHARE),
            lambda lab: lab.management.lose(0.0),
        ),
        FaultRun(
            "management-cut",
            "the management network is cut, and mended",
            lambda lab: lab.management.cut(),
            lambda lab: lab.management.mend(),
        ),
        FaultRun(
            "late-host",
            f"the agent of {host} starts when the others have long been at work",
            _nothing,
            lambda lab: lab.agents.restart(host),
            late=(host,),
        ),
    ]
    return {run.name: run for run in runs}


class Schedule:
    """Breaks and mends at its times; called over and over with the seconds since the start of a run."""

    def __init__(self, lab: Lab, fault: FaultRun, span_s: float) -> None:
        self._lab = lab
        self._due = [(BEGIN * span_s, fault.break_), (END * span_s, fault.mend)]

    @property
    def left(self) -> int:
        """What is still to come: 2 before something breaks, 0 once it is mended."""
        return len(self._due)

    def turn(self, now_s: float) -> None:
        """Do what is due."""
        while self._due and now_s >= self._due[0][0]:
            _, action = self._due.pop(0)
            action(self._lab)

    def finish(self) -> None:
        """Do what is left, however the run ended."""
        self.turn(float("inf"))


def _nothing(_: Lab) -> None:
    """Nothing breaks."""


def _links_at(fabric: Fabric, switch: str) -> list[int]:
    return [link.index for link in fabric.links if switch in {link.source, link.target}]


def _cable(fabric: Fabric, link: int) -> list[int]:
    ends = {fabric.links[link].source, fabric.links[link].target}
    return [other.index for other in fabric.links if {other.source, other.target} == ends]
