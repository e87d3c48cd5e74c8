"""Runs with real agents and real bytes on a small fabric."""

import os
from collections.abc import Iterator

import pytest

from ark.errors import ConfigError
from ark.fabric import leaf_spine
from ark.lab.agents import Agents
from ark.lab.experiment import LabExperiment
from ark.lab.faults import fault_runs
from ark.lab.lab import Lab, lab
from ark.lab.run import run_all, run_fault, run_one
from ark.lab.scaled import scaled
from ark.lab.settle import settled
from ark.lab.twin import twin_of
from ark.sim.traffic import PresetWorkload

FABRIC = scaled(leaf_spine(2, 2, 2), 10**8, hash_seed=5)
EXPERIMENT = LabExperiment(
    fabric=FABRIC, workload=PresetWorkload(requests=24), qps=(12.0,), schemes=("ecmp", "ark")
)


@pytest.fixture(scope="module")
def built() -> Iterator[Lab]:
    if os.geteuid() != 0:
        pytest.skip("needs root and network namespaces")
    with lab(FABRIC.lab, name=f"ark-lab.runs{os.getpid()}") as made:
        made.crew.start()
        yield made


def test_schemes_that_the_lab_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigError, match='the lab has no "ideal"; there are ecmp, ark-paper, ark'):
        LabExperiment(fabric=FABRIC, schemes=("ideal",)).check()
    with pytest.raises(ConfigError, match="nothing to run"):
        LabExperiment(fabric=FABRIC, seeds=()).check()


@pytest.mark.slow
def test_every_transfer_arrives_right_on_the_path_that_was_chosen(built: Lab) -> None:
    ecmp, ark = run_all(built, EXPERIMENT)
    for one in (ecmp, ark):
        assert one.wrongs() == []
        assert one.result.requests == 24
        assert one.bytes.sent[-1].sum() > one.result.flows.size_bytes.sum()
        assert (one.result.fct_ns >= one.result.reserve_ns).all()
    assert ecmp.kinds == {}
    assert ark.kinds == {"steered": 24}
    assert (ecmp.result.flows.size_bytes == ark.result.flows.size_bytes).all()
    assert ecmp.result.sport == [str(port) for port in ecmp.result.flows.sport]
    twin = twin_of(EXPERIMENT, ecmp.result)
    assert twin.path == ecmp.result.path
    assert twin.row()["engine"] == "flow"
    assert list(twin.row()) == list(ecmp.result.row())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agent-killed", "spine-down"])
def test_what_breaks_leaves_nothing_wrong(built: Lab, name: str) -> None:
    fault = fault_runs(FABRIC.lab)[name]
    one = run_fault(built, EXPERIMENT, fault)
    assert one.failed == []
    assert one.unsettled == ""
    assert sum(one.kinds.values()) == 24


@pytest.mark.slow
def test_claims_that_stay_are_found(built: Lab) -> None:
    from ark.client import Client  # noqa: PLC0415 - only this test is a client

    agents: Agents = built.agents
    agents.start("ark")
    try:
        agents.wait()
        assert settled(agents) == ""
        client = Client(agents.socket("h0"), timeout_s=5.0)
        with client.transfer("h2", 10**6, dport=4791, proto="tcp") as held:
            assert held.kind == "steered"
            found = settled(agents, wait_s=0.5)
        client.close()
        assert found.startswith(("claims are left: h0 knows of 1", "tables differ"))
        assert settled(agents) == ""
    finally:
        agents.stop()


@pytest.mark.slow
def test_without_agents_nobody_is_steered_and_all_arrive(built: Lab) -> None:
    one = run_one(built, EXPERIMENT, "ark", 12.0, 0)
    assert one.failed == []
    assert one.kinds == {"none: no agent answers": 24}
