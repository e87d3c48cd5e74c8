"""What agents that learn their ports by probes knew of lost links, and what they chose meanwhile."""

from dataclasses import asdict, dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Relearned:
    """What agents knew when, in seconds since the start of a run (infinite: never), and what they chose.

    Attributes
    ----------
    lost_s, back_s
        When links went down and came back.
    known_s, again_s
        When all agents knew that.
    early, late
        Transfers sent over what was lost: before all agents knew, and after, which must not be.
    again
        Transfers sent there once it was back: their agents knew of that.
    recovered
        Whether in the end all maps were whole and valid.
    """

    lost_s: float
    known_s: float
    back_s: float
    again_s: float
    early: int
    late: int
    again: int
    recovered: bool

    def wrongs(self) -> list[str]:
        """What must not be."""
        found = []
        if self.known_s >= self.back_s:
            found.append(
                f"not all agents knew of the loss before its end, {self.back_s - self.lost_s:.1f} s later; "
                "give more --requests"
            )
        if self.late:
            found.append(f"{self.late} transfers were sent over what was known to be lost")
        if not self.again:
            found.append("no transfer used again what had come back; give more --requests")
        if not self.recovered:
            found.append("not all learned maps were whole and valid in the end")
        return found

    def row(self) -> dict[str, float | int | bool | None]:
        """All of it as plain data; what never was is None."""
        return {name: None if value == inf else value for name, value in asdict(self).items()}

    def sentence(self) -> str:
        """The same for people."""
        return (
            f"all agents knew of the loss {_after(self.known_s, self.lost_s)} ({self.early} transfers went "
            f"there before, {self.late} later), and of the return {_after(self.again_s, self.back_s)} "
            f"({self.again} transfers went there again)"
        )


def _after(when_s: float, since_s: float) -> str:
    return "after the run" if when_s == inf else f"{when_s - since_s:.1f} s later"
