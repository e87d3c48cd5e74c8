"""Watches on simulated fabrics that change under them."""

from dataclasses import replace

import msgspec
import pytest
from tests.discover.simulated import SimulatedNetwork, run

from ark.cli.discover_watch import watches_of
from ark.discover.check import Check
from ark.discover.learned import learned_map
from ark.discover.numbering import FabricNumbering, Hops
from ark.discover.probe import Flow
from ark.discover.prober import Prober
from ark.discover.search import Search, Task
from ark.discover.watch import State, Watch, step_all
from ark.errors import ConfigError
from ark.fabric import Fabric, HashSpec, Influence, leaf_spine, path_map
from ark.units import NS_PER_S

SECOND = NS_PER_S


class Rig:
    """A watch, the prober that serves it, and the fabric that both of them only see by probes."""

    def __init__(self, fabric: Fabric) -> None:
        source, target = fabric.nics
        self.net = SimulatedNetwork(fabric, source, target)
        self.networks = {target.address: self.net}
        flow = Flow(source.address, target.address, 17, 0, 4791)
        search = Search(Task(flow, range(0xC000, 0x1_0000), 6, paths=4))
        self.now = run(Prober([search], nonce=3), self.networks)
        numbering = FabricNumbering(fabric)
        one = learned_map(search.finding(), source=source.name, target=target.name, numbering=numbering)
        (self.watch,) = watches_of([one], {}, numbering, now=self.now, interval_ns=SECOND)
        self.prober = Prober([], nonce=4)

    def run(self, seconds: int) -> list[str]:
        def then(now: int) -> list[int]:
            search = self.watch.step(now)
            if search is not None:
                self.prober.add(search)
            self.watch.check()
            return [] if self.watch.is_waiting else [max(self.watch.next_ns, now + 1)]

        end = self.now + seconds * SECOND
        self.now = run(self.prober, self.networks, start=self.now, end=end, then=then)
        news = list(self.watch.news)
        self.watch.news.clear()
        return news

    def state(self) -> State:
        return self.watch.state

    def with_ports(self) -> list[int]:
        return [path.path for path in self.watch.learned.paths if path.ports]

    def exact(self) -> None:
        """Every port that the watch gives leads to its path now."""
        fabric = self.net.fabric
        for path in self.watch.learned.paths:
            ports = self.watch.ports(path.path)
            if ports:
                assert path_map(fabric, *fabric.nics, ports=ports).count(path.path) == len(ports)


@pytest.fixture
def rig() -> Rig:
    return Rig(leaf_spine(2, 4, 1, hash=HashSpec(seed=7)))


def test_a_map_that_stays_true_costs_one_probe_a_check(rig: Rig) -> None:
    assert rig.run(30) == []
    assert rig.watch.epoch == 1
    assert 28 <= rig.prober.counters.sent <= 32


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (leaf_spine(2, 4, 1, hash=HashSpec(seed=8)), "new seed, or group resized"),
        (leaf_spine(2, 4, 1, hash=HashSpec(seed=7), down=("spine2",)), "new seed, or group resized"),
        (
            leaf_spine(2, 4, 1, hash=HashSpec(seed=7, selection="resilient"), down=("spine2",)),
            "new seed, or group resized",
        ),
    ],
    ids=["reseeded", "lost spine", "other selection"],
)
def test_a_change_is_noticed_and_learned_with_a_new_epoch(rig: Rig, changed: Fabric, what: str) -> None:
    rig.net.fabric = changed
    news = rig.run(40)
    assert news[0].startswith("suspect:")
    assert any(what in line for line in news)
    assert rig.state() is State.VALID
    assert rig.watch.epoch == 2
    assert rig.watch.learned.epoch == 2
    assert rig.with_ports() == [path.index for path in changed.paths(*changed.nics)]
    rig.exact()


def test_a_resilient_group_that_loses_a_member_moves_that_path_alone() -> None:
    spec = HashSpec(seed=7, selection="resilient")
    rig = Rig(leaf_spine(2, 4, 1, hash=spec))
    rig.net.fabric = leaf_spine(2, 4, 1, hash=spec, down=("spine2",))
    news = rig.run(40)
    assert any("path 2 is gone" in line for line in news)
    assert rig.with_ports() == [0, 1, 3]
    rig.exact()


def test_a_wider_group_is_noticed() -> None:
    """Only three of four spines are there at first; the fourth comes and takes ports of the others."""
    spec = HashSpec(seed=7)
    whole = leaf_spine(2, 4, 1, hash=spec)
    rig = Rig(leaf_spine(2, 4, 1, hash=spec, down=("spine0",)))
    rig.watch = watches_of([rig.watch.learned], {}, FabricNumbering(whole), now=rig.now, interval_ns=SECOND)[
        0
    ]
    rig.net.fabric = whole
    rig.run(40)
    assert rig.with_ports() == [0, 1, 2, 3]
    assert rig.watch.epoch == 2
    rig.exact()


def test_transfers_go_unsteered_from_suspicion_until_the_map_is_learned(rig: Rig) -> None:
    rig.net.fabric = leaf_spine(2, 4, 1, hash=HashSpec(seed=8))
    rig.net.silent = frozenset({"spine0", "spine1", "spine2", "spine3"})  # nothing can be learned now
    rig.watch.counted(0, expected_bytes=1000, counted_bytes=899, now=rig.now)
    for path in range(4):
        assert rig.watch.ports(path) == ()
    news = rig.run(200)
    assert "no switch answers; the map stays unused until one does" in news
    assert rig.state() is State.SUSPECT
    rig.net.silent = frozenset()
    rig.run(60)
    assert rig.state() is State.VALID
    assert rig.watch.epoch == 2
    rig.exact()


def test_counters_that_agree_are_no_reason_to_suspect(rig: Rig) -> None:
    rig.watch.counted(0, expected_bytes=1000, counted_bytes=5000, now=rig.now)
    rig.watch.counted(0, expected_bytes=1000, counted_bytes=900, now=rig.now)
    assert rig.state() is State.VALID


def test_single_lost_answers_are_no_reason_to_suspect(rig: Rig) -> None:
    rig.net = replace(rig.net, loss=0.4)
    rig.networks[rig.net.target.address] = rig.net
    rig.run(120)
    assert rig.watch.epoch == 1


def test_a_path_that_falls_silent_is_learned_away(rig: Rig) -> None:
    """A spine that answers no more may still forward; without it the map is smaller but can be verified."""
    rig.net.silent = frozenset({"spine3"})
    news = rig.run(300)
    assert any("path 3 does not answer any more" in line for line in news)
    assert rig.with_ports() == [0, 1, 2]


def test_a_watch_is_a_plain_value_for_its_user(rig: Rig) -> None:
    watch: Watch = rig.watch
    assert watch.ports(99) == ()
    assert len(watch.ports(1)) >= 6


def test_a_map_says_what_its_watch_knows(rig: Rig) -> None:
    """As it stands in the file: in doubt it gives no ports, and a lost path has none afterwards."""
    assert rig.watch.current == rig.watch.learned
    rig.watch.counted(0, expected_bytes=1000, counted_bytes=0, now=rig.now)
    doubted = rig.watch.current
    assert doubted.state == "suspect"
    assert doubted.path_map().influence is Influence.IN_DOUBT
    assert [doubted.path_map().ports(path) for path in range(4)] == [()] * 4
    rig.net.fabric = leaf_spine(2, 4, 1, hash=HashSpec(seed=7), down=("spine2",))
    news = rig.run(40)
    assert news[-1] == "learned anew as epoch 2: ports of 3 paths; none leads to path 2"
    current = rig.watch.current
    assert (current.state, current.epoch) == ("valid", 2)
    assert current.path_map().paths == (0, 1, 2, 3)
    assert current.path_map().missing == (2,)


def test_the_last_path_that_is_left_is_watched_for_the_return_of_others() -> None:
    whole = leaf_spine(2, 2, 1, hash=HashSpec(seed=7))
    rig = Rig(whole)
    rig.net.fabric = leaf_spine(2, 2, 1, hash=HashSpec(seed=7), down=("spine0",))
    rig.run(40)
    assert (rig.watch.epoch, rig.with_ports()) == (2, [1])
    assert rig.watch.current.influence == "one-path"
    assert rig.run(30) == []
    (rig.watch,) = watches_of(
        [rig.watch.current], {}, FabricNumbering(whole), now=rig.now, interval_ns=SECOND
    )
    rig.net.fabric = whole
    rig.run(40)
    assert (rig.watch.epoch, rig.with_ports()) == (3, [0, 1])
    rig.exact()


@pytest.mark.parametrize(("state", "epoch"), [("suspect", 1), ("stale", 2)])
def test_a_map_left_in_doubt_is_looked_at_first(rig: Rig, state: str, epoch: int) -> None:
    left = msgspec.structs.replace(rig.watch.learned, state=state)
    numbering = FabricNumbering(rig.net.fabric)
    (rig.watch,) = watches_of([left], {}, numbering, now=rig.now, interval_ns=3600 * SECOND)
    assert rig.watch.ports(0) == ()
    rig.watch.check()
    rig.run(20)
    assert (rig.state(), rig.watch.epoch) == (State.VALID, epoch)
    rig.exact()


def test_a_fabric_that_begins_to_spray_is_said_and_searched_again(rig: Rig) -> None:
    rig.net.sprays = True
    news = rig.run(60)
    assert any("packets are sprayed" in line for line in news)
    assert rig.state() is State.STALE
    rig.net.sprays = False
    rig.run(60)
    assert rig.state() is State.VALID
    rig.exact()


def test_what_makes_no_sense_while_routes_change_is_learned_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    numbers = FabricNumbering.numbers

    def once_wrong(*arguments: object) -> dict[Hops, int]:
        calls.append(1)
        if len(calls) == 1:
            raise ConfigError("h0 to h1: leaf0 > leaf1 is no path of the fabric")
        return numbers(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FabricNumbering, "numbers", once_wrong)
    rig.net.fabric = leaf_spine(2, 4, 1, hash=HashSpec(seed=8))
    news = rig.run(60)
    assert any(line.startswith("learned nothing: h0 to h1") for line in news)
    assert rig.state() is State.VALID
    rig.exact()


def test_one_port_does_not_clear_what_a_counter_says(rig: Rig) -> None:
    """A check of one port is under way when the counter speaks; all paths are asked all the same."""
    rig.watch.next_ns = rig.now
    check = rig.watch.step(rig.now)
    assert check is not None
    rig.watch.counted(2, expected_bytes=1000, counted_bytes=0, now=rig.now)
    rig.prober.add(check)
    sent = rig.prober.counters.sent
    rig.run(5)
    assert rig.state() is State.VALID
    assert rig.prober.counters.sent >= sent + 1 + 2 * 4


def test_a_map_that_is_not_true_has_those_of_the_same_nic_checked_at_once(rig: Rig) -> None:
    numbering = FabricNumbering(rig.net.fabric)
    learned = rig.watch.learned
    stranger = msgspec.structs.replace(learned, source="h7")
    watches = watches_of(
        [learned, msgspec.structs.replace(learned, target="h2"), stranger],
        {},
        numbering,
        now=rig.now,
        interval_ns=3600 * SECOND,
    )
    step_all(watches, rig.now)
    watches[0].state = State.SUSPECT
    watches[0].next_ns = rig.now
    (check,) = step_all(watches, rig.now)
    while (probe := check.next_probe()) is not None:
        check.answered(probe, "elsewhere", expired=True)
    (search, hurried) = step_all(watches, rig.now + 1)
    assert (watches[0].state, watches[1].state, watches[2].state) == ("stale", "valid", "valid")
    assert isinstance(search, Search)
    assert isinstance(hurried, Check)
    assert watches[2].next_ns > rig.now + SECOND
