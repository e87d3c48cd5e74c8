"""Make a fabric of the text of a fabric file (TOML); the keys are those of ``ark.fabric.schema``."""

from collections import defaultdict
from functools import lru_cache
from typing import Final

import msgspec

from ark.errors import ConfigError, Fault
from ark.fabric import schema
from ark.fabric.blueprint import Blueprint, CablePlan, HostPlan, SwitchPlan
from ark.fabric.build import build
from ark.fabric.fault_list import FaultList
from ark.fabric.name_ranges import expand
from ark.fabric.nearest import nearest
from ark.fabric.plans.dual_plane import dual_plane_plan
from ark.fabric.plans.fat_tree import fat_tree_plan
from ark.fabric.plans.leaf_spine import leaf_spine_plan
from ark.fabric.table_reader import read_table
from ark.fabric.topology import Fabric
from ark.units import BitsPerSecond, Nanoseconds, parse_rate, parse_time, quoted

TEXT_MAX: Final = 64 * 2**20
"""The longest fabric file in characters: the largest allowed fabric takes about 50 million."""


def load_fabric(text: str, file_name: str) -> Fabric:
    """The fabric that a TOML text describes.

    Parameters
    ----------
    text
        The content of the file.
    file_name
        How messages call it.

    Raises
    ------
    ConfigError
        With all that is wrong, each fault with the file and its place in it.
    """
    faults = FaultList()
    try:
        try:
            plan = _plan(_parsed(text), faults)
            fabric = None if plan is None else build(plan)
        except ConfigError as error:
            faults.take(error)
        faults.raise_if_any()
    except ConfigError as error:
        raise ConfigError(*(_placed(fault, file_name) for fault in error.faults)) from None
    assert fabric is not None, "the reader gave no table and named no fault"
    return fabric


def _placed(fault: Fault | str, file_name: str) -> Fault:
    if isinstance(fault, str):
        return Fault(file_name, fault)
    return Fault(f"{file_name}: {fault.where}", fault.what)


def _parsed(text: str) -> dict[str, object]:
    if len(text) > TEXT_MAX:
        raise ConfigError(f"has {len(text):,} characters; a fabric file has at most {TEXT_MAX:,}")
    if text.lstrip().startswith("<"):
        raise ConfigError("is an HTML or XML page, not TOML; was it downloaded from the wrong address?")
    try:
        parsed = msgspec.toml.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(f"is no valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError("is nested too deep for a fabric file") from None
    except ValueError:  # Python refuses to make an integer of more than 4300 digits
        raise ConfigError("has a number of thousands of digits; write a smaller one") from None
    assert isinstance(parsed, dict), "a TOML document is a table"
    return parsed


def _plan(table: dict[str, object], faults: FaultList) -> Blueprint | None:
    kind = table.pop("kind", None)
    if not isinstance(kind, str) or kind not in schema.KINDS:
        known = ", ".join(f'"{name}"' for name in schema.KINDS)
        if kind is None:
            raise ConfigError(Fault("kind", f"is missing; write one of {known}"))
        guess = nearest(str(kind), schema.KINDS, "kind", "known are")
        raise ConfigError(Fault("kind", guess if isinstance(kind, str) else f"write one of {known}"))
    content = read_table(table, schema.KINDS[kind], faults)
    if content is None:
        return None
    if isinstance(content, schema.LinksFile):
        plan = _written_out(content)
    else:
        assert isinstance(content, schema.GeneratedFile), "every other kind is generated"
        plan = _generated(content)
        _change(plan, content, faults)
    _set_common(plan, content, faults)
    return plan


def _set_common(plan: Blueprint, content: schema.FabricFile, faults: FaultList) -> None:
    plan.name = content.name or plan.name
    plan.addresses = content.addresses
    plan.next_hop_order = content.next_hop_order
    plan.hash = content.hash
    plan.lag_hash = content.lag_hash
    plan.host_hash = content.host_hash
    hosts = {host.name for host in plan.hosts}
    for role in ("prefill", "decode"):
        names = getattr(content, role)
        if names is not None:
            try:
                setattr(plan, role, expand(names, hosts))
            except ConfigError as error:
                faults.add(role, str(error))


def _written_out(content: schema.LinksFile) -> Blueprint:
    rate_bps, delay_ns = _rate(content.rate), _delay(content.delay)
    plan = Blueprint(f"links of {len(content.host)} hosts")
    plan.hosts = [
        HostPlan(entry.name, entry.nics, entry.addresses, where=f"host[{index}]")
        for index, entry in enumerate(content.host)
    ]
    for index, entry in enumerate(content.switch):
        switch = SwitchPlan(entry.name, entry.kind, where=f"switch[{index}]")
        _set_switch(switch, entry)
        plan.switches.append(switch)
    plan.cables = [
        CablePlan(
            link.between,
            rate_bps if link.rate is None else _rate(link.rate),
            delay_ns if link.delay is None else _delay(link.delay),
            up=link.up,
            lag=link.lag,
            where=f"link[{index}]",
        )
        for index, link in enumerate(content.link)
    ]
    return plan


def _generated(content: schema.GeneratedFile) -> Blueprint:
    rate_bps, delay_ns = _rate(content.rate), _delay(content.delay)
    fabric_rate_bps = rate_bps if content.fabric_rate is None else _rate(content.fabric_rate)
    if isinstance(content, schema.LeafSpineFile):
        return leaf_spine_plan(
            content.leaves,
            content.spines,
            content.hosts_per_leaf,
            rate_bps=rate_bps,
            fabric_rate_bps=fabric_rate_bps,
            delay_ns=delay_ns,
            nics_per_host=content.nics_per_host,
            rail_optimised=content.rail_optimised,
            parallel_links=content.parallel_links,
            parallel_as=content.parallel_as,
        )
    if isinstance(content, schema.DualPlaneFile):
        return dual_plane_plan(
            content.segments,
            content.spines_per_plane,
            content.hosts_per_segment,
            rate_bps=rate_bps,
            fabric_rate_bps=fabric_rate_bps,
            delay_ns=delay_ns,
            nics_per_host=content.nics_per_host,
            rail_optimised=content.rail_optimised,
        )
    assert isinstance(content, schema.FatTreeFile), "every kind has its generator"
    return fat_tree_plan(
        *_fat_tree_counts(content),
        rate_bps=rate_bps,
        fabric_rate_bps=fabric_rate_bps,
        core_rate_bps=fabric_rate_bps if content.core_rate is None else _rate(content.core_rate),
        delay_ns=delay_ns,
        nics_per_host=content.nics_per_host,
    )


def _fat_tree_counts(content: schema.FatTreeFile) -> tuple[int, int, int, int, int]:
    half = None if content.k is None else max(1, content.k // 2)
    counts = {
        "pods": content.pods or content.k,
        "leaves_per_pod": content.leaves_per_pod or half,
        "aggs_per_pod": content.aggs_per_pod or half,
        "cores_per_agg": content.cores_per_agg or half,
        "hosts_per_leaf": content.hosts_per_leaf or half,
    }
    missing = [Fault(name, "is missing; write it, or k") for name, count in counts.items() if count is None]
    if missing:
        raise ConfigError(*missing)
    pods, leaves, aggs, cores, hosts = (count or 0 for count in counts.values())
    return pods, leaves, aggs, cores, hosts


def _change(plan: Blueprint, content: schema.GeneratedFile, faults: FaultList) -> None:
    """Change single parts of a generated fabric as the tables host, switch and link say."""
    hosts = {host.name: host for host in plan.hosts}
    for index, entry in enumerate(content.host):
        host = hosts.get(entry.name)
        if host is None:
            faults.add(f"host[{index}].name", nearest(entry.name, hosts, "host", "the fabric has"))
        else:
            host.where = f"host[{index}]"
            host.addresses = entry.addresses or host.addresses
    switches = {switch.name: switch for switch in plan.switches}
    for index, change in enumerate(content.switch):
        try:
            names = expand([change.name], switches)
        except ConfigError as error:
            faults.add(f"switch[{index}].name", str(error))
            continue
        for name in names:
            switch = switches.get(name)
            if switch is None:
                faults.add(f"switch[{index}].name", nearest(name, switches, "switch", "the fabric has"))
                break
            switch.where = f"switch[{index}]"
            _set_switch(switch, change)
    if content.link:
        _change_links(plan, content.link, faults)


def _set_switch(switch: SwitchPlan, entry: schema.SwitchChange) -> None:
    for key in ("up", "node_id", "hash", "lag_hash", "next_hop_order"):
        value = getattr(entry, key)
        if value is not None:
            setattr(switch, key, value)


def _change_links(plan: Blueprint, changes: tuple[schema.LinkChange, ...], faults: FaultList) -> None:
    cables: dict[frozenset[str], list[CablePlan]] = defaultdict(list)
    for cable in plan.cables:
        cables[frozenset(cable.ends)].append(cable)
    for index, change in enumerate(changes):
        found = cables.get(frozenset(change.between))
        where = f"link[{index}]"
        if found is None:
            a, b = change.between
            faults.add(f"{where}.between", f"the fabric has no link between {quoted(a)} and {quoted(b)}")
            continue
        if change.member is not None and change.member >= len(found):
            faults.add(
                f"{where}.member", f"{change.member} is out of bounds; allowed are 0 to {len(found) - 1}"
            )
            continue
        for cable in found if change.member is None else found[change.member : change.member + 1]:
            cable.where = where
            cable.up = cable.up if change.up is None else change.up
            cable.rate_bps = cable.rate_bps if change.rate is None else _rate(change.rate)
            cable.delay_ns = cable.delay_ns if change.delay is None else _delay(change.delay)


@lru_cache(maxsize=64)
def _rate(text: str) -> BitsPerSecond:
    """A rate that the reader has checked; a file says few different ones, many times."""
    return parse_rate(text)


@lru_cache(maxsize=64)
def _delay(text: str) -> Nanoseconds:
    return parse_time(text)
