import numpy as np
import pytest

from ark.sim.experiment import Experiment, run_point
from ark.sim.results import RESULT_COLUMNS, RunResult, Ttft
from ark.sim.traffic import FlowWorkload, PresetWorkload


@pytest.fixture(scope="module")
def result() -> RunResult:
    return run_point(Experiment(workload=PresetWorkload(requests=50)), "ecmp", 25.0, 0)


def test_a_row_has_the_columns_of_results_csv_in_order(result: RunResult) -> None:
    row = result.row()
    assert tuple(row) == RESULT_COLUMNS
    assert row["fct_mean_s"] == pytest.approx(result.fct_ns.mean() / 1e9)
    assert row["fct_p99_s"] == pytest.approx(np.percentile(result.fct_ns, 99) / 1e9)
    assert result.ttft is not None
    assert row["ttft_p95_s"] == pytest.approx(np.percentile(result.ttft.total_s, 95))
    assert row["peak_flows_per_spine"] == max(result.spine_series.peak)


def test_what_has_no_value_is_empty(result: RunResult) -> None:
    without = run_point(Experiment(workload=FlowWorkload(result.flows), qps=None), "ideal", None, 0).row()
    empty = {name for name, cell in without.items() if cell == ""}
    assert empty == {"qps", "ttft_model", "ttft_mean_s", "ttft_p50_s", "ttft_p95_s", "peak_flows_per_spine"}


def test_a_perfect_network_saves_what_is_not_prefill_decode_and_bytes() -> None:
    def of(value: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        return np.full(3, value)

    ttft = Ttft(of(1.0), of(2.0), of(0.25), of(4.0), of(0.5), of(3.0))
    assert ttft.total_s == pytest.approx(7.75)
    assert ttft.saving_max() == pytest.approx(1.25 / 7.75)
    assert sum(ttft.mean_parts().values()) == pytest.approx(7.75)


def test_no_requests_save_nothing() -> None:
    none = np.zeros(0)
    assert Ttft(none, none, none, none, none, none).saving_max() == 0.0
