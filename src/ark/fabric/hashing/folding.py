"""XOR folding: all hashed fields XORed together in pieces of 8 or 16 bits."""

from collections.abc import Iterable

from ark.fabric.hashing.header import Lanes


def xor_fold(numbers: Iterable[tuple[Lanes, int]], bits: int) -> Lanes:
    """XOR of ``numbers`` (value, size in bytes) cut into pieces of ``bits`` bits from their least end.

    Each field is cut for itself, so that a field of one byte does not shift its successors, and the order
    of the fields does not matter.
    """
    folded: Lanes = 0
    for number, size_bytes in numbers:
        for shift in range(0, 8 * size_bytes, bits):
            folded = folded ^ (number >> shift & (1 << bits) - 1)
    return folded
