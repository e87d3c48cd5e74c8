"""Sizes, rates and times as people write them, and the messages when they do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import ConfigError, Fault
from ark.units import format_rate, format_size, format_time, parse_rate, parse_size, parse_time


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("16 GB", 16 * 10**9),
        ("1GiB", 2**30),
        ("1.5 KiB", 1536),
        ("9000B", 9000),
        ("1_000 kB", 10**6),
        ("2e3 MB", 2 * 10**9),
    ],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["400Gbps", "400 Gbit/s", "400 Gb/s", "0.4 Tbit/s", " 400000 Mbps "])
def test_rates(text: str) -> None:
    assert parse_rate(text) == 400 * 10**9


@pytest.mark.parametrize(
    ("text", "time_ns"), [("2us", 2000), ("2 µs", 2000), ("1.5ms", 1_500_000), ("3 s", 3 * 10**9), ("0", 0)]
)
def test_times(text: str, time_ns: int) -> None:
    assert parse_time(text) == time_ns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("400", '"400" has no unit; write "400 Gbit/s"'),
        ("fast", '"fast" is not a rate; write it like "400 Gbit/s"'),
        ("-4 Gbps", '"-4 Gbps" is not a rate; write it like "400 Gbit/s"'),
        ("nan Gbps", '"nan Gbps" is not a rate; write it like "400 Gbit/s"'),
        ("0.5 bps", '"0.5 bps" is finer than the smallest unit; write a coarser value'),
        ("1e30 Gbps", '"1e30 Gbps" is too large; write it like "400 Gbit/s"'),
    ],
)
def test_a_wrong_rate_says_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_rate(text)
    assert str(caught.value) == message


def test_an_unknown_unit_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r'unknown unit "Gib"; known are B, KB, kB, KiB, MB'):
        parse_size("3 Gib")


@given(st.integers(0, 2**62))
def test_whole_bytes_survive(size_bytes: int) -> None:
    assert parse_size(f"{size_bytes} B") == size_bytes


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_config_error(text: str) -> None:
    try:
        size_bytes = parse_size(text)
    except ConfigError as error:
        message = str(error)
    else:
        message = f"{size_bytes} B"
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (format_size(1_743_392_768), "1.74 GB"),
        (format_size(999_999), "1 MB"),
        (format_size(0), "0 B"),
        (format_rate(400e9), "400 Gbit/s"),
        (format_time(0.1284), "128 ms"),
        (format_time(0.0000021), "2.1 µs"),
        (format_time(0), "0 ns"),
        (format_time(61.27), "61.3 s"),
    ],
)
def test_people_read_three_digits(shown: str, expected: str) -> None:
    assert shown == expected


def test_many_faults_come_in_one_message_and_are_counted() -> None:
    error = ConfigError(*(Fault(f"f.csv:{line}: size_bytes", "must be positive") for line in range(30)))
    assert str(error).splitlines()[0] == "f.csv:0: size_bytes: must be positive"
    assert str(error).splitlines()[-1] == "... and 10 more"
    assert len(error.faults) == 30
