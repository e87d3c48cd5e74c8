"""The parts of a fabric, as plain data: links, NICs, hosts, switches, attachments and paths."""

from dataclasses import dataclass
from typing import Literal

import msgspec

from ark.fabric.hash_spec import HashSpec

SwitchKind = Literal["leaf", "spine", "agg", "core", "tor", "switch"]
NextHopOrder = Literal["ascending", "descending"] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a cable, from a NIC or switch to another.

    ``up`` is false too where a switch at its end is down. Links between the same two switches that have the
    same ``lag`` name form one next hop, and a second hash picks the member; parallel links without one are
    next hops of their own.
    """

    index: int
    source: str
    target: str
    rate_bps: int
    delay_ns: int
    up: bool = True
    lag: str | None = None


@dataclass(frozen=True, slots=True)
class Nic:
    """A network card with one address: ``h0`` where its host has one, else ``h0.0``, ``h0.1``, …

    ``attachment`` numbers the set of switches that it hangs on: NICs with one number share their paths.
    """

    index: int
    name: str
    host: str
    address: str
    attachment: int


@dataclass(frozen=True, slots=True)
class Host:
    """A machine with its NICs."""

    name: str
    nics: tuple[Nic, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch and what its ECMP decisions depend on.

    ``node_id`` is the seed of its hash where the specification names none. ``lag_hash`` picks the member of a
    LAG. ``next_hop_order`` is the order of equal-cost next hops: by position of the neighbour in the fabric
    file, upwards or downwards, or the names of the first neighbours (the others follow upwards).
    """

    name: str
    kind: SwitchKind
    node_id: int
    hash: HashSpec
    lag_hash: HashSpec
    next_hop_order: NextHopOrder
    up: bool = True


@dataclass(frozen=True, slots=True)
class Attachment:
    """A set of switches that some NICs hang on (one leaf; two ToRs), and those that they reach now."""

    index: int
    switches: tuple[str, ...]
    live: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """One way from NIC to NIC: all its links, and the top-tier switch where it crosses exactly one."""

    index: int
    links: tuple[int, ...]
    spine: str | None


def hash_keys(spec: HashSpec) -> dict[str, object]:
    """The keys of a hash that are not at their default: what a file must say, and a digest covers."""
    default: dict[str, object] = msgspec.to_builtins(HashSpec())
    keys: dict[str, object] = msgspec.to_builtins(spec)
    return {key: value for key, value in keys.items() if value != default[key]}
