"""Each transfer as the counters of its links saw it: a check of where it went that trusts no hash model.

Other traffic adds to a counter, so a link that counted too little while a transfer ran is sure not to have
carried it. ``ark.discover.watch`` judges learned maps by the same numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ark.discover.watch import COUNTED_SHARE_MIN, Watch
from ark.fabric import Fabric
from ark.lab.outcome import LinkBytes
from ark.sim.results import RunResult
from ark.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the link with the fewest bytes on a transfer's path counted while it ran."""

    transfer: int
    path: int
    size_bytes: int
    counted_bytes: int

    @property
    def is_enough(self) -> bool:
        """Whether the transfer can have been there."""
        return self.counted_bytes >= COUNTED_SHARE_MIN * self.size_bytes


def sightings(
    fabric: Fabric, result: RunResult, paths: Sequence[int], counted: LinkBytes
) -> Iterator[Sighting]:
    """One sighting a transfer that crossed the fabric, against the path that it was meant to take."""
    flows = result.flows
    known = set(counted.links)
    for index, path in enumerate(paths):
        ends = fabric.nic(flows.src[index]), fabric.nic(flows.dst[index])
        links = fabric.path(*ends, path).links
        begin_s = int(flows.start_ns[index]) / NS_PER_S
        end_s = begin_s + int(result.fct_ns[index]) / NS_PER_S
        seen = [counted.during(link, begin_s, end_s) for link in links if link in known]
        if seen:
            yield Sighting(index, path, int(flows.size_bytes[index]), min(seen))


def tell_watches(
    watches: Mapping[tuple[str, str], Watch], result: RunResult, found: Sequence[Sighting], *, now: int
) -> None:
    """Have the watches of the transfers' pairs (names of two NICs) judge their maps by what was counted."""
    for one in found:
        watch = watches.get((result.flows.src[one.transfer], result.flows.dst[one.transfer]))
        if watch is not None:
            watch.counted(one.path, expected_bytes=one.size_bytes, counted_bytes=one.counted_bytes, now=now)
