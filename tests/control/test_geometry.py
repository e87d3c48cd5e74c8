import pytest
from tests.control.networks import GBPS, Clos, fabric, three_tiers

from ark.control import geometry as geometry_module
from ark.control.geometry import EVERY_PATH, PathSets
from ark.control.halves import HalvedGeometry
from ark.control.rows import Row, State
from ark.fabric import Fabric, dual_plane, fat_tree, leaf_spine


def row(paths: tuple[int, ...], source: int = 0, target: int = 1) -> Row:
    return Row(1, 0, 1, 0, State.ACTIVE, paths, source, target, 1, 1)


def test_a_fabric_is_a_geometry() -> None:
    network = fabric(2, 4)
    ways = PathSets(network).between(0, 1)
    assert ways.links == network.attachment_paths(0, 1)
    assert ways.usable == (0, 1, 2, 3)
    assert ways.usable_links == ways.links
    assert ways.mask == 0b1111
    assert ways.managed
    assert all(network.is_fabric_link(link) for path in ways.links for link in path)


def test_three_tiers_count_every_link_between_switches() -> None:
    network = three_tiers()
    ways = PathSets(network).between(0, len(network.attachments) - 1)
    assert len(ways.links) == 4
    assert {len(path) for path in ways.links} == {4}


@pytest.mark.parametrize("network", [fabric(2, 1), fabric(1, 2)])
def test_with_one_path_or_one_leaf_there_is_nothing_to_manage(network: object) -> None:
    sets = PathSets(network)  # type: ignore[arg-type]
    last = len(network.attachments) - 1  # type: ignore[attr-defined]
    assert not sets.between(0, last).managed


def test_paths_that_are_down_keep_their_numbers() -> None:
    rates = [100 * GBPS] * 12
    rates[0] = 0
    ways = PathSets(Clos(2, 3, tuple(rates))).between(0, 1)
    assert ways.usable == (1, 2)
    assert ways.mask == 0b110
    assert len(ways.links) == 3


@pytest.mark.parametrize(
    "network",
    [
        dual_plane(2, 2, 2, down=(("h3", "tor2"),)),
        dual_plane(2, 2, 2, down=(("h0", "tor1"), ("h3", "tor2"))),
        leaf_spine(2, 4, 2, down=("spine1",)),
        fat_tree(4, down=(("agg0", "core1"),)),
    ],
    ids=["port down", "ports down", "spine down", "core link down"],
)
def test_a_path_over_a_port_that_is_down_is_not_chosen(network: Fabric) -> None:
    sets, halved = PathSets(network), PathSets(HalvedGeometry(network))
    fewer = 0
    for source in range(len(network.attachments)):
        for target in range(len(network.attachments)):
            up = network.up_paths(source, target)
            ways = sets.between(source, target)
            assert ways.usable == up
            assert ways.usable_links == tuple(ways.links[number] for number in up)
            assert halved.between(source, target).usable == up
            fewer += len(up) < len(ways.links)
    assert fewer


def test_a_path_set_is_built_once() -> None:
    sets = PathSets(fabric(2, 4))
    assert sets.between(0, 1) is sets.between(0, 1)


@pytest.mark.parametrize(
    ("claimed", "fits"),
    [
        (row((0,)), True),
        (row((3, 0)), True),
        (row((4,)), False),
        (row((1, 1)), False),
        (row((0,), 2), False),
        (row((0,), 0, 2), False),
        (row((2**20 - 1,), 2**20 - 1, 2**20 - 1), False),
    ],
)
def test_a_row_from_outside_must_fit_the_fabric(claimed: Row, fits: bool) -> None:
    assert PathSets(fabric(2, 4)).fits(claimed) is fits


def test_transfers_share_a_link_where_leaf_and_spine_are_the_same() -> None:
    sets = PathSets(Clos(3, 3))
    assert sets.share_link(row((0,), 0, 1), row((0,), 0, 2))
    assert sets.share_link(row((0,), 0, 2), row((0,), 1, 2))
    assert sets.share_link(row((0, 2), 0, 1), row((1, 2), 0, 1))
    assert not sets.share_link(row((0,), 0, 1), row((1,), 0, 1))
    assert not sets.share_link(row((0,), 0, 1), row((0,), 1, 2))


def test_a_mask_leaves_a_part_of_the_paths_and_all_bits_the_same_set(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = PathSets(Clos(2, 4))
    ways = sets.between(0, 1)
    assert sets.open_to(0, 1, EVERY_PATH) is sets.open_to(0, 1, 0b11111) is ways
    part = sets.open_to(0, 1, 0b1010)
    assert (part.usable, part.mask, part.managed, part.links) == ((1, 3), 0b1010, True, ways.links)
    assert part.usable_links == (ways.links[1], ways.links[3])
    assert sets.open_to(0, 1, 0b1_0000_1010) is part
    assert not sets.open_to(0, 1, 0b1000).managed
    assert sets.open_to(0, 1, 0).usable == ()
    monkeypatch.setattr(geometry_module, "SUBSETS_KEPT", 1)
    assert sets.open_to(0, 1, 0b11).usable == (0, 1)
    assert sets.open_to(0, 1, 0b1010) is not part
