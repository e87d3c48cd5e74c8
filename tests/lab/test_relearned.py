"""Learned ports on a running lab that loses a spine and gets it back."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import inf

import pytest

from ark.client import Client
from ark.errors import LabError
from ark.fabric import leaf_spine
from ark.lab import learning
from ark.lab.attention import Attention
from ark.lab.faults import Schedule, fault_runs
from ark.lab.lab import Lab, lab
from ark.lab.orders import PORT
from ark.lab.outcome import Choice
from ark.lab.relearned import Relearned
from ark.lab.scaled import scaled

FABRIC = scaled(leaf_spine(2, 3, 1), 10**8, hash_seed=5)
PATIENCE_S = 60.0

GOOD = Relearned(
    lost_s=10.0, known_s=12.5, back_s=20.0, again_s=23.0, early=3, late=0, again=2, recovered=True
)


def test_what_must_not_be_is_said() -> None:
    assert GOOD.wrongs() == []
    assert replace(GOOD, known_s=inf).wrongs() == [
        "not all agents knew of the loss before its end, 10.0 s later; give more --requests"
    ]
    assert replace(GOOD, late=2).wrongs() == ["2 transfers were sent over what was known to be lost"]
    assert replace(GOOD, again=0).wrongs() == [
        "no transfer used again what had come back; give more --requests"
    ]
    assert replace(GOOD, recovered=False).wrongs() == ["not all learned maps were whole and valid in the end"]


def test_what_was_is_said() -> None:
    assert GOOD.sentence() == (
        "all agents knew of the loss 2.5 s later (3 transfers went there before, 0 later), "
        "and of the return 3.0 s later (2 transfers went there again)"
    )
    assert "of the return after the run" in replace(GOOD, again_s=inf).sentence()
    assert replace(GOOD, again_s=inf).row()["again_s"] is None


@pytest.fixture(scope="module")
def built() -> Iterator[Lab]:
    if os.geteuid() != 0:
        pytest.skip("needs root and network namespaces")
    with lab(FABRIC.lab, name=f"ark-lab.learned{os.getpid()}") as made:
        learning.learn(made, {"h0": ["h1"]})
        yield made


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.05)


def chosen(client: Client) -> set[int | None]:
    """The paths of eight transfers at once: with all ports known, every path is among them."""
    held = [client.transfer("h1", 10**9, dport=PORT, proto="tcp") for _ in range(8)]
    paths = {transfer.path for transfer in held}
    for transfer in held:
        transfer.release()
    return paths


@pytest.mark.slow
def test_nothing_goes_over_a_lost_spine_until_it_is_back(built: Lab) -> None:
    """By the agent and the watch as they are, without a word to either: only the fabric tells them."""
    fault = fault_runs(FABRIC.lab)["spine-down"]
    schedule = Schedule(built, fault, 300.0)  # breaks at 100 s and mends at 200 s, of a clock of this test
    attention = Attention(built, FABRIC.lab, fault, schedule)
    built.agents.start("ark")
    try:
        built.agents.wait()
        with learning.watching(built, ["h0"]):
            client = Client(built.agents.socket("h0"), timeout_s=PATIENCE_S)
            assert chosen(client) == {0, 1, 2}
            began_s = time.monotonic()

            def knows(since_s: float) -> bool:
                attention.turn(since_s + time.monotonic() - began_s)
                return attention.knows

            until(lambda: knows(100.0))
            assert chosen(client) == {1, 2}
            until(lambda: knows(200.0))
            assert chosen(client) == {0, 1, 2}
            assert client.status()["learned"] == {"valid": 1, "in_doubt": 0, "epoch": 3}
            client.close()
        attention.finish()
        choices = [Choice(asked_s, "h0", "h1", 0) for asked_s in (50.0, 100.5, 199.9, 299.0)]
        found = attention.relearned([*choices, Choice(299.0, "h0", "h1", 1)])
        assert (found.early, found.late, found.again) == (1, 1, 1)
        assert found.recovered
    finally:
        schedule.finish()
        built.agents.stop()


@pytest.mark.slow
def test_a_watch_that_ends_is_said(built: Lab) -> None:
    file = built.agents.paths("h0")
    whole = file.read_text("utf-8")
    file.write_text("{", "utf-8")
    try:
        with (
            pytest.raises(LabError, match=r"the watch of h0 has ended: .*is no JSON"),
            learning.watching(built, ["h0"]),
        ):
            pytest.fail("it cannot begin")
    finally:
        file.write_text(whole, "utf-8")
