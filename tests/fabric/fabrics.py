"""Fabrics of every shape, whole and with parts down, and a router that is slow and plain."""

from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.fabric import Fabric, Nic, dual_plane, fat_tree, leaf_spine
from ark.fabric.blueprint import Blueprint, CablePlan, HostPlan, SwitchPlan
from ark.fabric.build import build
from ark.fabric.parts import NextHopOrder


@st.composite
def generated(draw: st.DrawFn) -> Fabric:
    """A small generated fabric with nothing down."""
    few = st.integers(1, 3)
    nics = draw(few)
    kind = draw(st.sampled_from(["leaf-spine", "rails", "fat-tree", "k", "dual-plane"]))
    order: NextHopOrder = "descending" if draw(st.booleans()) else "ascending"
    if kind == "leaf-spine":
        return leaf_spine(
            draw(few),
            draw(few),
            draw(few),
            nics_per_host=nics,
            parallel_links=draw(few),
            parallel_as=draw(st.sampled_from(["ecmp", "lag"])),
            next_hop_order=order,
        )
    if kind == "rails":
        return leaf_spine(nics * draw(few), draw(few), draw(few), nics_per_host=nics, rail_optimised=True)
    if kind == "fat-tree":
        return fat_tree(
            draw(few),
            leaves_per_pod=draw(few),
            aggs_per_pod=draw(few),
            cores_per_agg=draw(few),
            hosts_per_leaf=draw(few),
            nics_per_host=nics,
            next_hop_order=order,
        )
    if kind == "k":
        return fat_tree(draw(st.integers(1, 5)))
    return dual_plane(draw(few), draw(few), draw(few), nics_per_host=nics, rail_optimised=draw(st.booleans()))


@st.composite
def with_losses(draw: st.DrawFn) -> tuple[Fabric, Fabric]:
    """A generated fabric, and the same with some switches and cables down."""
    whole = draw(generated())
    plan = plan_of(whole)
    mostly = st.sampled_from([True, True, True, False])
    for switch in plan.switches:
        switch.up = draw(mostly)
    for cable in plan.cables:
        cable.up = draw(mostly)
    return whole, build(plan)


@st.composite
def meshes(draw: st.DrawFn) -> Fabric:
    """Any network: random links between switches, NICs on one to three of them, some parts down."""
    switches = draw(st.integers(1, 6))
    plan = Blueprint("mesh")
    plan.switches = [
        SwitchPlan(f"s{n}", up=draw(st.sampled_from([True] * 9 + [False]))) for n in range(switches)
    ]
    pairs = [(a, b) for a in range(switches) for b in range(a)]
    for a, b in draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []:
        lag = draw(st.sampled_from([None, None, "x", "y"]))
        up = draw(st.sampled_from([True, True, True, False]))
        plan.cables.append(CablePlan((f"s{a}", f"s{b}"), 10**9, 5, up=up, lag=lag))
    for host in range(draw(st.integers(2, 4))):
        plan.hosts.append(HostPlan(f"h{host}"))
        doors = draw(st.lists(st.integers(0, switches - 1), min_size=1, max_size=3, unique=True))
        for door in doors:
            up = draw(st.sampled_from([True, True, False]))
            plan.cables.append(CablePlan((f"h{host}", f"s{door}"), 10**9, 5, up=up))
    return build(plan)


def plan_of(fabric: Fabric) -> Blueprint:
    """A blueprint that gives the same fabric again."""
    plan = Blueprint(fabric.name, prefill=fabric.prefill, decode=fabric.decode, host_hash=fabric.host_hash)
    plan.hosts = [HostPlan(h.name, len(h.nics), tuple(nic.address for nic in h.nics)) for h in fabric.hosts]
    plan.switches = [
        SwitchPlan(s.name, s.kind, s.node_id, s.hash, s.lag_hash, s.next_hop_order, s.up)
        for s in fabric.switches
    ]
    plan.cables = [
        CablePlan((k.source, k.target), k.rate_bps, k.delay_ns, k.up, k.lag) for k in fabric.links[::2]
    ]
    return plan


def all_shortest(fabric: Fabric, source: Nic, target: Nic, *, up_only: bool = True) -> set[tuple[int, ...]]:
    """All shortest loop-free paths, by trying every way; NICs forward nothing."""
    nics = {nic.name for nic in fabric.nics}
    fronts: list[tuple[tuple[int, ...], str, frozenset[str]]] = [((), source.name, frozenset([source.name]))]
    while fronts:
        grown = [
            ((*links, link.index), link.target, seen | {link.target})
            for links, node, seen in fronts
            for link in fabric.links
            if link.source == node and (link.up or not up_only) and link.target not in seen
        ]
        arrived = {links for links, node, _ in grown if node == target.name}
        if arrived:
            return arrived
        fronts = [front for front in grown if front[1] not in nics]
    return set()


def paths_or_none(fabric: Fabric, source: Nic, target: Nic) -> set[tuple[int, ...]]:
    """The links of all paths that the fabric names; an empty set where it says that there are none."""
    try:
        return {path.links for path in fabric.paths(source, target)}
    except ConfigError:
        return set()


def walked(fabric: Fabric, source: Nic, target: Nic) -> set[tuple[int, ...]]:
    """The links of every way that next hops and LAG members allow."""
    done: set[tuple[int, ...]] = set()
    fronts: list[tuple[tuple[int, ...], str]] = [((), source.name)]
    while fronts:
        links, node = fronts.pop()
        if node == target.name:
            done.add(links)
            continue
        for hop in fabric.next_hops(node, target):
            fronts += [((*links, k), fabric.links[k].target) for k in fabric.lag_members(hop)]
    return done
