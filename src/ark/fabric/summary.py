"""What a fabric amounts to, in the figures that tell at a glance whether the file says what was meant."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from ark.fabric.reach import farthest, unreachable
from ark.fabric.topology import Fabric
from ark.units import format_rate


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one fabric.

    Attributes
    ----------
    switches
        Number of each kind.
    links
        Cables, each of them two directed links.
    far_pair, far_paths
        Two NICs that are as far apart as any, and how many equal-cost paths between them are up; nothing
        where no two NICs reach each other.
    diameter_links
        Links on a path between them, from NIC to NIC.
    oversubscription
        The largest ratio, over the switches with hosts, of the rates of the links to hosts and of those to
        other switches, counting what is up; nothing where no switch has both.
    down
        Names of switches that are down, and ``a - b`` for links that are down between two ends that are up.
    """

    name: str
    hosts: int
    nics: int
    switches: dict[str, int]
    links: int
    spines: int
    prefill_hosts: int
    decode_hosts: int
    far_pair: tuple[str, str] | None
    far_paths: int
    diameter_links: int
    oversubscription: float | None
    prefill_capacity_bps: int
    down: tuple[str, ...]
    warnings: tuple[str, ...]
    digest: str


def summarise(fabric: Fabric) -> Summary:
    """Work out the figures of a fabric."""
    far = farthest(fabric)
    return Summary(
        name=fabric.name,
        hosts=len(fabric.hosts),
        nics=len(fabric.nics),
        switches=dict(Counter(switch.kind for switch in fabric.switches)),
        links=len(fabric.links) // 2,
        spines=len(fabric.spines),
        prefill_hosts=len(fabric.prefill),
        decode_hosts=len(fabric.decode),
        far_pair=None if far is None else _nics(fabric, far.source, far.target),
        far_paths=0 if far is None else len(fabric.up_paths(far.source, far.target)),
        diameter_links=0 if far is None else far.links + 2,
        oversubscription=_oversubscription(fabric),
        prefill_capacity_bps=fabric.prefill_capacity_bps,
        down=_down(fabric),
        warnings=tuple(_warnings(fabric)),
        digest=fabric.digest().hex(),
    )


def _nics(fabric: Fabric, source: int, target: int) -> tuple[str, str]:
    """The first NIC of one attachment and the last of the other."""
    first = next(nic.name for nic in fabric.nics if nic.attachment == source)
    last = next(nic.name for nic in reversed(fabric.nics) if nic.attachment == target)
    return first, last


def _oversubscription(fabric: Fabric) -> float | None:
    switches = {switch.name for switch in fabric.switches}
    down_bps: Counter[str] = Counter()
    up_bps: Counter[str] = Counter()
    for link in fabric.links:
        if link.up and link.source in switches:
            (up_bps if link.target in switches else down_bps)[link.source] += link.rate_bps
    ratios = [down_bps[name] / up_bps[name] for name in down_bps if up_bps[name]]
    return max(ratios, default=None)


def _down(fabric: Fabric) -> tuple[str, ...]:
    switches = [switch.name for switch in fabric.switches if not switch.up]
    gone = set(switches)
    links = [
        f"{link.source} - {link.target}"
        for link in fabric.links[::2]
        if not link.up and link.source not in gone and link.target not in gone
    ]
    return (*switches, *links)


def _warnings(fabric: Fabric) -> Iterator[str]:
    """What is allowed, but perhaps not meant."""
    apart = unreachable(fabric)
    if apart is not None:
        one, other = (
            next(nic.name for nic in fabric.nics if nic.attachment == number) for number in apart.example
        )
        yield f"no path is up between {apart.pairs:,} pairs of leaves, for example from {one} to {other}"
    for role, hosts in (("prefill", fabric.prefill), ("decode", fabric.decode)):
        if not hosts:
            yield f"no host is {role}, so there are no transfers to simulate"
    if fabric.prefill and not fabric.prefill_capacity_bps:
        yield "the leaves of the prefill hosts have no links upwards, so a load cannot be given"
    laggards = {link.source for link in fabric.links if len(fabric.lag_members(link.index)) > 1}
    same = [s.name for s in fabric.switches if s.name in laggards and s.lag_hash == s.hash]
    if same:
        yield (
            f"{len(same)} switches (first {same[0]}) use one hash for next hops and LAG members, "
            "so some members may never be used; set lag_hash"
        )


def lines(summary: Summary) -> Iterator[tuple[str, str]]:
    """The figures as people read them: what, and how much."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in summary.switches.items())
    yield "hosts", f"{summary.hosts:,} ({summary.prefill_hosts:,} prefill, {summary.decode_hosts:,} decode)"
    yield "NICs", f"{summary.nics:,}"
    yield "switches", kinds
    yield "links", f"{summary.links:,}"
    if summary.far_pair is not None:
        first, last = summary.far_pair
        yield "paths between far hosts", f"{summary.far_paths:,} (from {first} to {last})"
        yield "diameter", f"{summary.diameter_links} links"
    if summary.oversubscription is not None:
        yield "oversubscription", f"{summary.oversubscription:.3g} to 1"
    yield "prefill capacity upwards", format_rate(summary.prefill_capacity_bps)
    yield "digest", summary.digest
    if summary.down:
        more = f" and {len(summary.down) - 6} more" if len(summary.down) > 6 else ""
        yield "down", ", ".join(summary.down[:6]) + more
