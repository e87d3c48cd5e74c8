"""The five-tuple of a flow, and its form as hashes read it."""

from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from ark.errors import ConfigError
from ark.fabric.hashing.header import Header
from ark.units import quoted

UDP: Final = 17
TCP: Final = 6

_BOUNDS: Final = {
    "sport": 0xFFFF,
    "dport": 0xFFFF,
    "proto": 0xFF,
    "dest_qp": 0xFF_FFFF,
    "flow_label": 0xF_FFFF,
}
_ADDRESSES_KEPT: Final = 65_536
"""Parsed addresses kept for reuse; more than a large fabric has."""


@dataclass(frozen=True, slots=True)
class FiveTuple:
    """What tells a flow from another on the wire, and what else a switch may hash of it.

    ``src`` and ``dst`` are IPv4 or IPv6 addresses as text. ``dest_qp`` is the destination queue pair in
    RoCE's base transport header, ``None`` where it is not known; ``flow_label`` is that of IPv6.

    Raises
    ------
    ConfigError
        If a number is out of its range.
    """

    src: str
    dst: str
    sport: int
    dport: int
    proto: int = UDP
    dest_qp: int | None = None
    flow_label: int = 0

    def __post_init__(self) -> None:
        for name, bound in _BOUNDS.items():
            value = getattr(self, name)
            if value is not None and not 0 <= value <= bound:
                raise ConfigError(f"{name} must be 0 to {bound}, not {value}")

    def reversed(self) -> "FiveTuple":
        """The five-tuple of the packets that come back."""
        return FiveTuple(self.dst, self.src, self.dport, self.sport, self.proto)


def header_of(flow: FiveTuple) -> Header:
    """The fields of a flow as hashes read them.

    Raises
    ------
    ConfigError
        If an address is none, or the two are not of one family.
    """
    src, dst = address_words(flow.src), address_words(flow.dst)
    if len(src) != len(dst):
        raise ConfigError(f"{flow.src} and {flow.dst} are not both IPv4 or both IPv6")
    flow_label = flow.flow_label if len(src) > 1 else 0  # IPv4 has none
    return Header(src, dst, flow.proto, flow.sport, flow.dport, flow.dest_qp, flow_label)


@lru_cache(maxsize=_ADDRESSES_KEPT)
def address_words(address: str) -> tuple[int, ...]:
    """An address as 32-bit words, most significant first: one for IPv4, four for IPv6.

    Raises
    ------
    ConfigError
        If the text is no address.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        raise ConfigError(f"{quoted(address)} is no IPv4 or IPv6 address") from None
    number = int(parsed)
    if isinstance(parsed, IPv6Address):
        return tuple(number >> shift & 0xFFFF_FFFF for shift in (96, 64, 32, 0))
    return (number,)
