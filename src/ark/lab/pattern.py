"""The bytes that transfers carry: any piece of a known pattern, so that a receiver can tell wrong ones.

Each transfer begins at a place of its own, so that the bytes of one are never taken for those of another.
"""

import os
import zlib
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Final

PATTERN_BYTES: Final = 8 * 2**20
_STRIDE: Final = 1_299_709
"""A prime, so that transfers begin at different places."""


@cache
def pattern() -> bytes:
    """The bytes, the same in every process."""
    return Random(0x41524B).randbytes(PATTERN_BYTES)


def memory_file(data: bytes) -> int:
    """A file in memory that holds them, for ``sendfile``; the caller closes its descriptor."""
    made = os.memfd_create("ark-lab-pattern", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(made), "wb") as file:
        file.write(data)
    return made


def pieces(transfer: int, size_bytes: int) -> Iterator[tuple[int, int]]:
    """Where in the pattern a transfer's bytes lie, in order: (offset, length) of each piece."""
    offset = transfer * _STRIDE % PATTERN_BYTES
    while size_bytes > 0:
        length = min(size_bytes, PATTERN_BYTES - offset)
        yield offset, length
        offset, size_bytes = 0, size_bytes - length


def checksum(data: memoryview, transfer: int, size_bytes: int) -> int:
    """CRC-32 of a transfer's bytes; ``data`` is the pattern."""
    found = 0
    for offset, length in pieces(transfer, size_bytes):
        found = zlib.crc32(data[offset : offset + length], found)
    return found
