"""The fabric file: every key of it, with its type, its bounds and its meaning. This is the one place.

``ark fabric schema`` prints these structs, ``ark.fabric.load`` reads files by them. A file has a ``kind``:
for ``links`` the tables ``[[host]]``, ``[[switch]]`` and ``[[link]]`` say what there is; for the other kinds,
counts do, and the same tables change single parts of it.
"""

from typing import Annotated, Final, Literal

import msgspec

from ark.fabric.blueprint import HOSTS_MAX, NICS_MAX, SWITCHES_MAX
from ark.fabric.hash_spec import SEED_MAX, HashSpec
from ark.fabric.parts import NextHopOrder, SwitchKind
from ark.fabric.plans.counts import PARALLEL_MAX
from ark.fabric.plans.leaf_spine import ParallelAs
from ark.fabric.table_reader import UNIT

Meta = msgspec.Meta

Rate = Annotated[str, Meta(extra={UNIT: "rate"}, extra_json_schema={"examples": ["100 Gbit/s"]})]
Time = Annotated[str, Meta(extra={UNIT: "time"}, extra_json_schema={"examples": ["500ns"]})]
Name = Annotated[str, Meta(min_length=1, max_length=64)]
Hosts = Annotated[tuple[str, ...], Meta(description='Host names and ranges: ["h0-h7", "h9"].')]
Count = Annotated[int, Meta(ge=1, le=HOSTS_MAX)]
Nics = Annotated[int, Meta(ge=1, le=NICS_MAX)]
NodeId = Annotated[int, Meta(ge=0, le=SEED_MAX)]
Member = Annotated[int, Meta(ge=0, le=PARALLEL_MAX - 1)]
Ports = Annotated[int, Meta(ge=1, le=1024)]


class HostChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A generated host that is different."""

    name: Annotated[Name, Meta(description="The host.")]
    addresses: Annotated[tuple[str, ...], Meta(description="Addresses of its NICs, in order.")] = ()


class HostEntry(HostChange, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A host."""

    name: Annotated[Name, Meta(description="Its name; its NICs are called h0, or h0.0, h0.1, … for several.")]
    nics: Annotated[Nics, Meta(description="How many NICs it has.")] = 1


class SwitchChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A generated switch, or a range of them, that is different; keys left out change nothing."""

    name: Annotated[str, Meta(description='The switch, or a range: "leaf0-leaf3".')]
    up: Annotated[bool | None, Meta(description="false: it is down, and all its links with it.")] = None
    node_id: Annotated[
        NodeId | None,
        Meta(description="Seed of its hash; by default NICs count from 0, then switches."),
    ] = None
    hash: Annotated[HashSpec | None, Meta(description="Its ECMP hash.")] = None
    lag_hash: Annotated[HashSpec | None, Meta(description="Its hash for the member of a LAG.")] = None
    next_hop_order: Annotated[
        NextHopOrder | None,
        Meta(description="Order of equal-cost next hops by the place of the neighbour, or neighbours first."),
    ] = None


class SwitchEntry(SwitchChange, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A switch."""

    name: Annotated[Name, Meta(description="Its name. The order of switches decides the numbers of paths.")]
    kind: Annotated[SwitchKind, Meta(description="Its tier; spines (or cores) are those of results.")] = (
        "switch"
    )


class LinkChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Generated links between two ends that are different."""

    between: Annotated[tuple[str, str], Meta(description="Its two ends: switches or NICs.")]
    member: Annotated[
        Member | None, Meta(description="Which of parallel links, from 0; all if left out.")
    ] = None
    rate: Annotated[Rate | None, Meta(description="Rate in each direction.")] = None
    delay: Annotated[Time | None, Meta(description="Propagation delay, one way.")] = None
    up: Annotated[bool | None, Meta(description="false: the link is down, in both directions.")] = None


class LinkEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A link (a cable, so both directions)."""

    between: Annotated[tuple[str, str], Meta(description="Its two ends: switches or NICs.")]
    rate: Annotated[Rate | None, Meta(description="Rate in each direction, if not that of the file.")] = None
    delay: Annotated[Time | None, Meta(description="Delay one way, if not that of the file.")] = None
    up: Annotated[bool, Meta(description="false: the link is down, in both directions.")] = True
    lag: Annotated[
        Name | None,
        Meta(description="Links between the same switches with the same lag form one next hop."),
    ] = None


class FabricFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys that every kind has."""

    name: Annotated[Name | None, Meta(description="Label in results.")] = None
    rate: Annotated[Rate, Meta(description="Rate of links to hosts (kind links: of all links).")] = (
        "100 Gbit/s"
    )
    delay: Annotated[Time, Meta(description="Propagation delay of every link, one way.")] = "500ns"
    addresses: Annotated[
        str,
        Meta(description='First address, IPv4 or IPv6, of NICs counted upwards; or "ns3" for 11.0.i.1.'),
    ] = "10.0.0.1"
    prefill: Annotated[
        Hosts | None, Meta(description="Prefill hosts; by default those of the first half.")
    ] = None
    decode: Annotated[Hosts | None, Meta(description="Decode hosts; by default all others.")] = None
    next_hop_order: Annotated[
        Literal["ascending", "descending"],
        Meta(description="Order of equal-cost next hops, by the place of the neighbour in the fabric."),
    ] = "ascending"
    hash: Annotated[HashSpec, Meta(description="ECMP hash of all switches.")] = HashSpec()
    lag_hash: Annotated[
        HashSpec | None, Meta(description="Hash for the member of a LAG; by default hash.")
    ] = None
    host_hash: Annotated[
        HashSpec | None, Meta(description="How a NIC with several ports chooses one; by default hash.")
    ] = None


class GeneratedFile(FabricFile, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keys that every generated kind has."""

    fabric_rate: Annotated[Rate | None, Meta(description="Rate of links between switches; else rate.")] = None
    nics_per_host: Annotated[Nics, Meta(description="NICs of each host.")] = 1
    host: Annotated[tuple[HostChange, ...], Meta(description="Hosts that are different.")] = ()
    switch: Annotated[tuple[SwitchChange, ...], Meta(description="Switches that are different.")] = ()
    link: Annotated[tuple[LinkChange, ...], Meta(description="Links that are different.")] = ()


class LeafSpineFile(GeneratedFile, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Two tiers, every leaf linked to every spine; path k is the one over spine k."""

    leaves: Annotated[Count, Meta(description="Leaves.")]
    spines: Annotated[int, Meta(ge=0, le=SWITCHES_MAX, description="Spines; 0 only with one leaf.")]
    hosts_per_leaf: Annotated[Count, Meta(description="Hosts on each leaf (or on each group of rails).")]
    rail_optimised: Annotated[
        bool, Meta(description="NIC r of each host hangs on the r-th leaf of its group, not all on one leaf.")
    ] = False
    parallel_links: Annotated[
        int, Meta(ge=1, le=PARALLEL_MAX, description="Links between each leaf and each spine.")
    ] = 1
    parallel_as: Annotated[
        ParallelAs, Meta(description="Parallel links as next hops of their own, or as one LAG.")
    ] = "ecmp"


class FatTreeFile(GeneratedFile, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Three tiers: pods of leaves and aggs, cores above; path k is over core k. Give k, or all counts."""

    k: Annotated[
        Ports | None,
        Meta(description="Ports of a switch: k pods, k / 2 rounded down of all the rest."),
    ] = None
    pods: Annotated[Count | None, Meta(description="Pods.")] = None
    leaves_per_pod: Annotated[Count | None, Meta(description="Leaves in each pod.")] = None
    aggs_per_pod: Annotated[Count | None, Meta(description="Aggregation switches in each pod.")] = None
    cores_per_agg: Annotated[Count | None, Meta(description="Cores above each agg.")] = None
    hosts_per_leaf: Annotated[Count | None, Meta(description="Hosts on each leaf.")] = None
    core_rate: Annotated[Rate | None, Meta(description="Rate of links to cores; else fabric_rate.")] = None


class DualPlaneFile(GeneratedFile, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Two disjoint planes; each NIC has a port to a ToR in both; path k is the one over spine k."""

    segments: Annotated[Count, Meta(description="Groups of hosts that share their ToRs.")]
    spines_per_plane: Annotated[Count, Meta(description="Spines in each plane.")]
    hosts_per_segment: Annotated[Count, Meta(description="Hosts in each segment.")]
    rail_optimised: Annotated[
        bool, Meta(description="NIC r of each host hangs on the r-th pair of ToRs of its segment.")
    ] = False


class LinksFile(FabricFile, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Any network, written out."""

    host: Annotated[tuple[HostEntry, ...], Meta(description="All hosts.")]
    switch: Annotated[tuple[SwitchEntry, ...], Meta(description="All switches.")]
    link: Annotated[tuple[LinkEntry, ...], Meta(description="All links.")]


KINDS: Final[dict[str, type[FabricFile]]] = {
    "leaf-spine": LeafSpineFile,
    "fat-tree": FatTreeFile,
    "dual-plane": DualPlaneFile,
    "links": LinksFile,
}
"""What ``kind`` can be, and the keys that the file then has."""
