"""How busy the machine was while transfers ran, and whether that spoiled the run."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BUSY_MAX: Final = 0.9
"""Share of all cores from which on the machine, and not the network, decides times."""

LATE_SHARE_MAX: Final = 0.05
"""Share of the mean FCT that senders may wake up late (95th percentile) before a run counts as spoiled."""


@dataclass(frozen=True, slots=True)
class Busy:
    """CPU time between two looks.

    Attributes
    ----------
    busy_share
        Of all cores, by everything on the machine, 0 to 1.
    lab_share
        The same by the lab's own processes; packets that the kernel moves are mostly counted outside of them.
    cores
        How many there are.
    """

    busy_share: float
    lab_share: float
    cores: int


class Meter:
    """Reads CPU times at its start; ``busy`` says what was used since."""

    def __init__(self, processes: Iterable[int]) -> None:
        self._processes = (*processes, os.getpid())
        self._total, self._idle = _whole()
        self._own = self._ours()

    def busy(self) -> Busy:
        """What was used since the meter was made."""
        total, idle = _whole()
        span = max(1, total - self._total)
        return Busy(1 - (idle - self._idle) / span, (self._ours() - self._own) / span, os.cpu_count() or 1)

    def _ours(self) -> int:
        return sum(_of_process(number) for number in self._processes)


def spoiled(busy: Busy, late_p95_s: float, fct_mean_s: float) -> str:
    """Why times say more about the machine than about the network; empty where they do not."""
    if busy.busy_share >= BUSY_MAX:
        busy_text, own = f"{100 * busy.busy_share:.0f} %", f"{100 * busy.lab_share:.0f} %"
        return f"{busy_text} of {busy.cores} cores were busy, {own} with the lab"
    if late_p95_s > LATE_SHARE_MAX * fct_mean_s:
        return f"one in twenty transfers began {late_p95_s * 1e3:.0f} ms late"
    return ""


def _whole() -> tuple[int, int]:
    """Clock ticks of all cores: in all, and idle. Source: proc_stat(5)."""
    numbers = [int(word) for word in Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:9]]
    return sum(numbers), numbers[3] + numbers[4]


def _of_process(number: int) -> int:
    """Clock ticks of one process; 0 where it has ended. Source: proc_pid_stat(5), fields 14 and 15."""
    try:
        text = Path(f"/proc/{number}/stat").read_text("ascii", errors="replace")
    except OSError:
        return 0
    words = text.rpartition(")")[2].split()
    return int(words[11]) + int(words[12])
