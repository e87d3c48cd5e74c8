import pickle

import pytest

from ark.errors import ConfigError
from ark.fabric import Fabric, HashSpec, leaf_spine, paper_fabric


def ends(fabric: Fabric, links: tuple[int, ...]) -> list[str]:
    return [fabric.links[links[0]].source, *(fabric.links[link].target for link in links)]


def test_path_k_of_the_papers_fabric_runs_over_spine_k() -> None:
    fabric = paper_fabric()
    paths = fabric.paths(fabric.nic("h0"), fabric.nic("h8"))
    assert [ends(fabric, path.links) for path in paths] == [
        ["h0", "leaf0", f"spine{k}", "leaf1", "h8"] for k in range(4)
    ]
    assert [(path.index, path.spine) for path in paths] == [(k, f"spine{k}") for k in range(4)]
    assert [fabric.path(fabric.nic("h0"), fabric.nic("h8"), k) for k in range(4)] == list(paths)


def test_two_hosts_of_one_leaf_have_one_path_without_a_spine() -> None:
    fabric = paper_fabric()
    (path,) = fabric.paths(fabric.nic("h0"), fabric.nic("h1"))
    assert ends(fabric, path.links) == ["h0", "leaf0", "h1"]
    assert path.spine is None
    assert fabric.attachment_paths(0, 0) == ((),)


def test_paths_keep_their_numbers_when_a_spine_and_a_cable_are_down() -> None:
    whole = leaf_spine(2, 4, 8)
    fabric = leaf_spine(2, 4, 8, down=("spine1", ("leaf0", "spine2")))
    paths = fabric.paths(fabric.nic("h0"), fabric.nic("h8"))
    assert [(path.index, path.spine) for path in paths] == [(0, "spine0"), (3, "spine3")]
    assert fabric.path(fabric.nic("h0"), fabric.nic("h8"), 3) == paths[1]
    for number in (1, 4, -1):
        with pytest.raises(ConfigError, match=f'path {number} from "h0" to "h8" is not up'):
            fabric.path(fabric.nic("h0"), fabric.nic("h8"), number)
    assert fabric.up_paths(0, 1) == (0, 3)
    assert fabric.attachment_paths(0, 1) == whole.attachment_paths(0, 1)
    rates = fabric.link_rates_bps
    assert [all(rates[link] for link in links) for links in fabric.attachment_paths(0, 1)] == [
        True, False, False, True,
    ]  # fmt: skip
    assert fabric.prefill_capacity_bps == 200_000_000_000


def test_a_fabric_without_some_links_is_the_one_made_with_these_down() -> None:
    whole = leaf_spine(2, 4, 8)
    down = [link.index for link in whole.links if {link.source, link.target} == {"leaf0", "spine2"}]
    fewer = whole.without_links(down)
    assert fewer.digest() == leaf_spine(2, 4, 8, down=(("leaf0", "spine2"),)).digest()
    assert fewer.up_paths(0, 1) == (0, 1, 3)
    assert fewer.without_links(()).digest() == fewer.digest()


def test_a_changed_fabric_keeps_all_else() -> None:
    fabric = leaf_spine(2, 4, 8, host_hash=HashSpec(seed=1))
    changed = fabric.changed(prefill=["h1"], decode=["h8"])
    assert (changed.prefill, changed.decode) == (("h1",), ("h8",))
    assert changed.digest() == fabric.digest()
    assert (changed.name, changed.attachments) == (fabric.name, fabric.attachments)


def test_a_fabric_survives_pickling() -> None:
    fabric = paper_fabric()
    copy = pickle.loads(pickle.dumps(fabric))
    assert copy.digest() == fabric.digest()
    assert copy.paths(copy.nics[0], copy.nics[9]) == fabric.paths(fabric.nics[0], fabric.nics[9])


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("h0", "h0", '"h0" is source and target at once; a path needs two NICs'),
        (
            "h0",
            "h8",
            (
                'leaf-spine 2x1x8: no path from "h0" to "h8" is up; '
                "`ark fabric check` lists what is down or missing"
            ),
        ),
    ],
)
def test_pairs_without_a_path(source: str, target: str, message: str) -> None:
    fabric = leaf_spine(2, 1, 8, down=("spine0",))
    with pytest.raises(ConfigError) as caught:
        fabric.paths(fabric.nic(source), fabric.nic(target))
    assert str(caught.value) == message


def test_an_unknown_nic_gets_the_nearest_known_name() -> None:
    with pytest.raises(ConfigError, match=r'unknown NIC "h88"; did you mean "h8"\?'):
        paper_fabric().nic("h88")


def test_a_fabric_says_what_it_has() -> None:
    fabric = paper_fabric()
    assert repr(fabric) == "<Fabric leaf-spine 2x4x8: 16 NICs, 6 switches, 48 links>"
    assert fabric.host("h3").nics == (fabric.nic("h3"),)
    assert fabric.switch("spine2").kind == "spine"
