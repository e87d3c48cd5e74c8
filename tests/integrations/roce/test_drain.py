"""Drain and move, against queue pairs that behave as the sources of rxe and mlx5 do."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.fabric.roce import flow_label_of_sport
from ark.integrations.roce import (
    BY_NAME,
    Labelled,
    NotSteered,
    Outcome,
    Seen,
    State,
    Steered,
    drain_and_move,
    label_for,
)

PORT = 50_001
LABELLED = label_for(BY_NAME["rxe"], PORT)


@dataclass
class FakeQueuePair:
    """A queue pair as ``rxe_qp.c`` has it: the address vector changes in SQD only, and SQD drains.

    ``outstanding`` looks pass before it is drained. ``fails`` names the call that is refused, ``breaks`` the
    look at which the queue pair has gone to ERR.
    """

    state: State = State.RTS
    outstanding: int = 0
    fails: str = ""
    breaks: int = -1
    label: int = 848
    calls: list[str] = field(default_factory=list)
    looks: int = 0

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name == self.fails:
            raise OSError(22, "Invalid argument")

    def look(self) -> Seen:
        self._call("look")
        if self.looks == self.breaks:
            self.state = State.ERR
        self.looks += 1
        if self.state is State.SQD and self.outstanding:
            self.outstanding -= 1
            return Seen(self.state, True)
        return Seen(self.state, False)

    def drain(self) -> None:
        self._call("drain")
        assert self.state is State.RTS
        self.state = State.SQD

    def relabel(self, flow_label: int) -> None:
        self._call("relabel")
        assert self.state is State.SQD
        assert not self.outstanding, "an address vector changes only once all is drained"
        self.label = flow_label

    def resume(self) -> None:
        self._call("resume")
        assert self.state is State.SQD
        self.state = State.RTS


class Clock:
    """Time that passes by sleeping only."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_ns += round(seconds * 1e9)


def moved(qp: FakeQueuePair, labelled: Labelled = LABELLED, timeout_s: float = 1.0) -> tuple[Outcome, Clock]:
    clock = Clock()
    outcome = drain_and_move(qp, labelled, timeout_s=timeout_s, clock_ns=clock, sleep=clock.sleep)
    return outcome, clock


@pytest.mark.parametrize("outstanding", [0, 1, 10])
def test_a_queue_pair_moves_once_all_that_is_under_way_has_arrived(outstanding: int) -> None:
    qp = FakeQueuePair(outstanding=outstanding)
    assert moved(qp)[0] == Steered(PORT, "drain and move")
    assert (qp.state, qp.label) == (State.RTS, flow_label_of_sport(PORT))
    assert [call for call in qp.calls if call != "look"] == ["drain", "relabel", "resume"]


@pytest.mark.parametrize("state", [state for state in State if state is not State.RTS])
def test_only_a_queue_pair_that_is_ready_to_send_is_touched(state: State) -> None:
    qp = FakeQueuePair(state=state)
    assert moved(qp)[0] == NotSteered(f"the queue pair is in {state.name}, not in RTS")
    assert qp.calls == ["look"]


def test_what_does_not_drain_in_time_goes_on_as_it_was() -> None:
    qp = FakeQueuePair(outstanding=10_000)
    outcome, clock = moved(qp, timeout_s=0.5)
    assert outcome == NotSteered("not drained within 0.5 s")
    assert (qp.state, qp.label) == (State.RTS, 848)
    assert clock.now_ns < 600_000_000


def test_mlx5_refuses_a_new_address_vector_in_sqd_and_goes_on_as_it_was() -> None:
    qp = FakeQueuePair(fails="relabel")
    outcome, _ = moved(qp)
    assert isinstance(outcome, NotSteered)
    assert "the new address vector was refused: " in outcome.reason
    assert (qp.state, qp.label) == (State.RTS, 848)


def test_a_queue_pair_that_stays_drained_is_said_to_be() -> None:
    outcome, _ = moved(FakeQueuePair(fails="resume"))
    assert isinstance(outcome, NotSteered)
    assert "the queue pair stays drained (SQD): " in outcome.reason


def test_a_queue_pair_that_breaks_while_it_drains_ends_the_move() -> None:
    qp = FakeQueuePair(outstanding=5, breaks=3)
    assert moved(qp)[0] == NotSteered("the queue pair is in ERR, not in SQD")
    assert "resume" not in qp.calls


def test_what_cannot_be_labelled_is_not_drained() -> None:
    qp = FakeQueuePair()
    assert moved(qp, label_for(BY_NAME["efa"], PORT))[0] == NotSteered("efa ignores flow labels")
    assert qp.calls == []


@given(
    st.sampled_from(["", "look", "drain", "relabel", "resume"]),
    st.integers(0, 400),
    st.integers(-1, 400),
    st.sampled_from(list(State)),
)
def test_whatever_fails_the_move_ends_and_a_live_queue_pair_is_ready_to_send(
    fails: str, outstanding: int, breaks: int, state: State
) -> None:
    qp = FakeQueuePair(state=state, outstanding=outstanding, fails=fails, breaks=breaks)
    outcome, clock = moved(qp)
    assert clock.now_ns < 2_100_000_000
    if outcome:
        assert (qp.state, qp.label) == (State.RTS, flow_label_of_sport(PORT))
    elif state is State.RTS and qp.state is not State.ERR and fails != "resume":
        assert (qp.state, qp.label) == (State.RTS, 848)


def test_looks_get_rarer_while_it_drains() -> None:
    sleeps: list[float] = []
    clock = Clock()

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        clock.sleep(seconds)

    wait: Callable[[float], None] = sleep
    drain_and_move(FakeQueuePair(outstanding=20), LABELLED, clock_ns=clock, sleep=wait)
    assert sleeps == sorted(sleeps)
    assert max(sleeps) <= 0.02
