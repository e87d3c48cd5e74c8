import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.control.algorithm1 import Controller, Message
from tests.control.networks import GBPS, Clos
from tests.control.replicas import Replicas

from ark.control.choice import mix
from ark.control.decision import Kind
from ark.control.fleet import Fleet
from ark.control.geometry import PathSets
from ark.control.paper import Claims, FirstFree, LiteralClaims
from ark.control.policy import Policy, Request
from ark.control.rows import Assignment, Change, Row, State

SIZE = 10**9


def row(host: int, path: int, stamp: int, *, fallback: bool = False) -> Row:
    return Row(host, 0, 1, 0, State.ACTIVE, (path,), 0, 1, SIZE, stamp, fallback)


def request(spread: int = 0) -> Request:
    return Request(0, 1, SIZE, 0, spread)


@given(st.integers(1, 70), st.sets(st.integers(0, 69)), st.integers(0, 10**6))
def test_the_first_free_path_is_that_of_a_scan(paths: int, taken: set[int], spread: int) -> None:
    claims = Claims()
    for path in taken:
        claims.change(None, row(path, path, path))
    pick = FirstFree(PathSets(Clos(2, paths)), claims).pick(request(spread))
    free = [path for path in range(paths) if path not in taken]
    assert pick == ((free[0] if free else spread % paths,), not free)


def test_paths_that_are_down_are_taken_by_nobody_and_never_picked() -> None:
    rates = [100 * GBPS] * 12
    rates[0] = rates[9] = 0  # up to spine 0, down from spine 0
    sets = PathSets(Clos(2, 3, tuple(rates)))
    claims = Claims()
    chooser = FirstFree(sets, claims)
    assert chooser.pick(request()).paths == (1,)
    claims.change(None, row(0, 1, 1))
    claims.change(None, row(1, 2, 2))
    assert [chooser.pick(request(spread)) for spread in range(3)] == [
        ((1,), True),
        ((2,), True),
        ((1,), True),
    ]


def opcodes(call: Callable[[], object]) -> int:
    """Bytecodes that a call executes, in all Python functions under it."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("full", [False, True])
def test_the_work_of_a_lookup_is_the_same_whatever_k(full: bool) -> None:
    """The paper's scan "scales linearly" in K (section 4.4)."""
    work = {}
    for paths in (4, 1000):
        claims = Claims()
        chooser = FirstFree(PathSets(Clos(2, paths)), claims)
        chooser.pick(request())  # builds the path set, once per pair of leaves
        for path in range(paths if full else paths - 1):
            claims.change(None, row(path, path, path))
        work[paths] = opcodes(lambda: chooser.pick(request()))  # noqa: B023 - called at once
    assert work[4] == work[1000] > 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 9), st.booleans())))
def test_owners_are_a_function_of_the_rows(changes: list[tuple[int, int, int, bool]]) -> None:
    claims, live = Claims(), dict[int, Row]()
    for host, path, stamp, fallback in changes:
        new = row(host, path, stamp, fallback=fallback) if stamp else None
        claims.change(live.get(host), new)
        if new is None:
            live.pop(host, None)
        else:
            live[host] = new
        claims.check(live.values())
        for where in range(4):
            holders = [each.assignment for each in live.values() if where in each.paths and not each.fallback]
            assert claims.owner(where) == min(holders, default=None)


class Broadcast:
    """Algorithm 1 on several hosts whose messages all arrive ``lag`` later; 0 is at once."""

    def __init__(self, hosts: int, paths: int, *, owner_only: bool, lag: int = 0) -> None:
        self.spreads: dict[int, int] = {}
        self.draws: dict[int, int] = {}
        self.hosts = [Controller(host, paths, self.draw, owner_only=owner_only) for host in range(hosts)]
        self.lag = lag
        self.travelling: list[tuple[int, int, Message]] = []

    def draw(self, flow: int) -> int:
        """Our random numbers: the caller's at arrival, then a new one at each re-hash."""
        draws = self.draws[flow] = self.draws.get(flow, -1) + 1
        return mix(self.spreads[flow], draws) if draws else self.spreads[flow]

    def arrive(self, t: int, host: int, flow: int, spread: int) -> int:
        self.spreads[flow] = spread
        self.send(t, host, self.hosts[host].on_flow_arrival(flow, t))
        return self.hosts[host].k[flow]

    def complete(self, t: int, host: int, flow: int) -> None:
        self.send(t, host, self.hosts[host].on_flow_completion(flow))

    def send(self, t: int, host: int, messages: list[Message]) -> None:
        self.travelling += [(t, host, message) for message in messages]
        if not self.lag:
            self.advance(t)

    def advance(self, now: int) -> None:
        while self.travelling and self.travelling[0][0] + self.lag <= now:
            t, sender, message = self.travelling.pop(0)
            for controller in self.hosts:
                if controller.host != sender:
                    at = t + self.lag
                    answer = controller.on_remote_update(message, at)
                    self.travelling += [(at, controller.host, reply) for reply in answer]


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 40))),
    st.sampled_from(["owner", "any"]),
)
def test_without_lag_every_choice_is_that_of_algorithm_1(
    paths: int, events: list[tuple[int, bool, int]], release: Literal["owner", "any"]
) -> None:
    printed = Broadcast(4, paths + 1, owner_only=release == "owner")
    fleet = Fleet(Clos(3, paths + 1), hosts=4, policy="paper", release=release)
    live: list[tuple[int, int]] = []
    for now, (host, completes, number) in enumerate(events):
        if completes and live:
            owner, flow = live.pop(number % len(live))
            printed.complete(now, owner, flow)
            fleet.flow_completed(now, owner, flow)
            continue
        live.append((host, now))
        decision = fleet.flow_arrived(now, host, now, number % 2, 2, SIZE, number)
        assert decision.paths == (printed.arrive(now, host, now, number),)
        fleet.check()


@settings(deadline=None)
@given(st.integers(2, 4), st.permutations(range(3)), st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_simultaneous_claims_end_as_in_algorithm_1(paths: int, order: list[int], times: list[int]) -> None:
    """All hosts claim within one delay and wait in their hold: every race is as the paper tells it."""
    printed = Broadcast(3, paths, owner_only=True, lag=10)
    policy = Policy(name="paper", line_rate_bps=100 * GBPS, hold_ns=1000, min_bytes=0)
    ours = Replicas(Clos(2, paths), policy, hosts=3, lag_ns=10)
    for now, host in sorted(zip(times, order, strict=True)):
        assert ours.flow_arrived(now, host, host, 0, 1, 10**10, host).paths == (
            printed.arrive(now, host, host, host),
        )
    for now in range(10, 100):
        ours.advance(now)
        printed.advance(now)
    for host, controller in enumerate(printed.hosts):
        (mine,) = [each for each in ours.views[host].table if each.host == host]
        assert mine.paths == (controller.k[host],)
        claims = ours.views[host].claims
        assert claims is not None
        for path in range(paths):
            entry = controller.R.get(path)
            expected = None if entry is None else Assignment(entry[0], *entry[1])
            assert claims.owner(path) == expected
    ours.check()


def test_printed_the_order_of_messages_decides_who_owns_a_path_and_here_it_does_not() -> None:
    winner, loser = row(1, 0, 5), row(2, 0, 6)
    reserve_winner, reserve_loser = Message(0, "RESERVE", 5, (1, 0)), Message(0, "RESERVE", 6, (2, 0))
    release = Message(0, "RELEASE", 5, (1, 0))
    printed = []
    for heard in ([reserve_winner, reserve_loser, release], [reserve_winner, release, reserve_loser]):
        controller = Controller(0, 2, lambda _: 0, owner_only=True)
        for message in heard:
            controller.on_remote_update(message, 9)
        printed.append(controller.R)
    assert printed[0] != printed[1]
    ours = [Claims(), Claims()]
    for old, new in ((None, winner), (None, loser), (winner, None)):
        ours[0].change(old, new)
    for old, new in ((None, winner), (winner, None), (None, loser)):
        ours[1].change(old, new)
    assert ours[0].owner(0) == ours[1].owner(0) == loser.assignment


def test_the_literal_table_is_cleared_by_anybody() -> None:
    claims = LiteralClaims()
    owner, other = row(1, 0, 5), row(2, 0, 6, fallback=True)
    claims.change(None, owner)
    claims.change(None, other)
    claims.change(owner, replace(owner, size_bytes=1))
    assert claims.owner(0) == owner.assignment
    claims.check([owner, other])
    claims.change(other, None)
    assert claims.owner(0) is None
    claims.change(owner, replace(owner, seq=7))  # says something new, claims nothing again
    assert claims.taken == 0
    claims.change(owner, None)
    claims.check([])


def test_which_changes_are_claims() -> None:
    chooser = FirstFree(PathSets(Clos(2, 2)), Claims())
    first, lost = row(1, 0, 5), row(1, 0, 5, fallback=True)
    assert chooser.claims(Change(None, first))
    assert chooser.claims(Change(first, row(1, 1, 6)))
    assert chooser.claims(Change(lost, row(1, 1, 6)))
    assert not chooser.claims(Change(first, replace(first, size_bytes=1)))
    assert not chooser.claims(Change(first, None))
    assert not chooser.claims(Change(first, lost))
    assert chooser.contests(first, row(2, 0, 4))
    assert not chooser.contests(first, row(2, 1, 4))
    assert not chooser.contests(lost, row(2, 0, 4))


def test_a_fallback_transfer_says_so_and_holds_nothing() -> None:
    fleet = Fleet(Clos(2, 2), hosts=3, policy="paper")
    kinds = [fleet.flow_arrived(0, host, host, 0, 1, SIZE, 1).kind for host in range(3)]
    assert kinds == [Kind.STEERED, Kind.STEERED, Kind.FALLBACK]
    assert [each.fallback for each in fleet.rows()] == [False, False, True]
    fleet.flow_completed(1, 2, 2)
    assert fleet.flow_arrived(2, 2, 3, 0, 1, SIZE, 0).kind is Kind.FALLBACK
    fleet.flow_completed(3, 1, 1)
    assert fleet.flow_arrived(4, 2, 4, 0, 1, SIZE, 0).paths == (1,)
