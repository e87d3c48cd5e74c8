"""The paper's workload against what its section 4.1 says of it."""

import numpy as np
import pytest

from ark.errors import ConfigError
from ark.workload import kv_model, latency_model, make_flows, offered_load, paper_requests, qps_for_load
from ark.workload.arrivals import Constant


class PaperFabric:
    """Two leaves, four spines of 100 Gbit/s: one leaf of prefill hosts sends up at 400 Gbit/s."""

    prefill_capacity_bps = 400 * 10**9


NICS = [f"h{index}" for index in range(16)]


def test_sizes_of_section_4_1() -> None:
    """ "∼13,300 tokens yields KV cache flows from 125 MB to 6.7 GB (mean 1.6 GB) at 128 KB per token"."""
    requests = paper_requests(qps=25, requests=200_000, seed=0)
    assert requests.prompt_tokens.mean() == pytest.approx(13_300, rel=0.01)
    sizes = kv_model("llama-3-8b").kv_bytes(requests.prompt_tokens)
    assert sizes.min() == 125 * 2**20
    assert round(float(sizes.max()) / (1024 * 10**6), 1) == 6.7  # 52,600 x 128 KiB, counted as 128 kB
    assert round(float(sizes.mean()) / 2**30, 1) == 1.6


def test_arrivals_are_poisson_at_the_rate() -> None:
    """ "Requests arrive as a Poisson process"."""
    requests = paper_requests(qps=25, requests=50_000, seed=3)
    assert requests.qps == pytest.approx(25, rel=0.02)
    gaps = np.diff(requests.arrived_s)
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.02)


def test_load_of_the_papers_rate() -> None:
    requests = paper_requests(qps=25, requests=50_000, seed=0)
    flows = make_flows(requests, kv_model("llama-3-8b"), NICS[:8], NICS[8:], 0)
    load = offered_load(flows, PaperFabric())
    assert load == pytest.approx(25 * 13_365 * 131_072 * 8 / 400e9, rel=0.02)
    assert qps_for_load(
        load, mean_size_bytes=float(flows.size_bytes.mean()), fabric=PaperFabric()
    ) == pytest.approx(requests.qps)


def test_a_seed_gives_the_same_requests_at_every_rate_and_count() -> None:
    slow = paper_requests(qps=1, requests=100, seed=5)
    fast = paper_requests(qps=30, requests=300, seed=5)
    np.testing.assert_array_equal(slow.prompt_tokens, fast.prompt_tokens[:100])
    np.testing.assert_allclose(slow.arrived_s, fast.arrived_s[:100] * 30)
    other = paper_requests(qps=1, requests=100, seed=6)
    assert not np.array_equal(slow.prompt_tokens, other.prompt_tokens)


def test_other_arrivals_leave_the_prompts() -> None:
    poisson = paper_requests(qps=2, requests=50, seed=1)
    even = paper_requests(qps=2, requests=50, seed=1, arrivals=Constant())
    np.testing.assert_array_equal(poisson.prompt_tokens, even.prompt_tokens)
    np.testing.assert_allclose(even.arrived_s, np.arange(1, 51) / 2)
    assert "constant" in even.origin


def test_times_of_section_4_3() -> None:
    """ "Prefill (∼840 ms) and the first decode step (∼10 ms) contribute a fixed offset to every request"."""
    tokens = paper_requests(qps=25, requests=200_000, seed=0).prompt_tokens
    model = latency_model("ark_calibrated")
    assert model.prefill_s(tokens).mean() == pytest.approx(0.840, rel=0.01)
    assert model.decode1_s(tokens).mean() == pytest.approx(0.010, rel=0.01)
    assert "a calibration, not a measurement" in model.origin


@pytest.mark.parametrize("count", [0, -5, 10**9])
def test_counts_out_of_bounds_are_refused(count: int) -> None:
    with pytest.raises(ConfigError, match="requests are not allowed; give 1 to"):
        paper_requests(qps=1, requests=count, seed=0)
