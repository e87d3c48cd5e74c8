"""Read ICMP errors: which router answered, and which packet it quotes. Hostile bytes give ``None``.

Formats: RFC 792, RFC 4443, RFC 4884 (whose extensions follow the quoted packet and are not read).
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from ark.fabric.five_tuple import TCP, UDP

TIME_EXCEEDED4: Final = 11
UNREACHABLE4: Final = 3
TIME_EXCEEDED6: Final = 3
UNREACHABLE6: Final = 1

_ICMP: Final = 1


@dataclass(frozen=True, slots=True)
class IcmpError:
    """An ICMP error about a UDP or TCP packet.

    Attributes
    ----------
    router
        Address of whoever answered.
    expired
        The packet died on its way (time exceeded); else its destination could not be reached.
    src, dst, proto, sport, dport
        The five-tuple of the quoted packet.
    mark
        The 32 bits after the ports: length and checksum of UDP, sequence number of TCP.
    """

    router: str
    expired: bool
    src: str
    dst: str
    proto: int
    sport: int
    dport: int
    mark: int


def read_icmp4(data: bytes) -> IcmpError | None:
    """The error in an IPv4 packet as a raw socket gives it, outer header included; ``None`` for all else."""
    size = _header4_bytes(data)
    if not size or data[9] != _ICMP:
        return None
    outer, message = data[:size], data[size:]
    kind = _kind(message, TIME_EXCEEDED4, UNREACHABLE4)
    if kind is None:
        return None
    quoted = message[8:]
    quoted_size = _header4_bytes(quoted)
    if not quoted_size:
        return None
    router = str(IPv4Address(outer[12:16]))
    ends = str(IPv4Address(quoted[12:16])), str(IPv4Address(quoted[16:20]))
    return _error(router, kind, ends, quoted[9], quoted[quoted_size:])


def read_icmp6(data: bytes, router: str) -> IcmpError | None:
    """The error in an ICMPv6 message that came from ``router``; ``None`` for all else.

    Extension headers of the quoted packet are not followed: probes have none.
    """
    kind = _kind(data, TIME_EXCEEDED6, UNREACHABLE6)
    if kind is None:
        return None
    quoted = data[8:]
    if len(quoted) < 40 or quoted[0] >> 4 != 6:
        return None
    ends = str(IPv6Address(quoted[8:24])), str(IPv6Address(quoted[24:40]))
    return _error(router, kind, ends, quoted[6], quoted[40:])


def _header4_bytes(data: bytes) -> int:
    """Size of the IPv4 header that ``data`` begins with, 0 where there is none."""
    if len(data) < 20 or data[0] >> 4 != 4:
        return 0
    size = (data[0] & 0xF) * 4
    return size if 20 <= size <= len(data) else 0


def _kind(message: bytes, exceeded: int, unreachable: int) -> bool | None:
    """Whether a message says "time exceeded in transit" (true) or "unreachable" (false), or neither."""
    if len(message) < 8:
        return None
    if message[0] == exceeded:
        return True if message[1] == 0 else None  # code 1: a fragment's reassembly took too long
    return False if message[0] == unreachable else None


def _error(router: str, expired: bool, ends: tuple[str, str], proto: int, rest: bytes) -> IcmpError | None:  # noqa: FBT001 - a field
    if len(rest) < 8 or proto not in {UDP, TCP}:
        return None
    return IcmpError(
        router,
        expired,
        *ends,
        proto,
        int.from_bytes(rest[0:2]),
        int.from_bytes(rest[2:4]),
        int.from_bytes(rest[4:8]),
    )
