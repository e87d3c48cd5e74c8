"""Move a live queue pair to another source port: RTS → SQD → new address vector → RTS.

``DrainAndMove`` decides and touches nothing; ``drain_and_move`` does what it says. Whatever fails, the queue
pair goes back to RTS, on its old port, if it can.

Move at a segment's end, with nothing outstanding. Seen on soft RoCE: inside a message of 1 MiB the queue pair
of Linux 6.1 counts as drained only after its acknowledge time-out, and the rest of the message then waits for
the next request that is posted; on 6.12 the rest goes on after another time-out.

Source of the transitions: InfiniBand Architecture Specification 1.4, vol. 1, 10.3.1; Linux,
drivers/infiniband/core/verbs.c (``qp_state_table``).
"""

import time
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import Final, NamedTuple, Protocol

from ark.integrations.roce.label import Labelled
from ark.integrations.roce.outcome import NotSteered, Outcome, Steered

DRAIN_TIMEOUT_S: Final = 5.0
"""How long what is under way may take to be acknowledged, before the move is given up."""

_PAUSE_S: Final = 0.000_5
_PAUSE_MAX_S: Final = 0.02


class State(IntEnum):
    """``enum ibv_qp_state``."""

    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    SQD = 4
    SQE = 5
    ERR = 6


class Seen(NamedTuple):
    """What a query of the queue pair says."""

    state: State
    draining: bool


class Step(Enum):
    """What to do next, and then to report by ``done``, ``failed`` or ``seen``."""

    LOOK = "query the queue pair"
    DRAIN = "modify to SQD"
    MOVE = "modify the address vector"
    RESUME = "modify to RTS"
    END = "nothing; the outcome is there"


class DrainAndMove:
    """One move of one queue pair.

    Attributes
    ----------
    outcome
        There once ``step`` is ``END``.
    """

    def __init__(self, source_port: int, *, now_ns: int, timeout_ns: int) -> None:
        self.step = Step.LOOK
        self.outcome: Outcome | None = None
        self._port = source_port
        self._timeout_ns = timeout_ns
        self._deadline_ns = now_ns + timeout_ns
        self._phase = Step.DRAIN  # what comes when the look is satisfied
        self._trouble = ""

    def seen(self, now_ns: int, seen: Seen) -> None:
        """A query has been answered."""
        assert self.step is Step.LOOK
        wanted = State.RTS if self._phase is Step.DRAIN else State.SQD
        if seen.state is not wanted:
            self._end(NotSteered(f"the queue pair is in {seen.state.name}, not in {wanted.name}"))
        elif self._phase is Step.DRAIN or not seen.draining:
            self.step = self._phase
        elif now_ns >= self._deadline_ns:
            self._trouble = self._trouble or (
                "" if self._phase is Step.RESUME else f"not drained within {self._timeout_ns / 1e9:g} s"
            )
            self.step = Step.RESUME

    def done(self, now_ns: int) -> None:
        """A modification has been made."""
        if self.step is Step.RESUME:
            self._end(NotSteered(self._trouble) if self._trouble else Steered(self._port, "drain and move"))
            return
        self._phase = Step.MOVE if self.step is Step.DRAIN else Step.RESUME
        self._deadline_ns = now_ns + self._timeout_ns
        self.step = Step.LOOK

    def failed(self, why: str) -> None:
        """A modification or a query has been refused."""
        if self.step is Step.DRAIN or (self.step is Step.LOOK and self._phase is Step.DRAIN):
            self._end(NotSteered(f"cannot drain: {why}"))
        elif self.step is Step.RESUME:
            before = f"{self._trouble}; " if self._trouble else ""
            self._end(NotSteered(f"{before}the queue pair stays drained (SQD): {why}"))
        else:
            self._trouble = f"the new address vector was refused: {why}" if self.step is Step.MOVE else why
            self.step = Step.RESUME

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.step = Step.END


class Drainable(Protocol):
    """A queue pair as this module needs it; its methods raise ``OSError`` where the driver refuses."""

    def look(self) -> Seen:
        """Query state and draining."""

    def drain(self) -> None:
        """Modify to SQD."""

    def relabel(self, flow_label: int) -> None:
        """Modify the address vector, with all as it was but for the label."""

    def resume(self) -> None:
        """Modify to RTS."""


def drain_and_move(
    queue_pair: Drainable,
    labelled: Labelled,
    *,
    timeout_s: float = DRAIN_TIMEOUT_S,
    clock_ns: Callable[[], int] = time.monotonic_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Move a queue pair, waiting for what is under way on it; for drivers with ``Move.DRAIN`` only."""
    if not isinstance(labelled.outcome, Steered):
        return labelled.outcome
    machine = DrainAndMove(labelled.outcome.source_port, now_ns=clock_ns(), timeout_ns=round(timeout_s * 1e9))
    acts = {
        Step.DRAIN: queue_pair.drain,
        Step.MOVE: lambda: queue_pair.relabel(labelled.flow_label),
        Step.RESUME: queue_pair.resume,
    }
    pause_s = _PAUSE_S
    while machine.outcome is None:
        try:
            if machine.step is Step.LOOK:
                machine.seen(clock_ns(), queue_pair.look())
                if machine.step is Step.LOOK:
                    sleep(pause_s)
                    pause_s = min(2 * pause_s, _PAUSE_MAX_S)
            else:
                acts[machine.step]()
                machine.done(clock_ns())
                pause_s = _PAUSE_S
        except OSError as error:
            machine.failed(str(error))
    return machine.outcome
