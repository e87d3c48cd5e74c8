"""How a switch chooses among equal-cost next hops: hash function, hashed fields, seed and selection.

A specification is data: it stands in the fabric file, for all switches or for one.
``ark.fabric.hashing`` turns it into numbers, ``ark.fabric.selection`` turns those into a next hop.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

HashFunction = Literal[
    "murmur3",
    "crc16-arc",
    "crc16-ccitt",
    "crc16-xmodem",
    "crc16-umts",
    "crc32",
    "crc32-high16",
    "crc32-low16",
    "crc32c",
    "crc32-mpeg2",
    "crc32-bzip2",
    "crc",
    "xor8",
    "xor16",
    "toeplitz",
    "linux",
    "spray",
]
HashField = Literal["src", "dst", "proto", "sport", "dport", "dest-qp", "ingress-port", "flow-label"]
Selection = Literal["modulo", "thresholds", "resilient"]

FIVE_TUPLE_FIELDS: Final[tuple[HashField, ...]] = ("src", "dst", "proto", "sport", "dport")

SEED_MAX: Final = 2**32 - 1
BUCKETS_MAX: Final = 65_535
"""The most buckets of a resilient group, as in Linux (a 16-bit index)."""
WEIGHT_MAX: Final = 65_535
"""The greatest weight of one next hop, as in Linux 6.12 and later."""
TOEPLITZ_KEY: Final = (
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa"  # hex, 40 bytes
)
"""Microsoft's published verification key of receive-side scaling, in hexadecimal.

Source: Microsoft, "Verifying the RSS Hash Calculation", Windows driver documentation.
"""


class CrcParameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cyclic redundancy check in the terms of the Rocksoft model, for ``function = "crc"``.

    ``polynomial`` is written without its top bit, most significant bit first, also where ``reflect_in`` makes
    the algorithm run from the least significant bit.
    """

    width: int
    polynomial: int
    init: int = 0
    reflect_in: bool = False
    reflect_out: bool = False
    xor_out: int = 0

    def __post_init__(self) -> None:
        if not 8 <= self.width <= 32:
            raise ValueError(f"the width of a CRC is 8 to 32 bits, not {self.width}")
        for name in ("polynomial", "init", "xor_out"):
            value = getattr(self, name)
            if not 0 <= value < 1 << self.width:
                raise ValueError(f"{name} {value:#x} does not fit the width of {self.width} bits")


class HashSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """ECMP hashing of one switch (or of a host that has several ports).

    Attributes
    ----------
    function
        ``murmur3`` is MurmurHash3 x86_32 over words, as in the ns-3 RDMA simulators; ``crc…`` are the cyclic
        redundancy checks (``crc16-arc`` is also called BISYNC, ``crc`` reads the attribute of that name);
        ``xor8`` and ``xor16`` fold the fields to 8 or 16 bits; ``toeplitz`` is that of receive-side scaling
        with ``key``; ``linux`` is the multipath hash of the kernel (SipHash-2-4), a number of 31 bits;
        ``spray`` sends each packet elsewhere, so that no header decides the path.
    fields
        What is hashed. CRC and Toeplitz read the fields in this order, in network byte order; the others have
        an order of their own. The simulators of ns-3 hash ``src, dst, sport, dport``.
    seed
        Unsigned 32-bit seed; ``None`` is the switch's own node number, one number for all switches polarizes
        several tiers. For CRC it is XORed into the initial register, for XOR and Toeplitz into the result.
    selection
        ``modulo`` the number of next hops; ``thresholds`` are upper bounds on the hash (RFC 2992, Linux);
        ``resilient`` is a table of ``buckets`` entries in which a lost next hop moves only its own buckets.
    weights
        Weight of a next hop by the name of the neighbour it leads to; 1 where none is given.
    buckets
        Entries of the resilient table.
    crc
        Parameters for ``function = "crc"``.
    key
        Toeplitz key in hexadecimal, at least 4 bytes longer than the hashed fields.
    policy
        ``net.ipv4.fib_multipath_hash_policy`` for ``function = "linux"``: 1 hashes the 5-tuple, 3 what
        ``fields`` say (``fib_multipath_hash_fields``).

    Raises
    ------
    ValueError
        If the parts contradict each other; decoding reports it with its place in the file.
    """

    function: HashFunction = "murmur3"
    fields: tuple[HashField, ...] = FIVE_TUPLE_FIELDS
    seed: Annotated[int, Meta(ge=0, le=SEED_MAX)] | None = None
    selection: Selection = "modulo"
    weights: dict[str, int] = {}
    buckets: Annotated[int, Meta(ge=1, le=BUCKETS_MAX)] = 128
    crc: CrcParameters | None = None
    key: str = TOEPLITZ_KEY
    policy: Literal[1, 3] = 3

    def __post_init__(self) -> None:
        if not self.fields or len(set(self.fields)) != len(self.fields):
            raise ValueError("fields must name at least one field, and each only once")
        if self.seed is not None and not 0 <= self.seed <= SEED_MAX:
            raise ValueError(f"seed {self.seed} is no unsigned 32-bit number")
        if not 1 <= self.buckets <= BUCKETS_MAX:
            raise ValueError(f"buckets must be 1 to {BUCKETS_MAX}, not {self.buckets}")
        for name, weight in self.weights.items():
            if not 1 <= weight <= WEIGHT_MAX:
                raise ValueError(f'the weight of "{name}" must be 1 to {WEIGHT_MAX}, not {weight}')
        if (self.function == "crc") != (self.crc is not None):
            raise ValueError('function "crc" needs a table "crc", the other functions take none')
        self._check_key()
        self._check_linux()

    def _check_key(self) -> None:
        try:
            size_bytes = len(bytes.fromhex(self.key))
        except ValueError:
            raise ValueError("key must be hexadecimal digits, two a byte") from None
        if not 8 <= size_bytes <= 128:
            raise ValueError(f"key must be 8 to 128 bytes long, not {size_bytes}")

    def _check_linux(self) -> None:
        if self.function != "linux":
            return
        for field in ("dest-qp", "ingress-port"):
            if field in self.fields:
                raise ValueError(f'Linux cannot hash the field "{field}"')
        if self.policy == 1 and set(self.fields) != set(FIVE_TUPLE_FIELDS):
            raise ValueError("policy 1 of Linux hashes the 5-tuple; write policy = 3 to hash other fields")
        if self.seed == 0:
            raise ValueError(
                "seed 0 means a random seed in Linux; give the value that fib_multipath_hash_seed has"
            )
