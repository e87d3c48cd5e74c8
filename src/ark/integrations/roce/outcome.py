"""What became of an attempt to steer: done, or not and why. Neither is an error; traffic flows on."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Steered:
    """The queue pair sends from ``source_port`` from now on; ``by`` says what made it so. True as a bool."""

    source_port: int
    by: str

    def __bool__(self) -> Literal[True]:
        return True


@dataclass(frozen=True, slots=True)
class NotSteered:
    """The queue pair sends from whatever port it had; ``reason`` is for people. False as a bool."""

    reason: str

    def __bool__(self) -> Literal[False]:
        return False


Outcome = Steered | NotSteered
