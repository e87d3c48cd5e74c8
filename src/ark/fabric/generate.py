"""Fabrics made from counts: leaves and spines, three tiers, two planes.

Hosts are named ``h0, h1, …`` leaf by leaf, switches ``leaf0 …``, ``spine0 …``, in three tiers ``agg0 …`` and
``core0 …`` as well, with two planes ``tor0 …``. Each generator comes twice: as a ``Blueprint`` in which parts
can still be changed, and as a finished ``Fabric``.
"""

from typing import Literal, TypedDict, Unpack

from ark.errors import ConfigError, Fault
from ark.fabric.addresses import AddressScheme
from ark.fabric.blueprint import (
    CABLES_MAX,
    HOSTS_MAX,
    NICS_MAX,
    SWITCHES_MAX,
    Blueprint,
    CablePlan,
    HostPlan,
    SwitchPlan,
)
from ark.fabric.hash_spec import HashSpec
from ark.fabric.topology import Fabric, NextHopOrder

RATE_DEFAULT_BPS = 100_000_000_000
DELAY_DEFAULT_NS = 500

ParallelAs = Literal["ecmp", "lag"]
"""Parallel links as next hops of their own, or as one next hop with a second hash for the member."""


class Common(TypedDict, total=False):
    """What every generator takes beside its counts; see ``Blueprint`` for the meaning."""

    name: str
    hash: HashSpec
    lag_hash: HashSpec
    host_hash: HashSpec
    next_hop_order: NextHopOrder
    addresses: AddressScheme
    prefill: tuple[str, ...]
    decode: tuple[str, ...]


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
    down: tuple[str | tuple[str, str], ...] = (),
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
    down
        Names of switches, and pairs of names for all cables between two, that are down.

    Raises
    ------
    ConfigError
        If a count is out of bounds or a name unknown.
    """
    plan = leaf_spine_blueprint(
        leaves,
        spines,
        hosts_per_leaf,
        rate_bps=rate_bps,
        fabric_rate_bps=fabric_rate_bps,
        delay_ns=delay_ns,
        nics_per_host=nics_per_host,
        rail_optimised=rail_optimised,
        parallel_links=parallel_links,
        parallel_as=parallel_as,
    )
    return _finished(plan, down, common)


def leaf_spine_blueprint(
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    *,
    rate_bps: int,
    fabric_rate_bps: int | None,
    delay_ns: int,
    nics_per_host: int,
    rail_optimised: bool,
    parallel_links: int,
    parallel_as: ParallelAs,
) -> Blueprint:
    """The parts of ``leaf_spine``."""
    rails = nics_per_host if rail_optimised else 1
    _within(
        leaves=(leaves, 1, SWITCHES_MAX),
        spines=(spines, 0 if leaves == 1 else 1, SWITCHES_MAX),
        hosts_per_leaf=(hosts_per_leaf, 1, HOSTS_MAX),
        nics_per_host=(nics_per_host, 1, NICS_MAX),
        parallel_links=(parallel_links, 1, 64),
    )
    if leaves % rails:
        raise ConfigError(
            Fault(
                "leaves", f"{leaves} is no multiple of the {rails} rails; each NIC of a host needs its leaf"
            )
        )
    groups = leaves // rails
    hosts = groups * hosts_per_leaf
    _not_too_many(hosts, leaves + spines, hosts * nics_per_host + leaves * spines * parallel_links)
    plan = Blueprint(f"leaf-spine {leaves}x{spines}x{hosts_per_leaf}")
    for host in range(hosts):
        plan.hosts.append(HostPlan(f"h{host}", nics_per_host))
        for rail in range(nics_per_host):
            nic = f"h{host}" if nics_per_host == 1 else f"h{host}.{rail}"
            leaf = host // hosts_per_leaf * rails + (rail if rail_optimised else 0)
            plan.cables.append(CablePlan((nic, f"leaf{leaf}"), rate_bps, delay_ns))
    plan.switches += [SwitchPlan(f"leaf{leaf}", "leaf") for leaf in range(leaves)]
    plan.switches += [SwitchPlan(f"spine{spine}", "spine") for spine in range(spines)]
    lag = "lag" if parallel_as == "lag" and parallel_links > 1 else None
    for leaf in range(leaves):
        for spine in range(spines):
            ends = (f"leaf{leaf}", f"spine{spine}")
            plan.cables += [
                CablePlan(ends, fabric_rate_bps or rate_bps, delay_ns, lag=lag) for _ in range(parallel_links)
            ]
    return plan


def paper_fabric() -> Fabric:
    """The fabric of the paper's evaluation: 2 leaves, 4 spines, 8 hosts a leaf, 100 Gbit/s and 500 ns a link.

    Source: ARK paper §4.1; the delay is that of the ns-3 reference runs.
    """
    return leaf_spine(2, 4, 8)


def _within(**bounds: tuple[int, int, int]) -> None:
    faults = [
        Fault(name, f"{value:,} is out of bounds; allowed are {least:,} to {most:,}")
        for name, (value, least, most) in bounds.items()
        if not least <= value <= most
    ]
    if faults:
        raise ConfigError(*faults)


def _not_too_many(hosts: int, switches: int, cables: int) -> None:
    """Refuse an absurd size before anything of it is built."""
    faults = [
        f"these counts make {count:,} {what}; at most {most:,} are allowed"
        for what, count, most in (
            ("hosts", hosts, HOSTS_MAX),
            ("switches", switches, SWITCHES_MAX),
            ("links", cables, CABLES_MAX),
        )
        if count > most
    ]
    if faults:
        raise ConfigError(*faults)


def _finished(plan: Blueprint, down: tuple[str | tuple[str, str], ...], common: Common) -> Fabric:
    for key, value in common.items():
        setattr(plan, key, value)
    for name in down:
        plan.mark_down(name)
    return plan.build()
