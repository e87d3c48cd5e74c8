"""Runs with real agents and real bytes on a small fabric."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ark.cli.discover_watch import watches_of
from ark.discover.learned import LearnedMap, LearnedPath
from ark.discover.numbering import FabricNumbering
from ark.discover.watch import State, Watch
from ark.errors import ConfigError
from ark.fabric import leaf_spine, path_map
from ark.lab.agents import Agents
from ark.lab.experiment import LabExperiment
from ark.lab.faults import fault_runs
from ark.lab.lab import Lab, lab
from ark.lab.outcome import Emulated
from ark.lab.run import run_all, run_fault, run_one
from ark.lab.scaled import scaled
from ark.lab.settle import settled
from ark.lab.sightings import sightings, tell_watches
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


def _watches_agree(one: Emulated) -> None:
    """Watches of exact maps hear nothing against them; one whose paths are swapped does."""
    fabric = FABRIC.lab
    paths = [int(path) for path in one.result.path]
    right = list(sightings(fabric, one.result, paths, one.bytes))
    assert len(right) == 24
    watches = {(a, b): _watch(a, b) for a, b in zip(one.result.flows.src, one.result.flows.dst, strict=True)}
    tell_watches(watches, one.result, right, now=1)
    assert {watch.state for watch in watches.values()} == {State.VALID}
    swapped = [replace(seen, counted_bytes=0) for seen in right[:1]]
    tell_watches(watches, one.result, swapped, now=1)
    ends = one.result.flows.src[0], one.result.flows.dst[0]
    assert watches[ends].state is State.SUSPECT


def _watch(source: str, target: str) -> Watch:
    a, b = FABRIC.lab.nic(source), FABRIC.lab.nic(target)
    exact = path_map(FABRIC.lab, a, b, proto=6)
    paths = tuple(
        LearnedPath(path, ("leaf0", f"spine{path}", "leaf1"), exact.ports(path)) for path in exact.paths
    )
    learned = LearnedMap(
        source, target, a.address, b.address, 6, 4791, "port", "", paths=paths, method="model", varying=(2,)
    )
    (found,) = watches_of([learned], {}, FabricNumbering(FABRIC.lab), now=0, interval_ns=10**9)
    return found


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
    _watches_agree(ark)
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
