"""What a run came to: bytes beside the chosen paths, kinds of answers, what must not be."""

from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.fabric import leaf_spine
from ark.lab.machine import Busy, spoiled
from ark.lab.orders import Done
from ark.lab.outcome import Emulated, LinkBytes, elsewhere, kinds_of, links_used, paths_taken, spine_series
from ark.lab.scaled import scaled
from ark.sim.results import RunResult
from ark.workload.flows import Flows

FABRIC = scaled(leaf_spine(2, 2, 2), 10**8, hash_seed=3).lab


def flows_of(count: int) -> Flows:
    return Flows(
        id=[str(number) for number in range(count)],
        src=["h0", "h1"] * (count // 2),
        dst=["h2", "h3"] * (count // 2),
        size_bytes=np.full(count, 1000, np.int64),
        start_ns=np.arange(count, dtype=np.int64) * 1_000_000,
        sport=np.full(count, 50_000, np.int32),
        dport=np.full(count, 4791, np.int32),
    )


def done_of(transfer: int, **changes: object) -> Done:
    base = Done(transfer, 50_000, None, "", "", 0, 0, 1_000_000, 0, "")
    return Done(**{**as_dict(base), **changes})  # type: ignore[arg-type]


def as_dict(done: Done) -> dict[str, object]:
    return {name: getattr(done, name) for name in done.__struct_fields__}


def counted(sent: dict[int, int]) -> LinkBytes:
    links = links_used(FABRIC, flows_of(2))
    rows = np.array([[0] * len(links), [sent.get(link, 0) for link in links]], np.int64)
    return LinkBytes(links, np.array([0.0, 1.0]), rows)


def bytes_of(paths: list[int], factor: float = 1.0) -> dict[int, int]:
    flows = flows_of(len(paths))
    sent: dict[int, int] = {}
    for index, number in enumerate(paths):
        pair = FABRIC.nic(flows.src[index]), FABRIC.nic(flows.dst[index])
        for link in FABRIC.paths(*pair)[number].links:
            sent[link] = sent.get(link, 0) + int(1000 * factor)
    return sent


def test_links_of_hosts_do_not_count() -> None:
    names = [
        (FABRIC.links[link].source, FABRIC.links[link].target) for link in links_used(FABRIC, flows_of(2))
    ]
    assert sorted(names) == [
        ("leaf0", "spine0"),
        ("leaf0", "spine1"),
        ("spine0", "leaf1"),
        ("spine1", "leaf1"),
    ]


@given(st.lists(st.integers(0, 1), min_size=2, max_size=8).filter(lambda paths: len(paths) % 2 == 0))
def test_bytes_on_the_chosen_paths_are_not_elsewhere(paths: list[int]) -> None:
    flows = flows_of(len(paths))
    found = elsewhere(FABRIC, flows, flows.size_bytes, paths, counted(bytes_of(paths, 1.05)))
    assert found == pytest.approx(0)


def test_bytes_on_other_paths_are_elsewhere() -> None:
    flows = flows_of(4)
    found = elsewhere(FABRIC, flows, flows.size_bytes, [0, 0, 0, 0], counted(bytes_of([0, 0, 0, 1])))
    assert found == pytest.approx(0.25)


def test_without_bytes_nothing_is_elsewhere() -> None:
    flows = flows_of(2)
    assert elsewhere(FABRIC, flows, flows.size_bytes, [0, 0], counted({})) == 0


def test_answers_are_counted_by_kind() -> None:
    done = [done_of(0), done_of(1, kind="steered"), done_of(2, kind="none", reason="no agent answers")]
    assert kinds_of(done) == {"steered": 1, "none: no agent answers": 1}


def test_a_series_counts_who_is_under_way() -> None:
    done = [done_of(0, fct_ns=5_000_000), done_of(1, fct_ns=5_000_000)]
    series = spine_series(FABRIC, ["spine0", "spine0"], flows_of(2), done)
    assert series.peak.tolist() == [2, 0]
    assert paths_taken(FABRIC, flows_of(2), done).tolist() in ([0, 0], [0, 1], [1, 0], [1, 1])


def emulated(**changes: object) -> Emulated:
    plain: dict[str, object] = {
        "result": cast("RunResult", None),
        "bytes": counted({}),
        "busy": Busy(0.3, 0.1, 2),
        "kinds": {},
        "failed": [],
        "strayed": 0,
        "elsewhere_share": 0.0,
        "uncounted": 0,
        "retransmits": 0,
        "late_p95_s": 0.0,
        "spoiled": "",
        "unsettled": "",
    }
    return Emulated(**{**plain, **changes})  # type: ignore[arg-type]


def test_what_must_not_be_is_said() -> None:
    assert emulated().wrongs() == []
    assert emulated(failed=[f"transfer {n}" for n in range(7)]).wrongs()[-1] == "and 2 more transfers failed"
    assert emulated(strayed=3).wrongs() == ["3 transfers did not take the path that ARK chose"]
    assert emulated(elsewhere_share=0.02).wrongs() == [
        "2.0% of bytes were on other links than the chosen paths'"
    ]
    assert emulated(uncounted=2).wrongs() == ["2 transfers were not counted on the links of their paths"]
    assert emulated(unsettled="claims are left: h0 knows of 1").wrongs() == ["claims are left: h0 knows of 1"]


def test_a_busy_machine_or_late_senders_spoil_a_run() -> None:
    assert spoiled(Busy(0.5, 0.3, 2), late_p95_s=0.001, fct_mean_s=0.5) == ""
    assert spoiled(Busy(0.95, 0.3, 2), 0.001, 0.5) == "95 % of 2 cores were busy, 30 % with the lab"
    assert spoiled(Busy(0.5, 0.3, 2), 0.1, 0.5) == "one in twenty transfers began 100 ms late"


def test_bytes_during_a_transfer_are_between_the_readings_around_it() -> None:
    found = LinkBytes((7, 9), np.array([0.0, 1.0, 2.0, 3.0]), np.array([[0, 0], [10, 1], [30, 2], [60, 3]]))
    assert found.during(7, 1.0, 2.0) == 20
    assert found.during(7, 1.1, 1.9) == 20
    assert found.during(7, 0.9, 2.1) == 60
    assert found.during(9, -1.0, 99.0) == 3
