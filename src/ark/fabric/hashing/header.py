"""The header fields that a switch can hash, for one packet or for many at once.

Every hash of this package is written once, with the operators that Python integers and NumPy arrays share.
A *lane* value is either: one integer, or an array with one number a packet. Integers and arrays may be
mixed in one header, so what is constant over all packets is computed once. Results of integers are masked
to their width; arrays of unsigned integers wrap by themselves.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

from ark.errors import ConfigError
from ark.fabric.hash_spec import HashField

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Lanes: TypeAlias = "int | npt.NDArray[np.integer[Any]]"
"""One unsigned number, or an array with one for each packet."""

SIZES_BYTES: Final[dict[HashField, int]] = {
    "proto": 1,
    "sport": 2,
    "dport": 2,
    "dest-qp": 3,
    "ingress-port": 2,
    "flow-label": 3,
}
"""Bytes of each field but the addresses, as CRC, XOR and Toeplitz read them (most significant byte first)."""


class Header(NamedTuple):
    """The fields of one packet, or of many with arrays of one length.

    ``src`` and ``dst`` are the 32-bit words of the address, most significant first: one for IPv4, four for
    IPv6. Arrays are ``uint32``.
    """

    src: tuple[Lanes, ...]
    dst: tuple[Lanes, ...]
    proto: Lanes
    sport: Lanes
    dport: Lanes
    dest_qp: "Lanes | None" = None
    flow_label: Lanes = 0
    ingress_port: Lanes = 0

    def take(self, chosen: "npt.NDArray[np.intp]") -> Self:
        """The header of some of the packets, given by their positions."""

        def some(lanes: Lanes) -> Lanes:
            return lanes if isinstance(lanes, int) else lanes[chosen]

        return self._replace(
            src=tuple(map(some, self.src)),
            dst=tuple(map(some, self.dst)),
            proto=some(self.proto),
            sport=some(self.sport),
            dport=some(self.dport),
            dest_qp=None if self.dest_qp is None else some(self.dest_qp),
            flow_label=some(self.flow_label),
            ingress_port=some(self.ingress_port),
        )


def numbers_of(header: Header, fields: Sequence[HashField]) -> list[tuple[Lanes, int]]:
    """Each of ``fields`` as numbers of at most 32 bits with their size in bytes, most significant first."""
    numbers: list[tuple[Lanes, int]] = []
    for field in fields:
        if field == "src":
            numbers += [(word, 4) for word in header.src]
        elif field == "dst":
            numbers += [(word, 4) for word in header.dst]
        else:
            numbers.append((value_of(header, field), SIZES_BYTES[field]))
    return numbers


def value_of(header: Header, field: HashField) -> Lanes:
    """The value of a field that is no address.

    Raises
    ------
    ConfigError
        If the header names no destination queue pair but that is what is asked for.
    """
    value: Lanes | None = getattr(header, field.replace("-", "_"))
    if value is None:
        raise ConfigError("the hash reads the destination queue pair (BTH) of a packet; give dest_qp")
    return value


def bytes_of(header: Header, fields: Sequence[HashField]) -> list[Lanes]:
    """``fields`` in their order as bytes, each most significant byte first."""
    return [
        number >> 8 * place & 0xFF
        for number, size_bytes in numbers_of(header, fields)
        for place in reversed(range(size_bytes))
    ]
