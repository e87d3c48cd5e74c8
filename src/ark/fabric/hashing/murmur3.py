"""MurmurHash3 x86_32 over 32-bit words, as the ns-3 RDMA simulators hash a flow.

Source of the function: Austin Appleby, MurmurHash3 (public domain). The simulators
(``SwitchNode::EcmpHash`` of HPCC, ConWeave and SimAI) feed it three native words: source address,
destination address, and source port plus destination port shifted by 16; addresses are integers in host
order, so no bytes are swapped.
"""

from collections.abc import Sequence
from typing import Final

from ark.fabric.hash_spec import HashField
from ark.fabric.hashing.header import Header, Lanes, value_of

_MASK: Final = 0xFFFF_FFFF


def murmur3_32(words: Sequence[Lanes], seed: int) -> Lanes:
    """MurmurHash3 x86_32 of whole 32-bit words (of the bytes of the words in little-endian order)."""
    state: Lanes = seed
    for word in words:
        mixed = word * 0xCC9E_2D51 & _MASK
        mixed = (mixed << 15 | mixed >> 17) & _MASK
        state = state ^ (mixed * 0x1B87_3593 & _MASK)
        state = (state << 13 | state >> 19) & _MASK
        state = (state * 5 + 0xE654_6B64) & _MASK
    state = state ^ 4 * len(words)
    state = (state ^ state >> 16) * 0x85EB_CA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2_AE35 & _MASK
    return state ^ state >> 16


def words_of(header: Header, fields: Sequence[HashField]) -> list[Lanes]:
    """The words that are hashed: addresses, ports, then whatever else is named, each in a word of its own.

    The order is fixed; a field that is not named is left out, one of the two ports counts as zero.
    """
    words: list[Lanes] = []
    if "src" in fields:
        words += header.src
    if "dst" in fields:
        words += header.dst
    if "sport" in fields or "dport" in fields:
        sport = header.sport if "sport" in fields else 0
        dport = header.dport if "dport" in fields else 0
        words.append(sport | dport << 16)
    words += [
        value_of(header, field)
        for field in ("proto", "dest-qp", "ingress-port", "flow-label")
        if field in fields
    ]
    return words
