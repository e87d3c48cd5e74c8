import pytest

from ark.control.policy import Policy
from ark.errors import ConfigError

LINE = 100 * 10**9


def test_by_default_transfers_below_10_ms_at_line_rate_are_left_alone() -> None:
    assert Policy(name="ark", line_rate_bps=LINE).managed_bytes == 125_000_000
    assert Policy(name="ark", line_rate_bps=LINE, min_bytes=7).managed_bytes == 7


def test_only_transfers_of_over_100_holds_are_held_back() -> None:
    policy = Policy(name="ark", line_rate_bps=LINE)
    size = 100 * 1_000_000 * LINE // 8 // 10**9
    assert policy.hold_for(size) == 0
    assert policy.hold_for(size + 100) == 1_000_000
    assert Policy(name="ark", line_rate_bps=LINE, hold_ns=0).hold_for(10**12) == 0


def test_all_faults_come_together() -> None:
    with pytest.raises(ConfigError) as caught:
        Policy(name="best", line_rate_bps=0, hold_ns=-1, stripes=17)  # type: ignore[arg-type]
    assert str(caught.value).splitlines() == [
        'policy "best" is unknown; known are "ark" and "paper"',
        "line rate 0 bit/s: must be positive",
        "hold -1 ns: must not be negative",
        "17 stripes: allowed are 1 to 16",
    ]


@pytest.mark.parametrize("extra", [{"stripes": 2}, {"moves": True}])
def test_the_paper_has_neither_stripes_nor_moves(extra: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="one path and no moves"):
        Policy(name="paper", line_rate_bps=LINE, **extra)  # type: ignore[arg-type]
