"""Two planes that share nothing but the hosts: each NIC has one port in each, to a ToR of its own.

Source: Alibaba HPN (SIGCOMM 2024), dual-plane with dual ToR; here with one tier of spines above the ToRs.
"""

from ark.fabric.blueprint import Blueprint, CablePlan, HostPlan, SwitchPlan, nic_names
from ark.fabric.plans.counts import check_counts, check_totals

PLANES = 2


def dual_plane_plan(
    segments: int,
    spines_per_plane: int,
    hosts_per_segment: int,
    *,
    rate_bps: int,
    fabric_rate_bps: int,
    delay_ns: int,
    nics_per_host: int,
    rail_optimised: bool,
) -> Blueprint:
    """The parts of ``ark.fabric.generate.dual_plane``."""
    check_counts(
        nics_per_host,
        segments=segments,
        spines_per_plane=spines_per_plane,
        hosts_per_segment=hosts_per_segment,
    )
    rails = nics_per_host if rail_optimised else 1
    tors, spines = segments * rails * PLANES, spines_per_plane * PLANES
    hosts = segments * hosts_per_segment
    check_totals(
        hosts=hosts,
        switches=tors + spines,
        links=hosts * nics_per_host * PLANES + tors * spines_per_plane,
        paths=spines,
    )
    plan = Blueprint(f"dual-plane {segments}x{spines_per_plane}x{hosts_per_segment}")
    for number in range(hosts):
        host = HostPlan(f"h{number}", nics_per_host)
        plan.hosts.append(host)
        for rail, nic in enumerate(nic_names(host)):
            pair = number // hosts_per_segment * rails + (rail if rail_optimised else 0)
            plan.cables += [
                CablePlan((nic, f"tor{pair * PLANES + plane}"), rate_bps, delay_ns) for plane in range(PLANES)
            ]
    plan.switches += [SwitchPlan(f"tor{tor}", "tor") for tor in range(tors)]
    plan.switches += [SwitchPlan(f"spine{spine}", "spine") for spine in range(spines)]
    for tor in range(tors):
        first = tor % PLANES * spines_per_plane
        plan.cables += [
            CablePlan((f"tor{tor}", f"spine{spine}"), fabric_rate_bps, delay_ns)
            for spine in range(first, first + spines_per_plane)
        ]
    return plan
