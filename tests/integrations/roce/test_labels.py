"""The label that makes a driver use a port, and what is promised of it."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.client import Lane
from ark.errors import LocalProtocolError
from ark.fabric.roce import SPORTS, sport_of_flow_label
from ark.integrations.roce import (
    BY_NAME,
    DRIVERS,
    Driver,
    Label,
    Move,
    NotSteered,
    PathQueuePairs,
    Steered,
    label_for,
)
from ark.integrations.roce.drivers import unknown

HONOURING = [driver for driver in DRIVERS if driver.label is Label.SETS_PORT]


def test_every_port_of_roce_has_a_label_that_folds_back_to_it() -> None:
    rxe = BY_NAME["rxe"]
    for port in SPORTS:
        flow_label, outcome = label_for(rxe, port)
        assert sport_of_flow_label(flow_label) == port
        assert outcome == Steered(port, "flow label at RTR")


@given(st.sampled_from([*DRIVERS, unknown("new")]), st.integers(SPORTS.start, SPORTS.stop - 1))
def test_a_driver_is_never_promised_to_do_what_it_was_not_seen_to_do(driver: Driver, port: int) -> None:
    flow_label, outcome = label_for(driver, port)
    assert bool(outcome) == (driver.label is Label.SETS_PORT)
    assert (flow_label == 0) == (driver.label is Label.IGNORED)
    if isinstance(outcome, NotSteered):
        assert driver.name in outcome.reason


def test_without_a_preference_the_driver_decides() -> None:
    assert label_for(BY_NAME["mlx5"], None) == (0, NotSteered("no preference"))


@given(st.integers().filter(lambda port: port not in SPORTS))
def test_other_ports_are_refused(port: int) -> None:
    with pytest.raises(LocalProtocolError, match="RoCE source ports are 49152 to 65535"):
        label_for(BY_NAME["rxe"], port)


def test_the_table_of_drivers_is_whole() -> None:
    assert (
        len({driver.name for driver in DRIVERS}) == len({driver.number for driver in DRIVERS}) == len(DRIVERS)
    )
    for driver in DRIVERS:
        assert driver.source
        assert (driver.call is not None) == (driver.move is Move.CALL)
        assert bool(driver.why_not_moved) == (driver.move is Move.NONE)
    assert [driver.name for driver in DRIVERS if driver.move is Move.DRAIN] == ["rxe"]


def connected(lanes: Iterable[Lane]) -> tuple[PathQueuePairs[str], list[int | None]]:
    made: list[int | None] = []

    def connect(lane: Lane | None) -> str:
        made.append(None if lane is None else lane.path)
        return "unsteered" if lane is None else f"port {lane.source_port}"

    return PathQueuePairs(lanes, connect), made


def test_each_path_has_its_queue_pair_made_once() -> None:
    pairs, made = connected([Lane(0, 50_000, 848), Lane(3, 50_001, 849), Lane(5)])
    assert [pairs.of(path) for path in (3, 0, 3)] == ["port 50001", "port 50000", "port 50001"]
    assert made == [3, 0]
    assert {pairs.of(path) for path in (None, 5, 7)} == {"unsteered"}
    assert made == [3, 0, None]


def test_all_queue_pairs_can_be_made_ahead() -> None:
    pairs, made = connected([Lane(0, 50_000, 848), Lane(1, 50_001, 849)])
    pairs.connect_all()
    assert (made, len(pairs)) == ([0, 1, None], 3)
    pairs.of(1)
    assert len(made) == 3
