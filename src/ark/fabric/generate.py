"""Finished fabrics made from counts: leaves and spines, three tiers, two planes, and the paper's own.

How hosts and switches are named is told in ``ark.fabric.plans``.
"""

from typing import Final, TypedDict, Unpack

from ark.fabric.addresses import AddressScheme
from ark.fabric.blueprint import Blueprint
from ark.fabric.build import build
from ark.fabric.hash_spec import HashSpec
from ark.fabric.parts import NextHopOrder
from ark.fabric.plans.dual_plane import dual_plane_plan
from ark.fabric.plans.fat_tree import fat_tree_plan
from ark.fabric.plans.leaf_spine import ParallelAs, leaf_spine_plan
from ark.fabric.topology import Fabric

RATE_DEFAULT_BPS: Final = 100_000_000_000
DELAY_DEFAULT_NS: Final = 500


class Common(TypedDict, total=False):
    """What every generator takes beside its counts; ``Blueprint`` tells the meaning of all but ``down``.

    ``down`` has names of switches, and pairs of names for all cables between the two, that are down.
    """

    name: str
    hash: HashSpec
    lag_hash: HashSpec
    host_hash: HashSpec
    next_hop_order: NextHopOrder
    addresses: AddressScheme
    prefill: tuple[str, ...]
    decode: tuple[str, ...]
    down: tuple[str | tuple[str, str], ...]


def leaf_spine(
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    *,
    rate_bps: int = RATE_DEFAULT_BPS,
    fabric_rate_bps: int | None = None,
    delay_ns: int = DELAY_DEFAULT_NS,
    nics_per_host: int = 1,
    rail_optimised: bool = False,
    parallel_links: int = 1,
    parallel_as: ParallelAs = "ecmp",
    **common: Unpack[Common],
) -> Fabric:
    """A two-tier fabric in which every leaf has links to every spine; path k is the one over spine k.

    Parameters
    ----------
    leaves, spines, hosts_per_leaf
        Counts. With one leaf there may be no spine.
    rate_bps, fabric_rate_bps
        Rate of the links to the hosts, and of those between leaves and spines (by default the same).
    delay_ns
        Propagation delay of every link, one way.
    nics_per_host, rail_optimised
        All NICs of a host hang on its leaf; or leaves form groups of ``nics_per_host``, NIC r hangs on the
        r-th leaf of the group, and ``hosts_per_leaf`` hosts share a group.
    parallel_links, parallel_as
        Links between each leaf and each spine. Path (s * n + i) * n + j leaves over the i-th of n links to
        spine s and arrives over the j-th.
    common
        See ``Common``.

    Raises
    ------
    ConfigError
        If a count is out of bounds or a name unknown.
    """
    plan = leaf_spine_plan(
        leaves,
        spines,
        hosts_per_leaf,
        rate_bps=rate_bps,
        fabric_rate_bps=fabric_rate_bps or rate_bps,
        delay_ns=delay_ns,
        nics_per_host=nics_per_host,
        rail_optimised=rail_optimised,
        parallel_links=parallel_links,
        parallel_as=parallel_as,
    )
    return _finished(plan, common)


def paper_fabric() -> Fabric:
    """The fabric of the paper's evaluation: 2 leaves, 4 spines, 8 hosts a leaf, 100 Gbit/s and 500 ns a link.

    Source: ARK paper §4.1; the delay is that of the ns-3 reference runs.
    """
    return leaf_spine(2, 4, 8)


def fat_tree(
    k: int,
    *,
    pods: int | None = None,
    leaves_per_pod: int | None = None,
    aggs_per_pod: int | None = None,
    cores_per_agg: int | None = None,
    hosts_per_leaf: int | None = None,
    rate_bps: int = RATE_DEFAULT_BPS,
    fabric_rate_bps: int | None = None,
    core_rate_bps: int | None = None,
    delay_ns: int = DELAY_DEFAULT_NS,
    nics_per_host: int = 1,
    **common: Unpack[Common],
) -> Fabric:
    """A three-tier fabric; between pods path k is the one over core k, inside a pod over its k-th agg.

    Parameters
    ----------
    k
        Ports of a switch: k pods, and half of k (rounded down, at least 1) of everything else. Each of the
        following counts replaces the one that follows from k.
    pods, leaves_per_pod, aggs_per_pod, cores_per_agg, hosts_per_leaf
        Counts. There are ``aggs_per_pod * cores_per_agg`` cores.
    rate_bps, fabric_rate_bps, core_rate_bps
        Rate of the links to the hosts, inside the pods (by default the same) and to the cores (by default as
        inside the pods).
    delay_ns, nics_per_host, common
        As for ``leaf_spine``.

    Raises
    ------
    ConfigError
        If a count is out of bounds or a name unknown.
    """
    half = max(1, k // 2)
    plan = fat_tree_plan(
        k if pods is None else pods,
        half if leaves_per_pod is None else leaves_per_pod,
        half if aggs_per_pod is None else aggs_per_pod,
        half if cores_per_agg is None else cores_per_agg,
        half if hosts_per_leaf is None else hosts_per_leaf,
        rate_bps=rate_bps,
        fabric_rate_bps=fabric_rate_bps or rate_bps,
        core_rate_bps=core_rate_bps or fabric_rate_bps or rate_bps,
        delay_ns=delay_ns,
        nics_per_host=nics_per_host,
    )
    return _finished(plan, common)


def dual_plane(
    segments: int,
    spines_per_plane: int,
    hosts_per_segment: int,
    *,
    rate_bps: int = RATE_DEFAULT_BPS,
    fabric_rate_bps: int | None = None,
    delay_ns: int = DELAY_DEFAULT_NS,
    nics_per_host: int = 1,
    rail_optimised: bool = False,
    **common: Unpack[Common],
) -> Fabric:
    """A fabric of two disjoint planes, each NIC with a port in both; path k is the one over spine k.

    The first half of the spines is plane 0. The NIC chooses the plane by a hash of its own (``host_hash``),
    and the ToR there the spine. In one segment there are two paths, one over each ToR.

    Parameters
    ----------
    segments
        Groups of hosts that share a pair of ToRs (or one pair a rail).
    spines_per_plane, hosts_per_segment
        Counts.
    rate_bps
        Rate of one port of a NIC.
    nics_per_host, rail_optimised
        All NICs of a host hang on one pair of ToRs, or NIC r on the r-th pair of the segment.
    fabric_rate_bps, delay_ns, common
        As for ``leaf_spine``.

    Raises
    ------
    ConfigError
        If a count is out of bounds or a name unknown.
    """
    plan = dual_plane_plan(
        segments,
        spines_per_plane,
        hosts_per_segment,
        rate_bps=rate_bps,
        fabric_rate_bps=fabric_rate_bps or rate_bps,
        delay_ns=delay_ns,
        nics_per_host=nics_per_host,
        rail_optimised=rail_optimised,
    )
    return _finished(plan, common)


def _finished(plan: Blueprint, common: Common) -> Fabric:
    for name in common.get("down", ()):
        plan.mark_down(name)
    for key, value in common.items():
        if key != "down":
            setattr(plan, key, value)
    return build(plan)
