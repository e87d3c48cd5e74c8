"""Table 1: what the controller's operations cost on this machine, beside what the paper's took."""

from dataclasses import dataclass
from typing import Final

from ark.report import paper
from ark.units import format_time

RATIO_ROW: Final = "K = 4 reservation / KV transfer"


@dataclass(frozen=True, slots=True)
class Timing:
    """One operation: CPU seconds a call here and in the paper (None where the paper has no such row)."""

    name: str
    what: str
    seconds: float
    paper_s: float | None
    how: str


@dataclass(frozen=True, slots=True)
class Table1:
    """All rows, and the machine that they were measured on."""

    timings: tuple[Timing, ...]
    machine: str

    def seconds(self, name: str) -> float:
        """Seconds a call of one row."""
        return next(timing.seconds for timing in self.timings if timing.name == name)

    def ratio(self) -> float:
        """Share of a transfer that its reservation at K = 4 takes."""
        return self.seconds("arrival_4") / self.seconds("transfer")

    def as_json(self) -> dict[str, object]:
        """The object of ``table1.json``."""
        rows = [
            {
                "name": timing.name,
                "what": timing.what,
                "seconds": timing.seconds,
                "paper_s": timing.paper_s,
                "how": timing.how,
            }
            for timing in self.timings
        ]
        paper_ratio = paper.TABLE1_S["arrival_4"] / paper.TABLE1_S["transfer"]
        return {
            "machine": self.machine,
            "paper_machine": paper.MACHINE,
            "rows": rows,
            "reservation_share_of_transfer": self.ratio(),
            "paper_reservation_share_of_transfer": paper_ratio,
        }

    def cells(self) -> list[tuple[str, str, str, str]]:
        """The table for people: operation, the paper's time, ours, and how ours was measured."""
        rows = [
            (
                timing.what,
                "–" if timing.paper_s is None else format_time(timing.paper_s),
                format_time(timing.seconds),
                timing.how,
            )
            for timing in self.timings
        ]
        paper_share = paper.TABLE1_S["arrival_4"] / paper.TABLE1_S["transfer"]
        share = (RATIO_ROW, f"{100 * paper_share:.4f} %", f"{100 * self.ratio():.4f} %", "of the rows above")
        return [*rows, share]
