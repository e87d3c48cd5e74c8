"""The fluid engine beside SimAI's ns-3, per flow, with ns-3's spines given."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.sim.flow.reference_runs import reference_run

from ark.fabric import paper_fabric
from ark.sim.flow.engine import FlowEngine
from ark.sim.flow.model import FlowModel
from ark.sim.offered import transfers_of
from ark.sim.schemes.ecmp import Ecmp

FABRIC = paper_fabric()


def fct_ns(name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """FCT of the engine and of ns-3."""
    flows, reference_ns = reference_run(name)
    transfers = transfers_of(flows, FABRIC)
    outcome = FlowEngine(FABRIC, transfers, Ecmp(FABRIC, transfers), FlowModel()).run()
    assert outcome.path == flows.path
    return outcome.fct_ns, reference_ns


@pytest.mark.parametrize("name", ["w200_q5__d9000", "w200_q15__d9000"])
def test_mean_within_1_percent_and_median_error_below_0_6(name: str) -> None:
    ours, theirs = fct_ns(name)
    assert ours.mean() == pytest.approx(theirs.mean(), rel=0.01)
    assert np.median(np.abs(ours / theirs - 1)) < 0.006


@pytest.mark.parametrize(
    ("name", "within"),
    [
        ("m1_single__d9000", 1e-6),
        ("m2_collide2__d9000", 1e-4),
        ("m3_four_spines__d9000", 1e-4),
        ("m4_incast4__d9000", 2e-4),
        ("m8_same_src__d9000", 1e-4),
        ("m6_late__d9000", 1e-3),
    ],
)
def test_few_flows_on_one_queue_agree_closely(name: str, within: float) -> None:
    ours, theirs = fct_ns(name)
    assert ours == pytest.approx(theirs, rel=within)
