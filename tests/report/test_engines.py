from dataclasses import replace

import numpy as np
import pytest
from tests.report.synthetic import run

from ark.report.engines import all_rows, compare, differences, engine_cells
from ark.report.runs import Runs, collect
from ark.sim.results import RunResult

SCHEMES = ("ecmp", "ark-paper", "ark")
SETTINGS: dict[str, object] = {
    "payload_bytes": 9000,
    "overhead_bytes": 52,
    "ack_bytes": 60,
    "window": "variable",
    "control": "dcqcn",
}


def packet(
    scheme: str,
    seed: int,
    *,
    longer: float = 0.0,
    marked: int = 0,
    again: int = 0,
    settings: dict[str, str],
) -> RunResult:
    """The run of the same traffic at packet level, where each transfer takes longer by a share."""
    flow = run(scheme, 25.0, seed)
    count = len(flow.fct_ns)
    return replace(
        flow,
        engine="packet",
        fct_ns=(flow.fct_ns * (1 + longer)).astype(np.int64),
        ecn_marks=(np.arange(count) < marked).astype(np.int64),
        retransmits=np.full(count, again, np.int64),
        config={"packet": SETTINGS | settings},
    )


def levels(
    longer: dict[str, float] | None = None,
    *,
    marked: int = 0,
    again: int = 0,
    settings: dict[str, str] | None = None,
) -> tuple[Runs, Runs]:
    at_packets = collect(
        packet(
            scheme,
            seed,
            longer=(longer or {}).get(scheme, 0.0),
            marked=marked,
            again=again,
            settings=settings or {},
        )
        for scheme in SCHEMES
        for seed in range(2)
    )
    return at_packets, collect(run(scheme, 25.0, seed) for scheme in SCHEMES for seed in range(2))


def test_each_scheme_stands_beside_itself_and_the_paper() -> None:
    ecmp, theirs, ours = compare(*levels({"ecmp": 0.5}), with_paper=True)
    assert ecmp.longer_share == pytest.approx(0.5)
    assert (ecmp.mean_packet, ecmp.mean_flow, ecmp.mean_paper) == (None, None, None)
    assert (theirs.mean_paper, theirs.p95_paper) == (0.273, 0.340)
    assert ours.mean_paper is None
    assert theirs.mean_flow is not None
    assert theirs.mean_packet == pytest.approx(1 - (1 - theirs.mean_flow) / 1.5)
    assert all(row.mean_paper is None for row in compare(*levels(), with_paper=False))


def test_cells_have_a_load_once_and_nothing_where_there_is_no_number() -> None:
    ecmp, theirs, _ = engine_cells(compare(*levels({"ecmp": 0.5}), with_paper=True))
    assert ecmp[:2] == ["25", "ECMP"]
    assert ecmp[4:] == ["+50.0 %", "", "", "", "", "", ""]
    assert theirs[0] == ""
    assert (theirs[7], theirs[10]) == ("27.3 %", "34.0 %")


def test_equal_levels_are_called_equal() -> None:
    text = " ".join(differences(*levels()))
    assert "Mean FCT is the same at both levels within 0.5 %" in text
    assert "The order of the schemes by mean FCT is the same at both levels" in text
    assert "Single transfers take the same time at both levels" in text
    assert "Every transfer takes the same path at both levels." in text
    assert "No packet was marked by ECN" in text
    assert "max-min" not in text


def test_differences_are_those_of_the_numbers() -> None:
    text = " ".join(differences(*levels({"ark": 2.0, "ecmp": -0.1}, marked=10, again=3)))
    assert "differs from that at flow level by −10.0 % to +200.0 %; most for ARK at 25 requests/s" in text
    assert "differs at 1 of 1 loads; the last of them at 25 requests/s: " in text
    assert "ECN marked packets of 25 %" in text
    assert "360 packets were sent again" in text


def scattered(**settings: str) -> str:
    at_packets, flows = levels(None, marked=10, settings=settings)
    kept = at_packets.transfers["ecmp", 25.0]
    kept.fct_ns[::2] = (kept.fct_ns[::2] * 1.2).astype(np.int64)
    return " ".join(differences(at_packets, flows))


def test_the_reason_for_scatter_is_that_of_the_constants() -> None:
    assert "nine in ten differ by 0.0 % to +20.0 %" in scattered()
    assert "With marked packets (10 transfers): 0.0 % to +20.0 %; without: 0.0 % to +20.0 %." in scattered()
    assert "So marks are one reason" not in scattered()
    assert "A sender with a window" in scattered()
    assert "Nothing but the rate limits these senders" in scattered(window="none")
    assert "there is no congestion control" in scattered(control="none")


def test_marks_are_a_reason_where_marked_transfers_lose() -> None:
    at_packets, flows = levels(marked=10)
    kept = at_packets.transfers["ecmp", 25.0]
    kept.fct_ns[kept.marked] *= 2
    text = " ".join(differences(at_packets, flows))
    assert "With marked packets (10 transfers): +100.0 % to +100.0 %; without: 0.0 % to 0.0 %." in text
    assert "So marks are one reason" in text


def test_results_hold_the_rows_of_both_levels() -> None:
    at_packets, flows = levels()
    assert [row["engine"] for row in all_rows(at_packets, flows)] == ["packet"] * 6 + ["flow"] * 6
    assert len(all_rows(flows, None)) == 6
