"""What one run in the lab came to: the results that simulations have too, and what only real bytes show."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ark.fabric import Fabric, route_flows
from ark.lab.machine import Busy
from ark.lab.orders import Done
from ark.lab.relearned import Relearned
from ark.sim.results import RunResult, SpineSeries
from ark.sim.spine_log import SpineLog
from ark.units import NS_PER_S
from ark.workload.flows import Flows

TCP = 6
ELSEWHERE_MAX = 0.01
"""Share of bytes beside the chosen paths from which on a run counts as wrong: counters also see what the
kernel sends twice."""

NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class LinkBytes:
    """Bytes on some links over time: int64[time, link] since the start of the run, headers included."""

    links: tuple[int, ...]
    time_s: NDArray[np.float64]
    sent: NDArray[np.int64]

    def during(self, link: int, begin_s: float, end_s: float) -> int:
        """Bytes on a link between the last reading before ``begin_s`` and the first one after ``end_s``."""
        column = self.sent[:, self.links.index(link)]
        first = max(0, int(np.searchsorted(self.time_s, begin_s, side="right")) - 1)
        last = min(len(self.time_s) - 1, int(np.searchsorted(self.time_s, end_s, side="left")))
        return int(column[last] - column[first])


class Choice(NamedTuple):
    """What ARK answered to a transfer, and when it was asked (seconds since the start of the run)."""

    asked_s: float
    source: str
    target: str
    path: int | None


@dataclass(frozen=True, slots=True)
class Emulated:
    """One run.

    Attributes
    ----------
    result
        In the form of the simulators.
    kinds
        How many transfers ARK answered how.
    failed
        What went wrong with single transfers; empty if all came whole and right.
    strayed
        Transfers whose 5-tuple leads over another path than the one that ARK chose.
    elsewhere_share
        Of the bytes on the fabric's links: how many were not on the links of the chosen paths.
    uncounted
        Transfers on whose path a link counted fewer bytes than theirs while they ran.
    retransmits
        TCP segments that were sent twice.
    late_p95_s
        How late senders woke up.
    spoiled
        Why the times say more about the machine than about the network; empty where they do not.
    unsettled
        What the agents still claimed or disagreed on when all was over; empty if nothing.
    choices
        What ARK answered, where it was asked; in no order.
    relearned
        What agents knew of lost links, where they learn their ports by probes.
    """

    result: RunResult
    bytes: LinkBytes
    busy: Busy
    kinds: dict[str, int]
    failed: list[str]
    strayed: int
    elsewhere_share: float
    uncounted: int
    retransmits: int
    late_p95_s: float
    spoiled: str
    unsettled: str
    choices: tuple[Choice, ...] = ()
    relearned: Relearned | None = None

    def wrongs(self) -> list[str]:
        """What must not be: wrong bytes, wrong paths, claims that stay."""
        found = list(self.failed[:NAMED_MAX])
        if len(self.failed) > NAMED_MAX:
            found.append(f"and {len(self.failed) - NAMED_MAX} more transfers failed")
        if self.strayed:
            found.append(f"{self.strayed} transfers did not take the path that ARK chose")
        if self.elsewhere_share > ELSEWHERE_MAX:
            found.append(f"{self.elsewhere_share:.1%} of bytes were on other links than the chosen paths'")
        if self.uncounted:
            found.append(f"{self.uncounted} transfers were not counted on the links of their paths")
        if self.unsettled:
            found.append(self.unsettled)
        return found


def paths_taken(fabric: Fabric, flows: Flows, done: Sequence[Done]) -> NDArray[np.int32]:
    """The path of each transfer by the exact hash of its switches."""
    numbers = {nic.name: nic.index for nic in fabric.nics}
    return route_flows(
        fabric,
        np.array([numbers[name] for name in flows.src]),
        np.array([numbers[name] for name in flows.dst]),
        np.array([one.source_port for one in done]),
        flows.dport,
        TCP,
    )


def kinds_of(done: Sequence[Done]) -> dict[str, int]:
    """How many transfers ARK answered how; nothing where it was not asked."""
    return dict(
        Counter(one.kind if one.kind != "none" else f"none: {one.reason}" for one in done if one.kind)
    )


def choices_of(flows: Flows, done: Sequence[Done]) -> tuple[Choice, ...]:
    """What ARK answered to each transfer for which it was asked."""
    return tuple(
        Choice(
            (int(flows.start_ns[one.transfer]) + one.late_ns) / NS_PER_S,
            flows.src[one.transfer],
            flows.dst[one.transfer],
            one.path,
        )
        for one in done
        if one.kind
    )


def elsewhere(
    fabric: Fabric, flows: Flows, size_bytes: NDArray[np.int64], paths: Sequence[int], counted: LinkBytes
) -> float:
    """Share of the counted bytes that were on other links than those of ``paths``.

    The counters have headers too, equally on all links; so the shares of the links are compared.
    """
    place = {link: number for number, link in enumerate(counted.links)}
    expected = np.zeros(len(counted.links))
    for index, path in enumerate(paths):
        source, target = fabric.nic(flows.src[index]), fabric.nic(flows.dst[index])
        for link in fabric.path(source, target, path).links:
            if link in place:
                expected[place[link]] += size_bytes[index]
    total = counted.sent[-1] if len(counted.sent) else expected
    if not total.sum() or not expected.sum():
        return 0.0
    return float(np.abs(total / total.sum() - expected / expected.sum()).sum() / 2)


def links_used(fabric: Fabric, flows: Flows) -> tuple[int, ...]:
    """The links inside of the fabric that transfers between these hosts can take."""
    found: dict[int, None] = {}
    for src, dst in dict.fromkeys(zip(flows.src, flows.dst, strict=True)):
        for path in fabric.paths(fabric.nic(src), fabric.nic(dst)):
            found |= dict.fromkeys(link for link in path.links if fabric.is_fabric_link(link))
    return tuple(sorted(found))


def spine_series(fabric: Fabric, spines: Sequence[str], flows: Flows, done: Sequence[Done]) -> SpineSeries:
    """How many transfers each spine carried over time, from their own clocks."""
    log = SpineLog(tuple(fabric.spines))
    numbers = {name: number for number, name in enumerate(fabric.spines)}
    for index, one in enumerate(done):
        number = numbers.get(spines[index], -1)
        start_ns = int(flows.start_ns[index])
        log.enter(start_ns + one.late_ns + one.reserve_ns, number)
        log.leave(start_ns + one.fct_ns, number)
    return log.series()
