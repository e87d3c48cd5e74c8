"""The multipath hash of the Linux kernel: a number of 31 bits from SipHash-2-4 over its flow keys.

Source: Linux 6.12 and 6.18, net/ipv4/route.c (``fib_multipath_hash``), net/ipv6/route.c
(``rt6_multipath_hash``), include/net/ip_fib.h, net/core/flow_dissector.c, include/linux/jhash.h. The
kernel's documentation does not promise that the function stays; the tests compare this model with the
running kernel. Byte order as on x86 and other little-endian machines: the kernel sorts addresses and ports
as native numbers.

A flow's keys in memory, from where hashing starts: 2 zero bytes (Ethernet type), protocol, 1 zero byte,
flow label (4 bytes), 20 zero bytes (VLANs, key id), source and destination port, 4 zero bytes (ICMP),
source and destination address, 4 bytes of padding. That is 48 bytes for IPv4 and 72 for IPv6.
"""

from collections.abc import Sequence
from typing import Final, Literal

from ark.fabric.hash_spec import HashField
from ark.fabric.hashing.header import Header, Lanes
from ark.fabric.hashing.siphash import siphash24

_MASK: Final = 0xFFFF_FFFF


def linux_multipath_hash(
    header: Header, fields: Sequence[HashField], *, seed: int, policy: Literal[1, 3]
) -> Lanes:
    """What the kernel chooses a next hop of a forwarded packet by, a number of 31 bits.

    ``seed`` is ``net.ipv4.fib_multipath_hash_seed`` (for IPv6 too), ``policy`` is
    ``fib_multipath_hash_policy``.
    """
    key = seed << 32 | seed
    low = siphash24(_words_of(header, fields), key, key) & _MASK
    outer: Lanes = low + (low == 0)  # the kernel keeps zero for "no hash"
    if policy == 3:
        outer = jhash_2words(outer, 0)  # the second word is that of an inner header, of which there is none
    return outer >> 1


def jhash_2words(first: Lanes, second: Lanes) -> Lanes:
    """Bob Jenkins' hash of two 32-bit words with initial value 0, as in include/linux/jhash.h."""
    start = 0xDEAD_BEEF + (2 << 2)
    a = first + start & _MASK
    b = second + start & _MASK
    c: Lanes = start
    c = (c ^ b) - _rotated(b, 14) & _MASK
    a = (a ^ c) - _rotated(c, 11) & _MASK
    b = (b ^ a) - _rotated(a, 25) & _MASK
    c = (c ^ b) - _rotated(b, 16) & _MASK
    a = (a ^ c) - _rotated(c, 4) & _MASK
    b = (b ^ a) - _rotated(a, 14) & _MASK
    return (c ^ b) - _rotated(b, 24) & _MASK


def _words_of(header: Header, fields: Sequence[HashField]) -> list[Lanes]:
    """The flow keys as 64-bit words, with the end mark of SipHash; fields that are not named are zero."""
    nothing: tuple[Lanes, ...] = (0,) * len(header.src)
    src, dst = _sorted_addresses(
        header.src if "src" in fields else nothing, header.dst if "dst" in fields else nothing
    )
    sport = _swapped16(header.sport) if "sport" in fields else 0
    dport = _swapped16(header.dport) if "dport" in fields else 0
    exchange = (sport ^ dport) * (dport < sport)
    halves: list[Lanes] = [
        (header.proto if "proto" in fields else 0) << 16,
        header.flow_label if "flow-label" in fields else 0,
        *(0, 0, 0, 0, 0),
        sport ^ exchange | (dport ^ exchange) << 16,
        0,
        *src,
        *dst,
        0,
    ]
    words = [_wide(low) | _wide(high) << 32 for low, high in zip(halves[::2], halves[1::2], strict=True)]
    return [*words, 4 * len(halves) << 56]


def _sorted_addresses(
    src: tuple[Lanes, ...], dst: tuple[Lanes, ...]
) -> tuple[tuple[Lanes, ...], tuple[Lanes, ...]]:
    """The words of the lesser address, then those of the greater, as they lie in memory.

    The kernel compares IPv4 addresses as native words and those of IPv6 byte by byte.
    """
    swapped_src = tuple(map(_swapped32, src))
    swapped_dst = tuple(map(_swapped32, dst))
    exchange = _precedes(swapped_dst, swapped_src) if len(src) == 1 else _precedes(dst, src)
    differences = [(a ^ b) * exchange for a, b in zip(swapped_src, swapped_dst, strict=True)]
    return (
        tuple(a ^ difference for a, difference in zip(swapped_src, differences, strict=True)),
        tuple(b ^ difference for b, difference in zip(swapped_dst, differences, strict=True)),
    )


def _precedes(first: tuple[Lanes, ...], second: tuple[Lanes, ...]) -> Lanes:
    """1 where ``first`` is less than ``second`` by its first word that differs, else 0."""
    less: Lanes = 0
    for a, b in zip(reversed(first), reversed(second), strict=True):
        less = (a < b) * 1 | (a == b) * less
    return less


def _swapped16(value: Lanes) -> Lanes:
    return value >> 8 | (value & 0xFF) << 8


def _swapped32(value: Lanes) -> Lanes:
    return value >> 24 | value >> 8 & 0xFF00 | (value & 0xFF00) << 8 | (value & 0xFF) << 24


def _rotated(value: Lanes, count: int) -> Lanes:
    return (value << count | value >> 32 - count) & _MASK


def _wide(lanes: Lanes) -> Lanes:
    return lanes if isinstance(lanes, int) else lanes.astype("uint64")
