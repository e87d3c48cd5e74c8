"""Mooncake's traces: batches of arrivals and their spreading, and the reuse of prefixes."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shared_data import shared_data

from ark.errors import ConfigError
from ark.workload import load_requests
from ark.workload.jitter import batch_width_s, is_batched, spread_batches


def write(file: Path, rows: list[tuple[int, int, list[int]]]) -> Path:
    file.write_text(
        "".join(
            json.dumps({"timestamp": t, "input_length": n, "output_length": 1, "hash_ids": hashes}) + "\n"
            for t, n, hashes in rows
        ),
        encoding="utf-8",
    )
    return file


def test_leading_blocks_that_were_seen_are_cached(tmp_path: Path) -> None:
    file = write(
        tmp_path / "t.jsonl",
        [
            (0, 1300, [0, 1, 2]),
            (1, 1400, [0, 1, 3]),  # two blocks known
            (2, 1400, [9, 1, 3]),  # the first is not, so nothing is
            (3, 1024, [0, 1]),  # all known: the last token is not cached
            (4, 1300, [0, 1, 2]),
        ],
    )
    assert load_requests(file, prefix_reuse=True).prefix_tokens.tolist() == [0, 1024, 0, 1023, 1299]
    assert load_requests(file).prefix_tokens.tolist() == [0] * 5


def test_reuse_needs_hashes(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"timestamp": 0, "input_length": 5, "output_length": 1}\n', encoding="utf-8")
    assert len(load_requests(file)) == 1
    with pytest.raises(
        ConfigError, match=":1: hash_ids: is missing; prefix reuse needs the hashes of all blocks"
    ):
        load_requests(file, prefix_reuse=True)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(0, 1000))
def test_spreading_keeps_order_and_batches(batches: list[int], seed: int) -> None:
    times = np.sort(np.array(batches, dtype=np.float64)) * 3
    spread = spread_batches(times, seed)
    assert bool(np.all(np.diff(spread) >= 0))
    assert bool(np.all(spread >= times))
    distinct = np.unique(times)
    after = np.searchsorted(distinct, times, side="right")
    limits = np.append(distinct, distinct[-1] + batch_width_s(distinct))[after]
    assert bool(np.all(spread <= limits))
    np.testing.assert_array_equal(spread, spread_batches(times, seed))


def test_times_that_are_not_batched_stay(tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", [(t, 5, [t]) for t in range(20)])
    requests = load_requests(file, jitter=True)
    assert requests.arrived_s.tolist() == [t / 1e3 for t in range(20)]
    assert requests.notes == ("jitter changes nothing: times are not batched",)
    assert not is_batched(np.zeros(1))


TRACE = "traces/mooncake_conversation_trace_first2000.jsonl"


def test_the_public_trace_as_it_stands() -> None:
    requests = load_requests(shared_data(TRACE))
    assert len(requests) == 2000
    assert requests.prompt_tokens.mean() == pytest.approx(13_720.887)
    batches = "2000 requests arrive at only 224 distinct times, up to 19 at once, 3 s apart"
    assert requests.notes == (f"{batches}; kept so (jitter would spread them)",)


def test_the_public_trace_spread_out() -> None:
    kept = load_requests(shared_data(TRACE))
    spread = load_requests(shared_data(TRACE), jitter=True, seed=4)
    assert len(np.unique(spread.arrived_s)) == 2000
    np.testing.assert_array_equal(kept.prompt_tokens, spread.prompt_tokens)
    assert float((spread.arrived_s - kept.arrived_s).max()) <= 3.001
    assert spread.arrived_s.mean() - kept.arrived_s.mean() == pytest.approx(1.5, abs=0.1)
    assert spread.notes[0].endswith("3 s apart; spread at random with seed 4")


def test_the_public_trace_shares_prefixes() -> None:
    requests = load_requests(shared_data(TRACE), prefix_reuse=True)
    share = requests.prefix_tokens.sum() / requests.prompt_tokens.sum()
    assert requests.notes[-1] == f"{share:.1%} of the prompt tokens are cached prefixes and not sent"
    assert 0.25 < share < 0.366  # the whole trace, six times as long, has 36.6 % of its blocks cached
