"""Our model of Linux multipath routing against the running kernel: look-ups and real packets."""

import re
from collections.abc import Iterator
from random import Random
from typing import Literal

import pytest
from tests.fabric.linux_router import LinuxRouter, linux_router

from ark.fabric.five_tuple import TCP, UDP, FiveTuple, header_of
from ark.fabric.hash_spec import FIVE_TUPLE_FIELDS, HashField, HashSpec
from ark.fabric.hashing import hasher
from ark.fabric.selection import resilient_table, selector, without_lost

pytestmark = pytest.mark.slow

NEXT_HOPS = 5
FIELD_BITS: dict[HashField, int] = {
    "src": 0x1,
    "dst": 0x2,
    "proto": 0x4,
    "flow-label": 0x8,
    "sport": 0x10,
    "dport": 0x20,
}  # FIB_MULTIPATH_HASH_FIELD_* of the outer header, include/net/ip_fib.h
SUBSETS: list[tuple[HashField, ...]] = [
    FIVE_TUPLE_FIELDS,
    ("src", "dst"),
    ("sport",),
    ("dst", "proto", "dport"),
    (*FIVE_TUPLE_FIELDS, "flow-label"),
    ("flow-label",),
]


@pytest.fixture(scope="module")
def router() -> Iterator[LinuxRouter]:
    with linux_router(NEXT_HOPS) as made:
        yield made


def random_flows(version: Literal[4, 6], count: int, *, seed: int) -> list[FiveTuple]:
    draw = Random(seed)
    flows = []
    for _ in range(count):
        src, dst = draw.randrange(2, 2**16 - 1), draw.randrange(2, 2**16 - 1)
        flows.append(
            FiveTuple(
                f"10.1.{src >> 8}.{src & 255}"
                if version == 4
                else f"fd01::{src:x}:{draw.randrange(2**16):x}",
                f"10.9.{dst >> 8}.{dst & 255}"
                if version == 4
                else f"fd09::{dst:x}:{draw.randrange(2**16):x}",
                draw.randrange(1, 2**16),
                draw.choice([4791, 4791, draw.randrange(1, 2**16)]),
                draw.choice([UDP, TCP]),
                flow_label=0 if version == 4 else draw.randrange(2**20),
            )
        )
    return flows


def predicted(spec: HashSpec, weights: list[int], flows: list[FiveTuple]) -> list[int]:
    of_router = hasher(spec, node=0)
    chooser = selector(spec, bits=of_router.bits, weights=weights, alive=[True] * len(weights))
    chosen = [chooser.select(of_router.hash(header_of(flow))) for flow in flows]
    assert all(isinstance(number, int) for number in chosen)
    return [number for number in chosen if isinstance(number, int)]


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [1, 2, 3, 10], [7], [255, 1, 1, 100, 3]])
@pytest.mark.parametrize("policy", [1, 3])
def test_ipv4_look_up(router: LinuxRouter, policy: Literal[1, 3], weights: list[int]) -> None:
    router.set_hash(seed=40_000_123, policy=policy, fields=0x37)
    router.set_routes(weights)
    flows = random_flows(4, 400, seed=policy)
    spec = HashSpec(function="linux", policy=policy, seed=40_000_123, selection="thresholds")
    assert router.look_up(flows) == predicted(spec, weights, flows)


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [1, 2, 3, 10]])
def test_ipv6_look_up(router: LinuxRouter, weights: list[int]) -> None:
    """By policy 1 only: under policy 3 a look-up without a packet leaves out the last step of the hash."""
    router.set_hash(seed=2**32 - 1, policy=1, fields=0x37)
    router.set_routes(weights)
    flows = random_flows(6, 400, seed=6)
    spec = HashSpec(function="linux", policy=1, seed=2**32 - 1, selection="thresholds")
    assert router.look_up(flows) == predicted(spec, weights, flows)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("policy", [1, 3])
def test_forwarding_of_the_five_tuple(
    router: LinuxRouter, policy: Literal[1, 3], version: Literal[4, 6]
) -> None:
    router.set_hash(seed=77, policy=policy, fields=0x37)
    router.set_routes([3, 1, 2, 1, 4])
    flows = random_flows(version, 200, seed=version)
    spec = HashSpec(function="linux", policy=policy, seed=77, selection="thresholds")
    assert router.forward(flows) == predicted(spec, [3, 1, 2, 1, 4], flows)


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("fields", SUBSETS, ids=" ".join)
def test_forwarding_by_a_subset_of_fields(
    router: LinuxRouter, fields: tuple[HashField, ...], version: Literal[4, 6]
) -> None:
    router.set_hash(seed=78, policy=3, fields=sum(FIELD_BITS[field] for field in fields))
    router.set_routes([1] * NEXT_HOPS)
    flows = random_flows(version, 60, seed=version)
    spec = HashSpec(function="linux", policy=3, fields=fields, seed=78, selection="thresholds")
    assert router.forward(flows) == predicted(spec, [1] * NEXT_HOPS, flows)


@pytest.mark.parametrize(("weights", "buckets"), [([3, 1, 2], 16), ([1] * 5, 128), ([1, 1, 1, 1], 31)])
def test_resilient_groups(router: LinuxRouter, weights: list[int], buckets: int) -> None:
    """The table of a new group, where packets go by it, and which buckets move when members are lost."""
    router.set_hash(seed=79, policy=3, fields=0x37)
    group = "/".join(f"{1 + k},{weight}" for k, weight in enumerate(weights))
    router.ip(*(f"nexthop add id {1 + k} via 10.2.{k}.2 dev out{k}" for k in range(len(weights))))
    try:
        router.ip(f"nexthop add id 99 group {group} type resilient buckets {buckets} idle_timer 0")
    except OSError as error:
        pytest.skip(f"this kernel has no resilient next-hop groups: {error}")
    try:
        router.ip("route replace 10.9.0.0/16 nhid 99")
        table = resilient_table(weights, buckets)
        assert table_of_kernel(router) == table

        spec = HashSpec(function="linux", policy=3, seed=79, selection="resilient", buckets=buckets)
        flows = random_flows(4, 200, seed=buckets)
        assert router.look_up(flows) == predicted(spec, weights, flows)

        alive = [True] * len(weights)
        for lost in range(1, len(weights) - 1):
            router.ip(f"nexthop del id {1 + lost}")
            alive[lost] = False
            assert table_of_kernel(router) == without_lost(table, weights, alive)
    finally:
        router.ip("route del 10.9.0.0/16", "nexthop flush")


def table_of_kernel(router: LinuxRouter) -> list[int]:
    printed = router.ip("nexthop bucket show id 99")
    return [int(identity) - 1 for identity in re.findall(r"nhid (\d+)", printed)]
