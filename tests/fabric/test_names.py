import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.fabric.addresses import scheme_addresses
from ark.fabric.name_ranges import expand
from ark.fabric.nearest import nearest


@pytest.mark.parametrize(
    ("texts", "known", "names"),
    [
        (["h0-h3"], (), ["h0", "h1", "h2", "h3"]),
        (["h9-h11", "h10", "x"], (), ["h9", "h10", "h11", "x"]),
        (["leaf2-4"], (), ["leaf2", "leaf3", "leaf4"]),
        (["gpu-1", "gpu-2-gpu-3"], ("gpu-1",), ["gpu-1", "gpu-2", "gpu-3"]),
        (["a1-a2"], ("a1-a2",), ["a1-a2"]),
        (["gpu-1"], (), ["gpu-1"]),
        ([], (), []),
    ],
)
def test_ranges(texts: list[str], known: tuple[str, ...], names: list[str]) -> None:
    assert expand(texts, known) == tuple(names)


@pytest.mark.parametrize("text", ["h3-h1", "h0-g3", "h0-h999999", "1-h2"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(ConfigError, match='is no name and no range; a range is like "h0-h7"'):
        expand([text], ())


@given(st.integers(0, 300), st.integers(0, 300))
def test_a_range_holds_each_number_once_in_order(first: int, count: int) -> None:
    names = expand([f"h{first}-h{first + count}", f"h{first}"], ())
    assert names == tuple(f"h{number}" for number in range(first, first + count + 1))


def test_addresses_of_the_ns3_simulators() -> None:
    addresses = scheme_addresses("ns3", 300)
    assert [addresses[node] for node in (0, 1, 255, 256, 299)] == [
        "11.0.0.1",
        "11.0.1.1",
        "11.0.255.1",
        "11.1.0.1",
        "11.1.43.1",
    ]


@pytest.mark.parametrize(("first", "last"), [("10.0.0.1", "10.0.1.44"), ("2001:DB8::ff00", "2001:db8::1:2b")])
def test_addresses_count_upwards(first: str, last: str) -> None:
    addresses = scheme_addresses(first, 300)
    assert addresses[-1] == last
    assert len(set(addresses)) == 300


def test_the_nearest_name_is_found_among_very_many() -> None:
    many = [f"h{number}" for number in range(100_000)]
    assert nearest("leaf1O", [*many, "leaf10"], "switch", "it has") == (
        'unknown switch "leaf1O"; did you mean "leaf10"?'
    )
    assert nearest("x", many, "host", "it has") == 'unknown host "x"; it has h0 … h99999 (100000)'
    assert nearest("x", [], "host", "it has") == 'unknown host "x"; it has none'
