"""Which known hash a switch uses, from a few hundred learned ports.

A candidate is a function, the fields it reads and a seed. Neither the order nor the weights of the next hops
need to be known: a candidate fits if equal numbers modulo some M always went to the same neighbour (modulo,
weighted modulo and resilient tables look like that), or if the neighbours, sorted by the hash, lie in one run
each (thresholds). By chance a wrong candidate does so with a probability of 2 to the minus ``evidence_bits``.

What cannot be inferred: a random seed of 32 bits behind a hash that is no linear function, like that of Linux
(SipHash) where ``fib_multipath_hash_seed`` was never set. Only listed seeds are tried. Seeds of CRC, XOR and
Toeplitz only relabel the next hops where their number is a power of two; any seed then fits, and the first
that was tried is named.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING, Final, Literal

from ark.discover.observations import Observations
from ark.errors import ConfigError
from ark.fabric.five_tuple import FiveTuple, header_of
from ark.fabric.hash_spec import FIVE_TUPLE_FIELDS, HashField, HashFunction, HashSpec
from ark.fabric.hashing import hasher
from ark.fabric.hashing.header import Header

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

EVIDENCE_MIN_BITS: Final = 60.0
"""A million candidates are below 20 bits; what then still fits by chance is 1 in 10¹²."""

SEEDS_DEFAULT: Final = range(64)
"""Node numbers and the small seeds that people configure."""

FUNCTIONS: Final[tuple[HashFunction, ...]] = (
    "murmur3",
    "linux",
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
    "xor8",
    "xor16",
    "toeplitz",
)
FIELDS: Final[tuple[tuple[HashField, ...], ...]] = (
    FIVE_TUPLE_FIELDS,
    ("src", "dst", "sport", "dport"),
    ("sport", "dport"),
    ("src", "dst", "sport"),
    ("sport",),
    ("src", "dst", "sport", "dport", "proto"),
    (*FIVE_TUPLE_FIELDS, "dest-qp"),
)
MODULI_MAX: Final = 16
MODULI_MORE: Final = (20, 24, 31, 32, 48, 64, 100, 128, 256)
"""Sizes of resilient tables and sums of weights that are tried beyond all up to ``MODULI_MAX``."""

_ORDERED: Final = frozenset({"murmur3", "linux", "xor8", "xor16"})
"""Functions to which the order of the fields does not matter, so that one order is enough."""

_NOT_AFFINE: Final = frozenset({"murmur3", "linux"})


@dataclass(frozen=True, slots=True)
class Inferred:
    """A hash that fits what was seen at one switch.

    Attributes
    ----------
    switch, neighbours
        Where, and its next hops.
    spec
        Function, fields, seed; ``selection`` is ``modulo`` or ``thresholds``.
    modulus
        What the hash is reduced by before ``members``; ``None`` with thresholds.
    bounds, members
        The greatest hash of each interval (or bucket), ascending, and the place of its neighbour.
    evidence_bits
        How unlikely it is that a wrong candidate fits, in powers of two.
    """

    switch: str
    neighbours: tuple[str, ...]
    spec: HashSpec
    modulus: int | None
    bounds: tuple[int, ...]
    members: tuple[int, ...]
    evidence_bits: float

    def choose(self, header: Header) -> "npt.NDArray[np.int64]":
        """The place of the neighbour that each header goes to, ``int64`` of the shape of its lanes.

        With thresholds a hash between the last one seen on one neighbour and the first on the next counts to
        the nearer one; -1 for a bucket of a table that was never seen.
        """
        import numpy as np  # noqa: PLC0415 - only inference needs NumPy

        hashed = _hashed(self.spec, header)
        if self.modulus is None:
            return np.array(self.members)[np.searchsorted(self.bounds, hashed)]
        table = np.full(self.modulus, -1)
        table[list(self.bounds)] = self.members
        chosen: npt.NDArray[np.int64] = table[hashed % self.modulus]
        return chosen

    def describe(self) -> str:
        """The hash in a line, for people."""
        spec = self.spec
        how = "thresholds" if self.modulus is None else f"modulo {self.modulus}"
        policy = f", policy {spec.policy}" if spec.function == "linux" else ""
        return f"{spec.function} of {', '.join(spec.fields)}; seed {spec.seed}{policy}; {how}"


def infer(seen: Observations, *, seeds: Iterable[int] = SEEDS_DEFAULT) -> list[Inferred]:
    """The known hashes that fit what was seen at one switch, the most certain first; none where none does.

    Raises
    ------
    ConfigError
        If too little was seen to tell hashes apart.
    """
    entropy = _entropy_bits(seen)
    if entropy * (len(seen) - 3 * len(seen.neighbours)) < EVIDENCE_MIN_BITS:
        raise ConfigError(
            f"{seen.switch}: {len(seen)} ports over {len(seen.neighbours)} next hops tell too little; "
            "learn more: ark discover --per-path all --ports 50000-50499"
        )
    pairs = _pairs_apart(seen)
    listed = tuple(dict.fromkeys(seeds))
    found = []
    for unseeded in _unseeded(len(seen.header.src)):
        for spec, hashed in _with_seeds(unseeded, listed, seen.header):
            fitted = _fit_thresholds(seen, spec, hashed, entropy) or _fit_modulo(
                seen, spec, hashed, pairs, entropy
            )
            if fitted is not None:
                found.append(fitted)
    return sorted(found, key=lambda one: -one.evidence_bits)


def _unseeded(words: int) -> Iterator[HashSpec]:
    """Every function with every choice of fields; ``words`` is 1 for IPv4, 4 for IPv6."""
    for function in FUNCTIONS:
        policies: tuple[Literal[1, 3], ...] = (3, 1) if function == "linux" else (3,)
        for policy in policies:
            for fields in FIELDS:
                if _possible(function, fields, policy=policy, words=words):
                    yield HashSpec(function=function, fields=fields, seed=1, policy=policy)


def _with_seeds(
    unseeded: HashSpec, seeds: Iterable[int], header: Header
) -> "Iterator[tuple[HashSpec, npt.NDArray[np.int64]]]":
    """A candidate with each seed, and its hash of all lanes."""
    specs = [
        HashSpec(function=unseeded.function, fields=unseeded.fields, seed=seed, policy=unseeded.policy)
        for seed in seeds
        if seed or unseeded.function != "linux"
    ]
    if unseeded.function in _NOT_AFFINE:
        for spec in specs:
            yield spec, _hashed(spec, header)
        return
    # The seed of an affine hash XORs the same number into all results; one header tells which.
    one = header_of(FiveTuple("10.0.0.1", "10.0.0.2", 0, 0, dest_qp=0))
    if len(header.src) > 1:
        one = header_of(FiveTuple("fd00::1", "fd00::2", 0, 0, dest_qp=0))
    hashed, start = _hashed(unseeded, header), hasher(unseeded, node=0).hash(one)
    for spec in specs:
        yield spec, hashed ^ (start ^ hasher(spec, node=0).hash(one))


def _possible(
    function: HashFunction, fields: Sequence[HashField], *, policy: Literal[1, 3], words: int
) -> bool:
    if function in _ORDERED and fields == FIELDS[5]:
        return False
    if function == "linux":
        return "dest-qp" not in fields and (policy == 3 or fields == FIVE_TUPLE_FIELDS)
    if function == "toeplitz":  # the key of 40 bytes ends 4 bytes after what it hashes
        return words == 1 or ("proto" not in fields and "dest-qp" not in fields)
    return True


def _fit_thresholds(
    seen: Observations, spec: HashSpec, hashed: "npt.NDArray[np.int64]", entropy: float
) -> Inferred | None:
    order = hashed.argsort(kind="stable")
    choices = seen.choices[order]
    (ends,) = (choices[1:] != choices[:-1]).nonzero()
    if len(ends) + 1 != len(seen.neighbours):
        return None
    ordered = hashed[order]
    bounds = [int(ordered[end] + ordered[end + 1]) // 2 for end in ends]
    members = [int(choices[end]) for end in ends] + [int(choices[-1])]
    evidence = entropy * (len(seen) - 3 * len(members))
    return _inferred(seen, spec, "thresholds", None, bounds, members, evidence)


def _fit_modulo(
    seen: Observations,
    spec: HashSpec,
    hashed: "npt.NDArray[np.int64]",
    pairs: "tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]",
    entropy: float,
) -> Inferred | None:
    import numpy as np  # noqa: PLC0415 - only inference needs NumPy

    least = len(seen.neighbours)
    moduli = np.array([*range(least, MODULI_MAX + 1), *(m for m in MODULI_MORE if m >= least)])
    # Two that went different ways must not share a bucket: one step rules nearly all candidates out.
    differences = np.abs(hashed[pairs[0]] - hashed[pairs[1]])
    (left,) = (differences % moduli[:, None]).all(axis=1).nonzero()
    for modulus in moduli[left].tolist():
        buckets = hashed % modulus
        table = np.full(modulus, -1)
        table[buckets] = seen.choices
        if (table[buckets] != seen.choices).any():
            continue
        (used,) = (table >= 0).nonzero()
        evidence = entropy * (len(seen) - len(used))
        if evidence >= EVIDENCE_MIN_BITS:
            return _inferred(seen, spec, "modulo", modulus, used.tolist(), table[used].tolist(), evidence)
    return None


def _pairs_apart(seen: Observations) -> "tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]":
    """Lanes that went to different neighbours, a few times as many pairs as lanes."""
    import numpy as np  # noqa: PLC0415 - only inference needs NumPy

    lanes = np.arange(len(seen))
    first = np.concatenate([lanes, lanes])
    second = np.concatenate([np.roll(lanes, 1), np.roll(lanes, len(seen) // 3)])
    apart = seen.choices[first] != seen.choices[second]
    return first[apart], second[apart]


def _inferred(
    seen: Observations,
    spec: HashSpec,
    selection: Literal["modulo", "thresholds"],
    modulus: int | None,
    bounds: Sequence[int],
    members: Sequence[int],
    evidence_bits: float,
) -> Inferred:
    known = HashSpec(
        function=spec.function, fields=spec.fields, seed=spec.seed, policy=spec.policy, selection=selection
    )
    return Inferred(
        seen.switch, seen.neighbours, known, modulus, tuple(bounds), tuple(members), evidence_bits
    )


def _hashed(spec: HashSpec, header: Header) -> "npt.NDArray[np.int64]":
    import numpy as np  # noqa: PLC0415 - only inference needs NumPy

    return np.asarray(hasher(spec, node=0).hash(header)).astype(np.int64)


def _entropy_bits(seen: Observations) -> float:
    """Bits that one observation tells, by the shares of the neighbours."""
    import numpy as np  # noqa: PLC0415 - only inference needs NumPy

    shares = np.bincount(seen.choices) / len(seen)
    return float(-sum(share * log2(share) for share in shares if share > 0))
