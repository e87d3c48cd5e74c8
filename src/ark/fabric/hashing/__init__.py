"""ECMP hash functions, one file a family, each for one header or for many at once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from ark.errors import ConfigError
from ark.fabric.hash_spec import CrcParameters, HashFunction, HashSpec
from ark.fabric.hashing import crc
from ark.fabric.hashing.crc import Crc
from ark.fabric.hashing.folding import xor_fold
from ark.fabric.hashing.header import Header, Lanes, bytes_of, numbers_of
from ark.fabric.hashing.linux import linux_multipath_hash
from ark.fabric.hashing.murmur3 import murmur3_32, words_of
from ark.fabric.hashing.toeplitz import Toeplitz

_CRCS: Final[dict[HashFunction, CrcParameters]] = {
    "crc16-arc": crc.CRC16_ARC,
    "crc16-ccitt": crc.CRC16_CCITT,
    "crc16-xmodem": crc.CRC16_XMODEM,
    "crc16-umts": crc.CRC16_UMTS,
    "crc32": crc.CRC32,
    "crc32-high16": crc.CRC32,
    "crc32-low16": crc.CRC32,
    "crc32c": crc.CRC32C,
    "crc32-mpeg2": crc.CRC32_MPEG2,
    "crc32-bzip2": crc.CRC32_BZIP2,
}


@dataclass(frozen=True, slots=True)
class Hasher:
    """The hash of one switch: a function of a header whose results are unsigned numbers of ``bits`` bits."""

    bits: int
    hash: Callable[[Header], Lanes]


def hasher(spec: HashSpec, *, node: int) -> Hasher:
    """The hash that ``spec`` describes, for the switch with node number ``node`` (the seed if none is given).

    The hash raises a ``ConfigError`` where the switch sprays, where the header lacks a destination queue
    pair that is hashed, and where a Toeplitz key is too short.
    """
    seed = node if spec.seed is None else spec.seed
    fields = spec.fields
    match spec.function:
        case "spray":
            return Hasher(32, _sprayed)
        case "murmur3":
            return Hasher(32, lambda header: murmur3_32(words_of(header, fields), seed))
        case "linux":
            return Hasher(31, partial(linux_multipath_hash, fields=fields, seed=seed, policy=spec.policy))
        case "toeplitz":
            toeplitz = Toeplitz(bytes.fromhex(spec.key))
            return Hasher(32, lambda header: toeplitz(bytes_of(header, fields)) ^ seed)
        case "xor8" | "xor16":
            bits = 8 if spec.function == "xor8" else 16
            last = seed & (1 << bits) - 1
            return Hasher(bits, lambda header: xor_fold(numbers_of(header, fields), bits) ^ last)
        case _:
            return _crc_hasher(spec, seed)


def _crc_hasher(spec: HashSpec, seed: int) -> Hasher:
    parameters = spec.crc or _CRCS[spec.function]
    check = Crc(parameters, seed)
    fields = spec.fields
    if spec.function == "crc32-high16":
        return Hasher(16, lambda header: check(bytes_of(header, fields)) >> 16)
    if spec.function == "crc32-low16":
        return Hasher(16, lambda header: check(bytes_of(header, fields)) & 0xFFFF)
    return Hasher(parameters.width, lambda header: check(bytes_of(header, fields)))


def _sprayed(_: Header) -> Lanes:
    raise ConfigError("packets are sprayed over all next hops; no header decides the path")
