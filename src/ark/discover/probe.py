"""Probes: packets that die on their way, so that the switch where they die says who it is.

A probe differs from a transfer's packets in nothing that switches hash. What tells probes of one flow apart
is kept out of the hash: the number of hops stands in the length of a UDP probe or in the sequence number of a
TCP probe, which the ICMP answer quotes. A probe to RoCE's port carries a base transport header, because some
switches hash its destination queue pair.

Pure: makes and reads bytes. Formats: RFC 791, RFC 8200, RFC 768, RFC 9293; InfiniBand Architecture 1.4 §9.2.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from struct import pack
from typing import Final

from ark.fabric.five_tuple import TCP
from ark.fabric.roce import DPORT

HOPS_MAX: Final = 15
"""Switches on a path that can be probed: seven tiers, and four bits in a TCP sequence number."""

UDP_PAYLOAD_BYTES: Final = 16
"""A base transport header and an invariant CRC; a probe of n hops has n bytes more."""

_RC_SEND_ONLY: Final = 0x04


@dataclass(frozen=True, slots=True, order=True)
class Flow:
    """What a probe shares with a transfer: addresses as text, ports, protocol, destination queue pair."""

    src: str
    dst: str
    proto: int
    sport: int
    dport: int
    dest_qp: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Probe:
    """One packet of a flow that is to die at switch number ``hop``, counted from 1.

    ``turn`` tells probes apart that ask the same again.
    """

    flow: Flow
    hop: int
    turn: int = 0


def packet(probe: Probe, nonce: int, *, dscp: int = 0) -> bytes:
    """The whole packet, IP header included.

    Parameters
    ----------
    probe
        What to send.
    nonce
        24 random bits of this run; an answer that does not quote them is not ours.
    dscp
        Traffic class of the transfers, 0 to 63: switches may treat classes differently.
    """
    flow = probe.flow
    src, dst = ip_address(flow.src).packed, ip_address(flow.dst).packed
    segment = _tcp_syn(probe, nonce) if flow.proto == TCP else _udp(probe, nonce)
    place = 16 if flow.proto == TCP else 6
    pseudo = src + dst + pack("!IHBB", len(segment), 0, 0, flow.proto)
    checksum = internet_checksum(pseudo + segment) or 0xFFFF
    segment = segment[:place] + pack("!H", checksum) + segment[place + 2 :]
    if len(src) == 16:
        return pack("!IHBB", 6 << 28 | dscp << 22, len(segment), flow.proto, probe.hop) + src + dst + segment
    # The kernel fills in the identification and the checksum of an IPv4 header, as it does for transfers.
    fixed = pack("!BBHHHBBH", 0x45, dscp << 2, 20 + len(segment), 0, 0x4000, probe.hop, flow.proto, 0)
    return fixed + src + dst + segment


def quoted_mark(probe: Probe, nonce: int) -> int:
    """What the first 8 bytes of a probe's transport header say beside its ports, as 32 bits.

    That is the length and checksum of UDP, or the sequence number of TCP.
    """
    if probe.flow.proto == TCP:
        return _sequence(probe, nonce)
    start = 40 if ":" in probe.flow.src else 20
    return int.from_bytes(packet(probe, nonce)[start + 4 : start + 8])


def internet_checksum(data: bytes) -> int:
    """The ones' complement checksum of RFC 1071, 16 bits."""
    if len(data) % 2:
        data += b"\0"
    number = int.from_bytes(data)
    # As 2^16 = 1 modulo 0xFFFF, that is the sum of all words with carries folded in; only zeros sum to zero.
    return 0xFFFF - (number % 0xFFFF or (0xFFFF if number else 0))


def _udp(probe: Probe, nonce: int) -> bytes:
    flow = probe.flow
    mark = nonce ^ probe.turn
    if flow.dport == DPORT:
        transport = pack("!BBHII", _RC_SEND_ONLY, 0, 0xFFFF, flow.dest_qp, mark)
    else:
        transport = pack("!III", 0, 0, mark)
    payload = transport.ljust(UDP_PAYLOAD_BYTES + probe.hop, b"\0")
    return pack("!HHHH", flow.sport, flow.dport, 8 + len(payload), 0) + payload


def _tcp_syn(probe: Probe, nonce: int) -> bytes:
    flow = probe.flow
    return pack("!HHIIBBHHH", flow.sport, flow.dport, _sequence(probe, nonce), 0, 0x50, 0x02, 0xFFFF, 0, 0)


def _sequence(probe: Probe, nonce: int) -> int:
    return (nonce ^ probe.turn) << 8 | probe.hop
