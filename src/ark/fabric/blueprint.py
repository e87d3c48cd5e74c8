"""What a fabric is built from before it is numbered and checked: names, cables and wishes.

Generators and the reader of fabric files fill in a ``Blueprint``; ``ark.fabric.build`` checks it as a whole,
gives what was left open its default, and makes the ``Fabric``. Cables are two-way.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from ark.errors import ConfigError
from ark.fabric.addresses import AddressScheme
from ark.fabric.hash_spec import HashSpec
from ark.fabric.nearest import nearest
from ark.fabric.parts import NextHopOrder, SwitchKind
from ark.units import quoted

HOSTS_MAX: Final = 65_536
"""The most hosts of one fabric: twice the largest clusters in public reports."""
NICS_MAX: Final = 8
"""The most NICs of one host: one for each GPU of today's servers."""
SWITCHES_MAX: Final = 16_384
CABLES_MAX: Final = 500_000
"""The most cables of one fabric; each is two links of about 150 bytes."""
RATE_MAX_BPS: Final = 10**15
"""1 Pbit/s: a thousand times the fastest port, far below what overflows a sum."""
DELAY_MAX_NS: Final = 10**10
"""10 s: no cable on earth is that long."""
NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.:-]{0,62}[A-Za-z0-9_])?")
"""Names of hosts and switches; they stand in CSV columns, so no spaces, commas, quotes or semicolons."""


@dataclass(slots=True)
class HostPlan:
    """A host to be: ``addresses`` are those of its NICs in order, or none for the scheme of the fabric."""

    name: str
    nics: int = 1
    addresses: tuple[str, ...] = ()
    where: str = ""


@dataclass(slots=True)
class SwitchPlan:
    """A switch to be; what is ``None`` is as for the whole fabric."""

    name: str
    kind: SwitchKind = "switch"
    node_id: int | None = None
    hash: HashSpec | None = None
    lag_hash: HashSpec | None = None
    next_hop_order: NextHopOrder | None = None
    up: bool = True
    where: str = ""


@dataclass(slots=True)
class CablePlan:
    """A cable to be, between two switches or a switch and a NIC."""

    ends: tuple[str, str]
    rate_bps: int
    delay_ns: int
    up: bool = True
    lag: str | None = None
    where: str = ""


@dataclass(slots=True)
class Blueprint:
    """A whole fabric to be. ``prefill`` and ``decode`` are host names, or ``None`` for the usual halves."""

    name: str
    hosts: list[HostPlan] = field(default_factory=list)
    switches: list[SwitchPlan] = field(default_factory=list)
    cables: list[CablePlan] = field(default_factory=list)
    hash: HashSpec = field(default_factory=HashSpec)
    lag_hash: HashSpec | None = None
    host_hash: HashSpec | None = None
    next_hop_order: NextHopOrder = "ascending"
    addresses: AddressScheme = "10.0.0.1"
    prefill: tuple[str, ...] | None = None
    decode: tuple[str, ...] | None = None

    def mark_down(self, what: str | tuple[str, str]) -> None:
        """Mark a switch, or all cables between two named ends, as down.

        Raises
        ------
        ConfigError
            If there is no such switch or cable.
        """
        if isinstance(what, str):
            found = [switch for switch in self.switches if switch.name == what]
            if not found:
                raise ConfigError(
                    nearest(what, [s.name for s in self.switches], "switch", f"{self.name} has")
                )
            found[0].up = False
            return
        cables = [cable for cable in self.cables if set(cable.ends) == set(what)]
        if not cables:
            raise ConfigError(f"there is no link between {quoted(what[0])} and {quoted(what[1])} to be down")
        for cable in cables:
            cable.up = False


def nic_names(host: HostPlan) -> list[str]:
    """Names of the NICs of a host: its own where it has one, else ``h0.0``, ``h0.1``, …"""
    return [host.name] if host.nics == 1 else [f"{host.name}.{rail}" for rail in range(host.nics)]
