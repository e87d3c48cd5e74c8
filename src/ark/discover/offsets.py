"""One probe a pair is enough where the hash is linear: CRC, XOR and Toeplitz with 2^b paths.

Such a hash is affine over GF(2): changing the source port by a pattern of bits changes the path in the same
way for every pair of addresses. The patterns that change nothing form a linear space, the kernel; ports
whose difference lies in it share their path, whatever the pair. From the ports of one learned pair we get
the kernel and with it the classes of ports; for another pair, one base probe says which class leads to
which path.

No label, seed, field or polynomial needs to be known. A hash that is not affine (murmur, SipHash, modulo by
no power of two, weights, resilient tables) fills the whole space with patterns and is refused.

Source of the idea: RePaC ("Hashing Linearity Enables Relative Path Control in Data Centers", USENIX ATC
2021).
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import log2
from typing import Final, Generic, TypeVar

PATHS_MAX: Final = 1 << 10
"""Paths of a pair; a kernel of the 16 bits of a port must remain."""

EVIDENCE_MIN_BITS: Final = 60.0
"""As for hash functions: what fits by chance is far rarer."""

PathT = TypeVar("PathT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Offsets(Generic[PathT]):
    """How a difference of ports moves a pair's path to another.

    Attributes
    ----------
    kernel
        A reduced basis of the patterns that change nothing, the highest bit of each alone in its place.
    at
        The path of each class of ports of the pair that was learned, by the class's least pattern.
    evidence_bits
        How unlikely it is that a hash that is not affine looks like this, in powers of two.
    """

    kernel: tuple[int, ...]
    at: Mapping[int, PathT]
    evidence_bits: float

    def class_of(self, port: int) -> int:
        """The least pattern of the class of a port."""
        return _reduced(port, self.kernel)

    def path_of(self, port: int, *, base_port: int, base_path: PathT) -> PathT | None:
        """The path of a port of any pair that has the same switches, from one probe of that pair.

        ``None`` for a class of ports that the learned ports do not reach, or a path that was never seen.
        """
        learned = next((pattern for pattern, path in self.at.items() if path == base_path), None)
        if learned is None:
            return None
        return self.at.get(self.class_of(port ^ base_port ^ learned))


def fit_offsets(paths: Mapping[int, PathT]) -> Offsets[PathT] | None:
    """The offsets that the learned ports of one pair show; ``None`` if the hash is not affine in the port.

    Parameters
    ----------
    paths
        The path of each learned port; some more than 16 for each path should be known.
    """
    number = len(set(paths.values()))
    if number & (number - 1) or not 2 <= number <= PATHS_MAX:
        return None
    basis: list[int] = []
    first: dict[PathT, int] = {}
    redundant = 0
    for port, path in paths.items():
        pattern = _reduced(port ^ first.setdefault(path, port), basis)
        if pattern:
            basis = _extended(basis, pattern)
        else:
            redundant += 1
    at: dict[int, PathT] = {}
    for port, path in paths.items():
        if at.setdefault(_reduced(port, basis), path) != path:
            return None
    # Each port that fitted without a new pattern could have been on any path.
    evidence = log2(number) * (redundant - number)
    if len(at) != number or evidence < EVIDENCE_MIN_BITS:
        return None
    return Offsets(tuple(basis), at, evidence)


def _reduced(pattern: int, basis: "tuple[int, ...] | list[int]") -> int:
    for vector in basis:
        pattern = min(pattern, pattern ^ vector)
    return pattern


def _extended(basis: list[int], pattern: int) -> list[int]:
    """The basis with one vector more, still reduced, the greatest first."""
    top = 1 << pattern.bit_length() - 1
    cleared = [vector ^ pattern if vector & top else vector for vector in basis]
    return sorted([*cleared, pattern], reverse=True)
