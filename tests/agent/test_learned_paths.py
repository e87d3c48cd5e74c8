"""Ports that were learned on the live fabric, in place of those of its hash."""

from concurrent.futures import Future
from pathlib import Path

import pytest
from tests.agent.agents import write_cluster, write_config

from ark.agent.config import load_config
from ark.agent.ports import PortBook, Way
from ark.discover import LearnedMap, LearnedPath, write_learned
from ark.discover.numbering import Kind
from ark.errors import ConfigError
from ark.fabric import PathMap


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_cluster(tmp_path)
    return tmp_path


def learned(
    *,
    target: str = "h2",
    address: str = "10.0.0.3",
    paths: tuple[tuple[int, tuple[int, ...]], ...] = ((0, (50_001,)), (2, (50_002, 50_003))),
) -> LearnedMap:
    found = tuple(LearnedPath(path, ("leaf0", f"spine{path}"), ports) for path, ports in paths)
    addresses = "10.0.0.1", address
    return LearnedMap("h0", target, *addresses, 17, 4791, "port", "as probed", found, "route-get")


def write(folder: Path, one: LearnedMap, numbering: Kind = "fabric") -> Path:
    (folder / "paths.json").write_text(write_learned([one], numbering))
    return write_config(folder, "h0", more='paths = "paths.json"\n')


def test_learned_ports_replace_those_of_the_hash_and_all_paths_stay_known(folder: Path) -> None:
    config = load_config(write(folder, learned()))
    way = Way(0, 2, 4791, 17)
    map_, epoch = config.learned[way]
    assert epoch == 1
    assert map_.paths == (0, 1, 2, 3)
    assert [map_.ports(path) for path in range(4)] == [(50_001,), (), (50_002, 50_003), ()]
    assert map_.missing == (1, 3)

    book = PortBook(config.fabric, config.learned)
    made: Future[PathMap] = Future()
    book.make(way, lambda done: made.set_result(done.result()))
    try:
        assert made.result(10) == map_
    finally:
        book.close()


def test_ways_that_were_not_learned_go_by_the_hash(folder: Path) -> None:
    config = load_config(write(folder, learned()))
    book = PortBook(config.fabric, config.learned)
    made: Future[PathMap] = Future()
    book.make(Way(0, 3, 4791, 17), lambda done: made.set_result(done.result()))
    try:
        assert made.result(10).missing == ()
    finally:
        book.close()


@pytest.mark.parametrize(
    ("one", "numbering", "said"),
    [
        (learned(target="h9"), "fabric", 'maps[0]: "h9" is no NIC of the fabric'),
        (learned(paths=((7, (50_000,)),)), "fabric", "maps[0].paths: [7] are no paths of the fabric from h0"),
        (
            learned(address="10.0.1.3"),
            "fabric",
            "maps[0]: was learned when h2 had 10.0.1.3; the fabric says 10.0.0.3: learn it anew",
        ),
        (learned(), "order", 'numbering: "order" numbers paths otherwise than other hosts do'),
    ],
)
def test_maps_of_another_fabric_are_refused(
    folder: Path, one: LearnedMap, numbering: Kind, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(folder, one, numbering))
    assert f"paths.json: {said}" in str(caught.value)


def test_a_file_that_is_missing_or_no_json_is_named(folder: Path) -> None:
    path = write_config(folder, "h0", more='paths = "gone.json"\n')
    with pytest.raises(ConfigError, match=r"gone\.json"):
        load_config(path)
    (folder / "gone.json").write_text("{")
    with pytest.raises(ConfigError, match="is no JSON"):
        load_config(path)
