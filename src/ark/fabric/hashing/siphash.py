"""SipHash-2-4 over 64-bit words.

Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
"""

from collections.abc import Iterable
from typing import Final

from ark.fabric.hashing.header import Lanes

_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF

_State = tuple[Lanes, Lanes, Lanes, Lanes]


def siphash24(words: Iterable[Lanes], key0: int, key1: int) -> Lanes:
    """SipHash-2-4, 64 bits, of a message that is already cut into words.

    ``words`` are the little-endian 64-bit words of the message; the last one is the padded rest with the
    length of the message, modulo 256, in its top byte, as the function prescribes. Arrays are ``uint64``.
    """
    state: _State = (
        key0 ^ 0x736F_6D65_7073_6575,
        key1 ^ 0x646F_7261_6E64_6F6D,
        key0 ^ 0x6C79_6765_6E65_7261,
        key1 ^ 0x7465_6462_7974_6573,
    )
    for word in words:
        v0, v1, v2, v3 = _round(_round((state[0], state[1], state[2], state[3] ^ word)))
        state = (v0 ^ word, v1, v2, v3)
    state = (state[0], state[1], state[2] ^ 0xFF, state[3])
    for _ in range(4):
        state = _round(state)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _round(state: _State) -> _State:
    v0, v1, v2, v3 = state
    v0 = v0 + v1 & _MASK
    v1 = _rotated(v1, 13) ^ v0
    v0 = _rotated(v0, 32)
    v2 = v2 + v3 & _MASK
    v3 = _rotated(v3, 16) ^ v2
    v0 = v0 + v3 & _MASK
    v3 = _rotated(v3, 21) ^ v0
    v2 = v2 + v1 & _MASK
    v1 = _rotated(v1, 17) ^ v2
    return v0, v1, _rotated(v2, 32), v3


def _rotated(value: Lanes, count: int) -> Lanes:
    turned = value << count | value >> 64 - count
    return turned & _MASK if isinstance(turned, int) else turned
