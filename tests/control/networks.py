"""Networks for control tests: real fabrics, and a plain one in which any link has any rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from ark.fabric import Fabric, fat_tree, leaf_spine

GBPS = 10**9


@dataclass(frozen=True)
class Clos:
    """Leaves and spines without NICs; link ``leaf * spines + spine`` goes up, the second half goes down."""

    leaves: int
    spines: int
    rates_bps: tuple[int, ...] = ()

    @property
    def attachments(self) -> range:
        return range(self.leaves)

    @property
    def link_rates_bps(self) -> Sequence[int]:
        return self.rates_bps or (100 * GBPS,) * (2 * self.leaves * self.spines)

    def attachment_paths(self, source: int, target: int) -> tuple[tuple[int, ...], ...]:
        if source == target:
            return ((),)
        down = self.leaves * self.spines
        return tuple(
            (source * self.spines + spine, down + target * self.spines + spine)
            for spine in range(self.spines)
        )

    def up_paths(self, source: int, target: int) -> tuple[int, ...]:
        rates = self.link_rates_bps
        paths = self.attachment_paths(source, target)
        return tuple(number for number, path in enumerate(paths) if all(rates[link] for link in path))


@cache
def fabric(leaves: int, spines: int) -> Fabric:
    return leaf_spine(leaves, spines, 2)


@cache
def three_tiers() -> Fabric:
    return fat_tree(4)
