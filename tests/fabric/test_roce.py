"""RoCE port rules against the text of the kernel's formulas, exhaustively where the domain is finite."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.fabric.roce import (
    FLOW_LABEL_MAX,
    SPORTS,
    flow_label_of_sport,
    sport_of_flow_label,
    sport_of_queue_pairs,
)

queue_pairs = st.integers(0, 2**24 - 1)


def rdma_flow_label_to_udp_sport(flow_label: int) -> int:
    """As include/rdma/ib_verbs.h has it."""
    low = flow_label & 0x3FFF
    high = flow_label & 0xFC000
    low ^= high >> 14
    return low | 0xC000


def test_every_port_comes_back_from_its_flow_label() -> None:
    labels = [flow_label_of_sport(port) for port in SPORTS]
    assert [sport_of_flow_label(label) for label in labels] == list(SPORTS)
    assert len(SPORTS) == 16_384
    assert all(1 <= label <= FLOW_LABEL_MAX for label in labels)


@pytest.mark.slow
def test_the_flow_label_of_a_port_is_the_least_that_leads_to_it() -> None:
    least: dict[int, int] = {}
    for label in range(1, FLOW_LABEL_MAX + 1):
        port = sport_of_flow_label(label)
        assert port == rdma_flow_label_to_udp_sport(label)
        least.setdefault(port, label)
    assert least == {port: flow_label_of_sport(port) for port in SPORTS}


def test_flow_labels_of_an_array_of_ports_are_those_of_each() -> None:
    ports = np.arange(SPORTS.start, SPORTS.stop, dtype=np.uint32)
    labels = flow_label_of_sport(ports)
    assert not isinstance(labels, int)
    assert labels.tolist() == [flow_label_of_sport(port) for port in SPORTS]


@pytest.mark.parametrize("port", [-1, 0, 4791, 0xBFFF, 0x10000])
def test_a_port_that_roce_does_not_use_has_no_flow_label(port: int) -> None:
    with pytest.raises(ValueError, match=f"RoCE source ports are 49152 to 65535, not {port}"):
        flow_label_of_sport(port)


@pytest.mark.parametrize("label", [-1, 0, 0x100000])
def test_a_flow_label_that_sets_no_port_is_refused(label: int) -> None:
    with pytest.raises(ValueError, match="a flow label that sets the port is 1 to 0xfffff"):
        sport_of_flow_label(label)


@given(local=queue_pairs, remote=queue_pairs)
def test_without_a_label_the_port_follows_from_the_queue_pairs(local: int, remote: int) -> None:
    value = local * remote
    value ^= value >> 20
    value ^= value >> 40
    assert sport_of_queue_pairs(local, remote) == rdma_flow_label_to_udp_sport(value & 0xFFFFF)
    assert sport_of_queue_pairs(local, remote) == sport_of_queue_pairs(remote, local)
    assert sport_of_queue_pairs(local, remote) in SPORTS
