from pathlib import Path

import pytest

from ark.cli.flags import count, fabric_of, host_names, names, numbers, positive
from ark.errors import ConfigError
from ark.fabric import paper_fabric


def test_lists_of_numbers_keep_their_order() -> None:
    assert numbers("--qps", "25, 1,2.5") == (25.0, 1.0, 2.5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", '--qps: "" is no number'),
        ("1,x", '--qps: "x" is no number'),
        ("1,,2", '--qps: "" is no number'),
        ("-5", "--qps: -5 is not allowed"),
        ("0", "--qps: 0 is not allowed"),
        ("nan", "--qps: nan is not allowed"),
        ("inf", "--qps: inf is not allowed"),
        ("5,1e300", "--qps: 1e300 is not allowed; give numbers up to 1e+09"),
        ("5,5.0", "--qps: 5.0 stands twice"),
        (",".join(map(str, range(1, 1200))), "--qps: 1199 numbers"),
        ("\x1b[31m", '--qps: "\\u001b[31m" is no number'),
    ],
)
def test_bad_numbers_are_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        numbers("--qps", text)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e300, 1e-300])
def test_a_positive_number_is_positive_and_finite(value: float) -> None:
    with pytest.raises(ConfigError, match="--scale"):
        positive("--scale", value)
    assert positive("--scale", 50) == 50


@pytest.mark.parametrize("value", [0, -3, 11])
def test_counts_are_bounded(value: int) -> None:
    with pytest.raises(ConfigError, match=r"--seeds: .* is not allowed; give 1 to 10"):
        count("--seeds", value, 10)


def test_names_of_a_list() -> None:
    assert names(" ecmp, ark,") == ("ecmp", "ark")


def test_hosts_are_written_as_ranges() -> None:
    fabric = paper_fabric()
    assert host_names("--prefill", None, fabric) is None
    assert host_names("--prefill", "h0-h2,h9", fabric) == ("h0", "h1", "h2", "h9")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("h0-h99", '--decode: unknown host "h16"'),
        ("h7-h0", '--decode: "h7-h0" is no name and no range'),
        ("g0", '--decode: unknown host "g0"'),
        (" , ", "--decode: no host is named"),
    ],
)
def test_unknown_hosts_are_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        host_names("--decode", text, paper_fabric())
    assert str(caught.value).startswith(said)


def test_without_a_file_it_is_the_papers_fabric(tmp_path: Path) -> None:
    assert fabric_of(None).name == paper_fabric().name
    with pytest.raises(ConfigError, match="cannot be read"):
        fabric_of(tmp_path / "none.toml")
