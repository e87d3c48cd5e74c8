"""Each hash function against an independent library, and many headers at once against one at a time."""

from collections.abc import Callable

import fastcrc
import mmh3
import numpy as np
import pytest
import siphash24 as siphash_library
from hypothesis import given, settings
from hypothesis import strategies as st

from ark.fabric.hash_spec import CrcParameters
from ark.fabric.hashing import crc
from ark.fabric.hashing.crc import Crc
from ark.fabric.hashing.murmur3 import murmur3_32
from ark.fabric.hashing.siphash import siphash24

words32 = st.lists(st.integers(0, 2**32 - 1), max_size=12)
keys = st.integers(0, 2**64 - 1)

ORACLES: list[tuple[CrcParameters, Callable[[bytes], int]]] = [
    (crc.CRC16_ARC, fastcrc.crc16.arc),
    (crc.CRC16_CCITT, fastcrc.crc16.ibm_3740),
    (crc.CRC16_XMODEM, fastcrc.crc16.xmodem),
    (crc.CRC16_UMTS, fastcrc.crc16.umts),
    (crc.CRC32, fastcrc.crc32.iso_hdlc),
    (crc.CRC32C, fastcrc.crc32.iscsi),
    (crc.CRC32_MPEG2, fastcrc.crc32.mpeg_2),
    (crc.CRC32_BZIP2, fastcrc.crc32.bzip2),
]


@pytest.mark.parametrize(("parameters", "oracle"), ORACLES)
@settings(max_examples=30)
@given(message=st.binary(max_size=64))
def test_crc_equals_fastcrc(
    parameters: CrcParameters, oracle: Callable[[bytes], int], message: bytes
) -> None:
    assert Crc(parameters)(message) == oracle(message)


@pytest.mark.parametrize(("parameters", "oracle"), ORACLES)
@settings(max_examples=30)
@given(message=st.binary(min_size=4, max_size=16), seed=st.integers(0, 2**32 - 1))
def test_a_seed_xors_the_initial_register(
    parameters: CrcParameters, oracle: Callable[[bytes], int], message: bytes, seed: int
) -> None:
    """The register's initial value XORed with the first bytes of a message is the same CRC, unseeded."""
    width = parameters.width
    mask = seed & (1 << width) - 1
    size_bytes = width // 8
    as_bytes = mask.to_bytes(size_bytes)
    if parameters.reflect_in:
        as_bytes = bytes(int(f"{byte:08b}"[::-1], 2) for byte in as_bytes)
    disturbed = bytes(a ^ b for a, b in zip(message, as_bytes, strict=False)) + message[size_bytes:]
    assert Crc(parameters, seed)(message) == oracle(disturbed)


@given(words=words32, seed=st.integers(0, 2**32 - 1))
def test_murmur3_equals_mmh3(words: list[int], seed: int) -> None:
    message = b"".join(word.to_bytes(4, "little") for word in words)
    assert murmur3_32(words, seed) == mmh3.hash(message, seed, signed=False)


@given(words=st.lists(keys, max_size=10), key0=keys, key1=keys)
def test_siphash_equals_the_library(words: list[int], key0: int, key1: int) -> None:
    message = b"".join(word.to_bytes(8, "little") for word in words)
    key = key0.to_bytes(8, "little") + key1.to_bytes(8, "little")
    expected = siphash_library.siphash24(message, key=key).intdigest() % 2**64  # the library says it signed
    assert siphash24([*words, len(message) % 256 << 56], key0, key1) == expected


@given(words=st.lists(keys, min_size=1, max_size=6), key=keys)
def test_siphash_of_lanes_equals_siphash_of_each(words: list[int], key: int) -> None:
    lanes = np.array(words, dtype=np.uint64)
    found = siphash24([7, lanes, 24 << 56], key, key)
    assert not isinstance(found, int)
    assert found.tolist() == [siphash24([7, word, 24 << 56], key, key) for word in words]
