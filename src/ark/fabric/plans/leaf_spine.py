"""Two tiers: every leaf has links to every spine."""

from typing import Literal

from ark.errors import ConfigError, Fault
from ark.fabric.blueprint import Blueprint, CablePlan, HostPlan, SwitchPlan, nic_names
from ark.fabric.plans.counts import PARALLEL_MAX, check_counts, check_totals

ParallelAs = Literal["ecmp", "lag"]
"""Parallel links as next hops of their own, or as one next hop with a second hash for the member."""


def leaf_spine_plan(
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    *,
    rate_bps: int,
    fabric_rate_bps: int,
    delay_ns: int,
    nics_per_host: int,
    rail_optimised: bool,
    parallel_links: int,
    parallel_as: ParallelAs,
) -> Blueprint:
    """The parts of ``ark.fabric.generate.leaf_spine``."""
    rails = nics_per_host if rail_optimised else 1
    check_counts(nics_per_host, leaves=leaves, hosts_per_leaf=hosts_per_leaf)
    check_counts(nics_per_host, least=0 if leaves == 1 else 1, spines=spines)
    if not 1 <= parallel_links <= PARALLEL_MAX:
        raise ConfigError(
            Fault("parallel_links", f"{parallel_links:,} is out of bounds; allowed are 1 to {PARALLEL_MAX}")
        )
    if leaves % rails:
        raise ConfigError(
            Fault(
                "leaves", f"{leaves} is no multiple of the {rails} rails; each NIC of a host needs its leaf"
            )
        )
    hosts = leaves // rails * hosts_per_leaf
    check_totals(
        hosts=hosts,
        switches=leaves + spines,
        links=hosts * nics_per_host + leaves * spines * parallel_links,
        paths=spines * parallel_links**2,
    )
    plan = Blueprint(f"leaf-spine {leaves}x{spines}x{hosts_per_leaf}")
    for number in range(hosts):
        host = HostPlan(f"h{number}", nics_per_host)
        plan.hosts.append(host)
        for rail, nic in enumerate(nic_names(host)):
            leaf = number // hosts_per_leaf * rails + (rail if rail_optimised else 0)
            plan.cables.append(CablePlan((nic, f"leaf{leaf}"), rate_bps, delay_ns))
    plan.switches += [SwitchPlan(f"leaf{leaf}", "leaf") for leaf in range(leaves)]
    plan.switches += [SwitchPlan(f"spine{spine}", "spine") for spine in range(spines)]
    lag = "lag" if parallel_as == "lag" and parallel_links > 1 else None
    plan.cables += [
        CablePlan((f"leaf{leaf}", f"spine{spine}"), fabric_rate_bps, delay_ns, lag=lag)
        for leaf in range(leaves)
        for spine in range(spines)
        for _ in range(parallel_links)
    ]
    return plan
