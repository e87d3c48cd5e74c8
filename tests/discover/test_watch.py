"""Watches on simulated fabrics that change under them."""

from dataclasses import replace

import pytest
from tests.discover.simulated import SimulatedNetwork, run

from ark.cli.discover_watch import watches_of
from ark.discover.learned import learned_map
from ark.discover.numbering import FabricNumbering
from ark.discover.probe import Flow
from ark.discover.prober import Prober
from ark.discover.search import Search, Task
from ark.discover.watch import State, Watch
from ark.fabric import Fabric, HashSpec, leaf_spine, path_map
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
    assert [path.path for path in rig.watch.learned.paths] == [
        path.index for path in changed.paths(*changed.nics)
    ]
    rig.exact()


def test_a_resilient_group_that_loses_a_member_moves_that_path_alone() -> None:
    spec = HashSpec(seed=7, selection="resilient")
    rig = Rig(leaf_spine(2, 4, 1, hash=spec))
    rig.net.fabric = leaf_spine(2, 4, 1, hash=spec, down=("spine2",))
    news = rig.run(40)
    assert any("path 2 is gone" in line for line in news)
    assert [path.path for path in rig.watch.learned.paths] == [0, 1, 3]
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
    assert [path.path for path in rig.watch.learned.paths] == [0, 1, 2, 3]
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
    assert [path.path for path in rig.watch.learned.paths] == [0, 1, 2]


def test_a_watch_is_a_plain_value_for_its_user(rig: Rig) -> None:
    watch: Watch = rig.watch
    assert watch.ports(99) == ()
    assert len(watch.ports(1)) >= 6
