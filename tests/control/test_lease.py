"""Rule 12: leases on the receiver's monotonic clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.control.lease import LEASE_NS, Leases


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 10), st.sampled_from(["renew", "end", "expire"])))
)
def test_a_lease_ends_exactly_one_duration_after_its_last_renewal(
    steps: list[tuple[int, int, str]],
) -> None:
    leases = Leases(7)
    expected: dict[int, int] = {}
    now = 0
    for host, pause, step in steps:
        now += pause
        if step == "renew":
            leases.renew(host, now)
            expected[host] = now + 7
        elif step == "end":
            leases.end(host)
            expected.pop(host, None)
        else:
            over = leases.expired(now)
            assert sorted(over) == sorted(host for host, end in expected.items() if end <= now)
            for gone in over:
                del expected[gone]
        leases.check()
        assert set(leases) == expected.keys()
        assert len(leases) == len(expected)
        assert all(host in leases for host in expected)
        assert leases.next_deadline() == min(expected.values(), default=None)


def test_the_default_is_three_seconds_and_nothing_is_no_lease() -> None:
    assert Leases().duration_ns == LEASE_NS == 3_000_000_000
    with pytest.raises(ValueError, match="longer than nothing"):
        Leases(0)
