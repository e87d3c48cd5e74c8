import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ark.sim.spine_log import BINS, SpineLog

uses = st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 900), st.integers(0, 300)), max_size=30)


@pytest.mark.slow
@given(uses)
@example([(0, 0, 150), (0, 121, 1)])
@settings(deadline=None, max_examples=20)
def test_peak_and_bins_equal_a_count_at_every_moment(used: list[tuple[int, int, int]]) -> None:
    log = SpineLog(("a", "b", "c"))
    for spine, begun, lasts in used:
        log.enter(begun, spine)
        log.leave(begun + lasts, spine)
    series = log.series()
    moments = np.arange(0, 1201)
    active = np.array(
        [
            [sum(s == spine and begun <= t < begun + lasts for s, begun, lasts in used) for t in moments]
            for spine in range(3)
        ]
    )
    assert series.peak.tolist() == active.max(axis=1).tolist()
    assert series.active.max(axis=1).tolist() == active.max(axis=1).tolist()
    edges_ns = [*np.round(series.time_s * 1e9, 6), np.inf]  # seconds may lie beside it
    for number in range(BINS):
        within = active[:, (moments >= edges_ns[number]) & (moments < edges_ns[number + 1])]
        assert (series.active[:, number] >= within.max(axis=1, initial=0)).all()


def test_nothing_used_is_all_zero() -> None:
    series = SpineLog(("a",)).series()
    assert series.active.shape == (1, BINS)
    assert series.peak.tolist() == [0]
