"""Flows made from requests: pairs, ports and sizes, what a seed fixes, and the load that they offer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.workload import KvModel, Requests, kv_model, make_flows, offered_load, paper_requests, qps_for_load
from ark.workload.flows import NO_PORT, Flows

SOURCES = [f"h{index}" for index in range(8)]
TARGETS = [f"h{index}" for index in range(8, 16)]


@pytest.fixture
def llama() -> KvModel:
    return kv_model("llama-3-8b")


class Fabric:
    prefill_capacity_bps = 800


def flows_at(start_ns: list[int], size_bytes: list[int]) -> Flows:
    count = len(start_ns)
    return Flows(
        id=[str(index) for index in range(count)],
        src=["a"] * count,
        dst=["b"] * count,
        size_bytes=np.array(size_bytes, dtype=np.int64),
        start_ns=np.array(start_ns, dtype=np.int64),
        sport=np.full(count, NO_PORT, dtype=np.int32),
        dport=np.full(count, 4791, dtype=np.int32),
    )


def test_each_request_is_one_transfer_of_its_cache(llama: KvModel) -> None:
    requests = paper_requests(qps=10, requests=500, seed=2)
    flows = make_flows(requests, llama, SOURCES, TARGETS, 2)
    assert len(flows) == len(set(flows.id)) == 500
    np.testing.assert_array_equal(flows.size_bytes, requests.prompt_tokens * 131_072)
    np.testing.assert_allclose(flows.start_ns / 1e9, requests.arrived_s, atol=1e-9)
    assert set(flows.src) == set(SOURCES)
    assert set(flows.dst) == set(TARGETS)
    assert set(flows.dport.tolist()) == {4791}
    assert flows.sport.min() >= 0xC000
    assert flows.sport.max() <= 0xFFFF
    assert flows.path is None


def test_pairs_and_ports_are_uniform(llama: KvModel) -> None:
    flows = make_flows(paper_requests(qps=10, requests=64_000, seed=1), llama, SOURCES, TARGETS, 1)
    pairs = np.array(
        [SOURCES.index(s) * 8 + TARGETS.index(d) for s, d in zip(flows.src, flows.dst, strict=True)]
    )
    counts = np.bincount(pairs, minlength=64)
    assert ((counts - 1000) ** 2 / 1000).sum() < 63 + 5 * (
        2 * 63
    ) ** 0.5  # chi-square of 63 degrees of freedom
    assert abs(float(flows.sport.mean()) - (0xC000 + 0xFFFF) / 2) < 5 * 16_384 / 12**0.5 / 64_000**0.5


@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 2**31), st.floats(0.1, 100))
def test_the_first_flows_do_not_depend_on_how_many_there_are(
    count: int, more: int, seed: int, qps: float
) -> None:
    model = kv_model("llama-3-8b")
    few = make_flows(paper_requests(qps=qps, requests=count, seed=seed), model, SOURCES, TARGETS, seed)
    many = make_flows(paper_requests(qps=1, requests=count + more, seed=seed), model, SOURCES, TARGETS, seed)
    assert (few.src, few.dst) == (many.src[:count], many.dst[:count])
    assert few.sport.tolist() == many.sport[:count].tolist()
    assert few.size_bytes.tolist() == many.size_bytes[:count].tolist()


def test_cached_prefixes_are_sent_only_on_demand(llama: KvModel) -> None:
    one = np.ones(1, dtype=np.int64)
    requests = Requests(np.zeros(1), one * 1000, one, one * 600, "a test")
    assert make_flows(requests, llama, ["a"], ["b"], 0).size_bytes.tolist() == [400 * 131_072]
    assert make_flows(requests, llama, ["a"], ["b"], 0, send_prefix=True).size_bytes.tolist() == [
        1000 * 131_072
    ]


@pytest.mark.parametrize(
    ("sources", "targets", "dport", "message"),
    [
        ([], ["b"], 4791, "no prefill NIC"),
        (["a"], [], 4791, "no decode NIC"),
        (["a", "b"], ["b"], 4791, '"b": on the prefill and on the decode side'),
        (["a"], ["b"], 70_000, "port 70000 is not allowed"),
    ],
)
def test_sides_that_do_not_work_are_refused(
    sources: list[str], targets: list[str], dport: int, message: str, llama: KvModel
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_flows(paper_requests(qps=1, requests=2, seed=0), llama, sources, targets, 0, dport=dport)


def test_open_ports_are_drawn_and_given_ones_stay() -> None:
    flows = flows_at([0, 1, 2], [1, 1, 1])
    flows.sport[1] = 7
    drawn = flows.with_ports(3)
    assert drawn.sport[1] == 7
    assert drawn.sport[[0, 2]].min() >= 0xC000
    assert drawn.sport.tolist() == flows.with_ports(3).sport.tolist()
    assert drawn.sport.tolist() != flows.with_ports(4).sport.tolist()


def test_load_is_bytes_per_second_over_capacity() -> None:
    # Three flows of 20 B start over 2 s: 1 flow/s, 160 bit/s of 800.
    assert offered_load(flows_at([0, 10**9, 2 * 10**9], [10, 20, 30]), Fabric()) == pytest.approx(0.2)
    assert offered_load(flows_at([5], [10]), Fabric()) == 0
    assert offered_load(flows_at([5, 5], [10, 10]), Fabric()) == float("inf")
    assert qps_for_load(0.2, mean_size_bytes=20, fabric=Fabric()) == pytest.approx(1)


@pytest.mark.parametrize(("load", "size"), [(0.0, 1.0), (float("nan"), 1.0), (0.5, 0.0), (0.5, float("inf"))])
def test_loads_that_are_none_are_refused(load: float, size: float) -> None:
    with pytest.raises(ConfigError, match="is not a positive number"):
        qps_for_load(load, mean_size_bytes=size, fabric=Fabric())


def test_disorder_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        flows_at([1, 0], [1, 1])
