"""Which NICs and which source ports."""

from concurrent.futures import Future
from dataclasses import replace

import pytest

from ark.agent import ports as ports_module
from ark.agent.directory import Directory
from ark.agent.ports import Learned, PortBook, Ports, Way, default_way
from ark.client.messages import Lane
from ark.errors import ConfigError
from ark.fabric import Fabric, PathMap, leaf_spine, load_fabric, path_map
from ark.fabric.roce import flow_label_of_sport


@pytest.fixture
def rails() -> Fabric:
    counts = 'kind = "leaf-spine"\nleaves = 4\nspines = 2\nhosts_per_leaf = 1\nnics_per_host = 2\n'
    return load_fabric(f"{counts}rail_optimised = true\n", "f.toml")


@pytest.mark.parametrize(
    ("target", "nic", "expected"),
    [
        ("h1", "", ("h0.0", "h1.0")),
        ("h1", "h0.1", ("h0.1", "h1.1")),
        ("h1", "1", ("h0.1", "h1.1")),
        ("h1.1", "", ("h0.1", "h1.1")),
        ("h1.1", "0", ("h0.0", "h1.1")),
    ],
)
def test_rails_are_kept_unless_told_otherwise(
    rails: Fabric, target: str, nic: str, expected: tuple[str, str]
) -> None:
    pair = Directory(rails, rails.host("h0")).pair(target, nic)
    assert (pair.source.name, pair.target.name) == expected


def test_addresses_name_nics(rails: Fabric) -> None:
    directory = Directory(rails, rails.host("h0"))
    pair = directory.pair(rails.nic("h1.1").address, rails.nic("h0.0").address)
    assert (pair.source.name, pair.target.name) == ("h0.0", "h1.1")
    assert directory.pair(rails.nic("h1.1").address, rails.nic("h0.0").address) is pair


@pytest.mark.parametrize(
    ("target", "nic"), [("h9", ""), ("h0", ""), ("h0.1", ""), ("h1", "h1.0"), ("h1", "2")]
)
def test_what_can_be_no_pair_is_refused(rails: Fabric, target: str, nic: str) -> None:
    with pytest.raises(ConfigError):
        Directory(rails, rails.host("h0")).pair(target, nic)


@pytest.fixture
def made() -> PathMap:
    fabric = leaf_spine(2, 2, 1)
    return path_map(fabric, fabric.nic("h0"), fabric.nic("h1"))


def test_the_port_least_in_use_is_next(made: PathMap) -> None:
    ports = Ports(made)
    lanes = [ports.take(1) for _ in range(16)]
    assert [lane.source_port for lane in lanes] == list(made.ports(1))
    again = ports.take(1)
    assert again.source_port == lanes[0].source_port
    ports.give(lanes[5])
    assert ports.take(1) == lanes[5]
    assert ports.users == 17


def test_a_claimed_port_is_not_given_to_others_first(made: PathMap) -> None:
    ports = Ports(made)
    claimed = ports.claim(Lane(0, made.ports(0)[0]))
    assert ports.take(0).source_port == made.ports(0)[1]
    ports.give(claimed)
    assert ports.take(0).source_port == claimed.source_port
    ports.claim(Lane(0, 1))
    ports.give(Lane(7, 1))


def test_a_path_without_ports_has_a_lane_without_port(made: PathMap) -> None:
    ports = Ports(made)
    lane = ports.take(9)
    assert lane == Lane(9)
    ports.give(lane)
    assert ports.users == 0


def test_another_map_counts_what_is_in_use(made: PathMap) -> None:
    """Of two lanes over one path: one port now leads over the other path, and one nowhere that is known."""
    ports = Ports(made)
    first, second = ports.take(0), ports.take(0)
    ports.change(replace(made, kept=((made.ports(0)[2],), (first.source_port, made.ports(1)[0]))))
    assert ports.take(1).source_port == made.ports(1)[0]
    ports.give(second)
    ports.give(first)
    assert ports.take(1) == Lane(1, first.source_port, flow_label_of_sport(first.source_port))
    ports.change(replace(made, kept=((), made.ports(1)[:1]), counts=(0, 1)))
    assert ports.mask == 0b10
    assert ports.users == 2


def test_learned_maps_may_come_change_and_go() -> None:
    fabric = leaf_spine(2, 2, 2)
    h0, h2, h3 = (fabric.nic(name) for name in ("h0", "h2", "h3"))
    ways = [default_way(h0, h2), default_way(h0, h3)]
    exact = [path_map(fabric, h0, target) for target in (h2, h3)]
    lost = [replace(one, kept=(one.ports(0), ()), counts=(1, 0)) for one in exact]
    book = PortBook(fabric, {ways[0]: Learned(lost[0], 1)})
    try:
        first, second = (book.made_one(way, map_) for way, map_ in zip(ways, exact, strict=True))
        assert (first.map, second.map) == (lost[0], exact[1])
        lane = first.take(0)
        book.relearn({ways[0]: Learned(exact[0], 2), ways[1]: Learned(lost[1], 1)})
        assert (book.ready(ways[0]), first.map) == (first, exact[0])
        assert (book.ready(ways[1]), second.map) == (second, lost[1])
        assert first.take(0).source_port != lane.source_port
        book.relearn({ways[0]: Learned(exact[0], 2)})
        assert book.ready(ways[1]) is None
    finally:
        book.close()


def test_maps_are_made_by_a_thread_and_those_without_users_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports_module, "MAPS_MAX", 2)
    fabric = leaf_spine(2, 2, 2)
    book = PortBook(fabric)
    h0, h2 = fabric.nic("h0"), fabric.nic("h2")
    first = default_way(h0, h2)
    waiting: Future[PathMap] = Future()
    book.make(first, lambda done: waiting.set_result(done.result()))
    map_ = waiting.result(30)
    kept = book.made_one(first, map_)
    assert book.made_one(first, map_) is kept
    kept.take(0)
    for dport in range(3):
        book.made_one(Way(h0.index, h2.index, dport, 17), map_)
    assert book.ready(first) is kept
    assert len(book) == 2
    book.close()
