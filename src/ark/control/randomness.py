"""The form in which random numbers are passed in; ``random.Random`` and ``random.SystemRandom`` have it."""

from typing import Protocol


class Randomness(Protocol):
    """A generator of the caller's: seeded in simulations and tests, the operating system's in the agent.

    Nonces come from it too, so in the agent it must be one that nobody can predict.
    """

    def random(self) -> float:
        """A number from 0 up to, but not including, 1."""

    def getrandbits(self, k: int, /) -> int:
        """A whole number of ``k`` random bits."""
