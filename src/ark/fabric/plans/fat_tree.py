"""Three tiers: pods of leaves and aggregation switches, and cores above the pods."""

from ark.fabric.blueprint import Blueprint, CablePlan, HostPlan, SwitchPlan, nic_names
from ark.fabric.plans.counts import check_counts, check_totals


def fat_tree_plan(
    pods: int,
    leaves_per_pod: int,
    aggs_per_pod: int,
    cores_per_agg: int,
    hosts_per_leaf: int,
    *,
    rate_bps: int,
    fabric_rate_bps: int,
    core_rate_bps: int,
    delay_ns: int,
    nics_per_host: int,
) -> Blueprint:
    """The parts of ``ark.fabric.generate.fat_tree``.

    The j-th aggregation switch of every pod has links to cores j * ``cores_per_agg`` and following.
    """
    check_counts(
        nics_per_host,
        pods=pods,
        leaves_per_pod=leaves_per_pod,
        aggs_per_pod=aggs_per_pod,
        cores_per_agg=cores_per_agg,
        hosts_per_leaf=hosts_per_leaf,
    )
    leaves, aggs, cores = pods * leaves_per_pod, pods * aggs_per_pod, aggs_per_pod * cores_per_agg
    hosts = leaves * hosts_per_leaf
    check_totals(
        hosts=hosts,
        switches=leaves + aggs + cores,
        links=hosts * nics_per_host + leaves * aggs_per_pod + aggs * cores_per_agg,
        paths=cores,
    )
    plan = Blueprint(f"fat-tree {pods}x{leaves_per_pod}x{aggs_per_pod}x{cores_per_agg}x{hosts_per_leaf}")
    for number in range(hosts):
        host = HostPlan(f"h{number}", nics_per_host)
        plan.hosts.append(host)
        plan.cables += [
            CablePlan((nic, f"leaf{number // hosts_per_leaf}"), rate_bps, delay_ns) for nic in nic_names(host)
        ]
    plan.switches += [SwitchPlan(f"leaf{leaf}", "leaf") for leaf in range(leaves)]
    plan.switches += [SwitchPlan(f"agg{agg}", "agg") for agg in range(aggs)]
    plan.switches += [SwitchPlan(f"core{core}", "core") for core in range(cores)]
    for leaf in range(leaves):
        first = leaf // leaves_per_pod * aggs_per_pod
        plan.cables += [
            CablePlan((f"leaf{leaf}", f"agg{agg}"), fabric_rate_bps, delay_ns)
            for agg in range(first, first + aggs_per_pod)
        ]
    for agg in range(aggs):
        first = agg % aggs_per_pod * cores_per_agg
        plan.cables += [
            CablePlan((f"agg{agg}", f"core{core}"), core_rate_bps, delay_ns)
            for core in range(first, first + cores_per_agg)
        ]
    return plan
