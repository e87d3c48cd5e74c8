"""The fabric at the lab's rates."""

import numpy as np
import pytest

from ark.errors import ConfigError
from ark.fabric import HashSpec, leaf_spine, paper_fabric
from ark.lab.scaled import scaled
from ark.lab.shaping import GOODPUT, shape_for

MBIT = 10**6


def test_rates_and_sizes_are_divided_alike() -> None:
    found = scaled(paper_fabric(), 100 * MBIT, hash_seed=1)
    assert {link.rate_bps for link in found.lab.links} == {100 * MBIT}
    assert {link.rate_bps for link in found.full.links} == {100_000 * MBIT}
    assert found.factor == 1000
    assert found.sizes(np.array([131_072_000, 1])).tolist() == [131_072, 1]


def test_other_links_keep_their_proportion() -> None:
    found = scaled(leaf_spine(2, 2, 1, fabric_rate_bps=400_000 * MBIT), 50 * MBIT, hash_seed=1)
    assert sorted({link.rate_bps for link in found.lab.links}) == [50 * MBIT, 200 * MBIT]


def test_switches_hash_as_linux_each_with_a_seed_of_its_own() -> None:
    found = scaled(paper_fabric(), 100 * MBIT, hash_seed=1)
    other = scaled(paper_fabric(), 100 * MBIT, hash_seed=2)
    seeds = [switch.hash.seed for switch in found.lab.switches]
    assert {switch.hash.function for switch in found.lab.switches} == {"linux"}
    assert len(set(seeds)) == len(seeds)
    assert set(seeds).isdisjoint(switch.hash.seed for switch in other.lab.switches)
    assert seeds == [switch.hash.seed for switch in found.full.switches]


def test_a_linux_hash_of_the_file_is_kept() -> None:
    spec = HashSpec(function="linux", selection="thresholds", seed=77, policy=1)
    found = scaled(leaf_spine(2, 2, 1, hash=spec), 100 * MBIT, hash_seed=1)
    assert all(switch.hash == spec for switch in found.lab.switches)


def test_links_that_would_be_too_slow_are_refused() -> None:
    slow = leaf_spine(2, 2, 1, rate_bps=100_000 * MBIT, fabric_rate_bps=100 * MBIT)
    with pytest.raises(ConfigError, match="its slowest link would have 100 kbit/s"):
        scaled(slow, 100 * MBIT, hash_seed=1)


@pytest.mark.parametrize("rate_bps", [MBIT, 100 * MBIT, 10_000 * MBIT])
def test_a_bucket_lets_a_whole_burst_through_and_a_queue_holds_all_windows(rate_bps: int) -> None:
    found = shape_for(rate_bps)
    assert found.burst_bytes > found.segment_bytes
    assert found.queue_bytes >= 100 * found.window_bytes
    assert found.window_bytes <= found.window_packets * 1448


def test_the_goodput_is_that_of_full_packets() -> None:
    assert pytest.approx(1448 / 1514) == GOODPUT
