import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.fabric import paper_fabric
from ark.sim.experiment import Experiment, run_point
from ark.sim.serving import Serving, serve
from ark.sim.traffic import PresetWorkload
from ark.workload.latency import latency_model
from ark.workload.requests import Requests

LATENCY = latency_model("constant:100ms:10ms")


def requests(*arrived_s: float) -> Requests:
    count = len(arrived_s)
    tokens = np.full(count, 1000)
    return Requests(np.array(arrived_s), tokens, np.ones(count, np.int64), np.zeros(count, np.int64), "test")


def test_additive_ignores_the_queue_and_sends_at_arrival() -> None:
    served = serve(requests(0.0, 0.01, 0.02), ["h0"] * 3, 1, LATENCY, "additive", 1)
    assert served.sent_s.tolist() == [0.0, 0.01, 0.02]
    assert not served.queue_s.any()


def test_fifo_takes_one_prompt_after_the_other_at_each_gpu() -> None:
    served = serve(requests(0.0, 0.01, 0.02, 0.5), ["h0", "h0", "h1", "h0"], 2, LATENCY, "fifo", 1)
    assert served.queue_s == pytest.approx([0.0, 0.09, 0.0, 0.0])
    assert served.sent_s == pytest.approx([0.1, 0.2, 0.12, 0.6])


def test_layers_leave_as_soon_as_they_are_computed() -> None:
    served = serve(requests(1.0, 1.0), ["h0", "h0"], 1, LATENCY, "fifo", 4)
    assert served.sent_s == pytest.approx([1.025, 1.125])


@pytest.mark.parametrize(("model", "says"), [("additive", "ignores"), ("fifo", "queue grows")])
def test_an_overload_of_the_gpus_is_said(model: str, says: str) -> None:
    served: Serving = serve(requests(0.0, 0.1), ["h0"] * 2, 1, LATENCY, model, 1)  # type: ignore[arg-type]
    assert served.load == pytest.approx(2.0)
    assert says in served.warnings()[0]
    assert serve(requests(0.0, 1.0), ["h0"] * 2, 1, LATENCY, "fifo", 1).warnings() == []


@pytest.mark.slow
@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.integers(1, 4))
def test_a_gpu_is_never_idle_while_a_prompt_waits(times: list[float], gpus: int) -> None:
    asked = requests(*sorted(times))
    names = [f"h{number % gpus}" for number in range(len(times))]
    served = serve(asked, names, gpus, LATENCY, "fifo", 1)
    for gpu in set(names):
        mine = [number for number, name in enumerate(names) if name == gpu]
        busy_until = 0.0
        for number in mine:
            begun = asked.arrived_s[number] + served.queue_s[number]
            assert begun == pytest.approx(max(asked.arrived_s[number], busy_until), abs=1e-9)
            busy_until = begun + 0.1


def point(**options: object) -> tuple["np.ndarray[tuple[int], np.dtype[np.float64]]", float]:
    experiment = Experiment(workload=PresetWorkload(requests=60), latency=LATENCY, **options)  # type: ignore[arg-type]
    result = run_point(experiment, "ideal", 5.0, 0)
    assert result.ttft is not None
    assert (result.ttft.transfer_s >= result.ttft.alone_s - 1e-6).all()
    return result.ttft.total_s, result.ttft.saving_max()


def test_ttft_is_the_sum_of_the_paper() -> None:
    result = run_point(Experiment(workload=PresetWorkload(requests=60), latency=LATENCY), "ecmp", 5.0, 0)
    assert result.ttft is not None
    assert result.ttft.total_s == pytest.approx(0.1 + result.fct_ns / 1e9 + 0.01)


def test_sending_layers_early_never_makes_a_request_wait_longer_on_an_idle_fabric() -> None:
    whole, _ = point(ttft="fifo")
    layered, saving = point(ttft="fifo", layers=32)
    assert layered.mean() < whole.mean()
    assert 0 <= saving < 1


def test_scaled_down_transfers_give_the_same_ttft_in_full_size() -> None:
    full, _ = point(ttft="fifo")
    scaled, _ = point(ttft="fifo", scale=50.0)
    # The base latency, 6 us, does not shrink with the bytes: it counts 50 times.
    assert scaled == pytest.approx(full, abs=50 * 6.2e-6)


def test_requests_stand_beside_their_transfers_when_prefills_end_out_of_order() -> None:
    experiment = Experiment(workload=PresetWorkload(requests=200), ttft="fifo", fabric=paper_fabric())
    result = run_point(experiment, "ecmp", 25.0, 1)
    tokens = result.flows.size_bytes / 131072
    assert result.ttft is not None
    assert result.ttft.prefill_s == pytest.approx(experiment.latency.prefill_s(tokens))
    assert sorted(result.flows.id, key=int) != result.flows.id
