from collections import Counter

import numpy as np
import pytest

from ark.errors import ConfigError
from ark.fabric import Fabric, HashSpec, leaf_spine, paper_fabric, route_flows
from ark.sim.schemes.catalogue import SchemeOptions, check_schemes, make_scheme
from ark.sim.schemes.ports import PAIRS_KEPT, PortBook
from ark.sim.schemes.scheme import Scheme, Transfer


def transfers(fabric: Fabric, count: int, *, source: str = "h0") -> list[Transfer]:
    rng = np.random.default_rng(0)
    targets = [fabric.nic(name) for name in fabric.decode]
    return [
        Transfer(
            index,
            fabric.nic(source),
            targets[int(rng.integers(len(targets)))],
            10**9,
            index,
            int(rng.integers(0xC000, 0x10000)),
            4791,
        )
        for index in range(count)
    ]


def make(name: str, fabric: Fabric, asked: list[Transfer]) -> Scheme:
    return make_scheme(name, fabric, SchemeOptions(), transfers=asked, seed=0)


def test_ecmp_is_the_hash_of_the_fabric() -> None:
    fabric = paper_fabric()
    asked = transfers(fabric, 200)
    scheme = make("ecmp", fabric, asked)
    expected = route_flows(
        fabric,
        np.array([t.source.index for t in asked]),
        np.array([t.target.index for t in asked]),
        np.array([t.sport for t in asked]),
    )
    assert [scheme.arrived(0, transfer).paths for transfer in asked] == [(path,) for path in expected]


def test_round_robin_is_even() -> None:
    fabric = leaf_spine(2, 3, 4, down=("spine1",))
    asked = transfers(fabric, 100)
    scheme = make("round-robin", fabric, asked)
    assert Counter(scheme.arrived(0, transfer).paths for transfer in asked) == {(0,): 50, (2,): 50}


@pytest.mark.parametrize("name", ["ark", "ark-paper", "round-robin"])
def test_what_no_port_reaches_goes_where_its_own_port_leads_and_that_is_said(name: str) -> None:
    """A switch that does not hash the source port cannot be steered."""
    fabric = leaf_spine(2, 4, 4, hash=HashSpec(fields=("src", "dst")))
    asked = transfers(fabric, 8)
    scheme = make(name, fabric, asked)
    assignments = [scheme.arrived(transfer.start_ns, transfer) for transfer in asked]
    hashed = make("ecmp", fabric, asked)
    assert [a.paths for a in assignments] == [hashed.arrived(0, transfer).paths for transfer in asked]
    assert "went where their own port leads" in scheme.warnings()[0]


def test_a_path_that_few_ports_reach_is_found_by_the_whole_map() -> None:
    """With 100 to 1 weights the ports that are tried first miss the rare path of some pairs."""
    fabric = leaf_spine(2, 2, 4, hash=HashSpec(selection="thresholds", weights={"spine0": 100, "spine1": 1}))
    asked = transfers(fabric, 40)
    book = PortBook(fabric)
    book.learn(asked)
    for transfer in asked:
        port = book.port(transfer, 1, spread=12345)
        assert port is not None
        found = route_flows(
            fabric, np.array([transfer.source.index]), np.array([transfer.target.index]), np.array([port])
        )
        assert found.tolist() == [1]


def test_the_book_forgets_the_oldest_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert PAIRS_KEPT > 4
    monkeypatch.setattr("ark.sim.schemes.ports.PAIRS_KEPT", 4)
    fabric = paper_fabric()
    asked = [*transfers(fabric, 30), *transfers(fabric, 30, source="h1")]
    book = PortBook(fabric)
    book.learn(asked)
    assert sum(book.knows(transfer) for transfer in {t.target: t for t in asked}.values()) <= 4


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ([], "none given"),
        (["Ark"], 'did you mean "ark"?'),
        (["conwave"], 'did you mean "conweave"?'),
        (["ark", "ark"], "is given twice"),
    ],
)
def test_lists_of_schemes_that_cannot_be_run(names: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match="schemes: ") as caught:
        check_schemes(names)
    assert says in str(caught.value)
