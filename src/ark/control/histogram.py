"""How long things took, counted in whole numbers: a reader takes nothing away, so there may be several."""

from bisect import bisect_left
from dataclasses import dataclass, field


def decades_ns(first_ns: int, count: int) -> tuple[int, ...]:
    """Bounds at 1, 2 and 5 in each of some decades, from ``first_ns`` on."""
    return tuple(first_ns * 10**decade * factor for decade in range(count) for factor in (1, 2, 5))


@dataclass(slots=True)
class Times:
    """A histogram of times.

    Attributes
    ----------
    bounds_ns
        The longest time of each class, rising.
    counts
        Times in each class, and above all bounds.
    total_ns
        Sum of all times.
    """

    bounds_ns: tuple[int, ...]
    counts: list[int] = field(init=False)
    total_ns: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds_ns) + 1)

    def add(self, taken_ns: int) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds_ns, taken_ns)] += 1
        self.total_ns += taken_ns
