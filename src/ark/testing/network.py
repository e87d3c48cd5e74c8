"""A network that delays, loses, repeats and reorders datagrams, and that can be cut."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Final

from ark.units import NS_PER_S

DELAY_MIN_NS: Final = 20_000
"""Least one-way delay: a few switches and a kernel."""

DELAY_SPREAD_NS: Final = 80_000
"""Delay on top of it in a network without faults; so even that one reorders."""

COPIES_MAX: Final = 3
"""Copies of one datagram that arrive at most."""


@dataclass(slots=True)
class SimulatedNetwork:
    """How datagrams travel between addresses; all randomness comes from ``rng``.

    Attributes
    ----------
    loss, duplicates
        Share of datagrams, 0 to 1, that vanish or arrive more than once.
    delay_extra_ns
        Up to this much is added to the delay of each copy.
    cut
        Pairs (from, to) of addresses between which nothing passes.
    """

    rng: Random
    loss: float = 0.0
    duplicates: float = 0.0
    delay_extra_ns: int = 0
    cut: set[tuple[str, str]] = field(default_factory=set)
    lost: int = 0
    carried: int = 0

    def delays(self, source: str, target: str) -> Iterator[int]:
        """The delay of each copy of a datagram that arrives, ns; none if it is lost."""
        if (source, target) in self.cut or self.rng.random() < self.loss:
            self.lost += 1
            return
        copies = self.rng.randint(2, COPIES_MAX) if self.rng.random() < self.duplicates else 1
        for _ in range(copies):
            self.carried += 1
            extra = self.rng.randrange(self.delay_extra_ns) if self.delay_extra_ns else 0
            yield DELAY_MIN_NS + self.rng.randrange(DELAY_SPREAD_NS) + extra

    def worsen(self, kind: str, amount: float) -> None:
        """Let a fault begin (or, with a negative amount, end); several at once add up."""
        if kind == "loss":
            self.loss += amount
        elif kind == "duplicates":
            self.duplicates += amount
        elif kind == "delay":
            self.delay_extra_ns += int(amount * NS_PER_S)
