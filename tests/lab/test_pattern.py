"""The bytes of transfers: whole, in order, and told apart by their checksum."""

import os
import zlib

from hypothesis import given
from hypothesis import strategies as st

from ark.lab.pattern import PATTERN_BYTES, checksum, memory_file, pattern, pieces

transfers = st.integers(0, 10_000)
sizes = st.one_of(st.integers(0, 4096), st.integers(0, 3 * PATTERN_BYTES))


@given(transfers, sizes)
def test_pieces_are_as_long_as_the_transfer_and_inside_of_the_pattern(transfer: int, size_bytes: int) -> None:
    found = list(pieces(transfer, size_bytes))
    assert sum(length for _, length in found) == size_bytes
    assert all(0 <= offset < offset + length <= PATTERN_BYTES for offset, length in found)
    assert all(offset == 0 for offset, _ in found[1:])


@given(transfers, st.integers(0, 100_000))
def test_the_checksum_is_that_of_the_bytes(transfer: int, size_bytes: int) -> None:
    data = pattern()
    sent = b"".join(data[offset : offset + length] for offset, length in pieces(transfer, size_bytes))
    assert checksum(memoryview(data), transfer, size_bytes) == zlib.crc32(sent)


def test_the_bytes_of_one_transfer_are_not_those_of_another() -> None:
    data = memoryview(pattern())
    assert len({checksum(data, transfer, 1000) for transfer in range(1000)}) == 1000


def test_the_file_holds_the_bytes() -> None:
    file = memory_file(b"abc")
    try:
        assert os.pread(file, 10, 0) == b"abc"
    finally:
        os.close(file)
