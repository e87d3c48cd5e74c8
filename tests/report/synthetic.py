"""Runs with made-up numbers of a known form, for tests of what reports make of runs."""

from collections.abc import Iterator, Sequence

import numpy as np

from ark.sim.results import RunResult, SpineSeries, Ttft
from ark.workload.flows import Flows

SLOWDOWN = {"ecmp": 2.4, "round-robin": 2.0, "ark-paper": 1.75, "ark": 1.25, "ideal": 1.1}
SPINES = ("spine0", "spine1", "spine2", "spine3")


def run(scheme: str, qps: float | None, seed: int, *, requests: int = 40, served: bool = True) -> RunResult:
    """One run: the slowdown of its scheme grows with the load, the same draw for all schemes of a seed."""
    rng = np.random.default_rng([seed, int(qps or 0)])
    size_bytes = rng.integers(125 << 20, 6 << 30, requests)
    alone_s = size_bytes * 8 / 100e9
    load = 0.033 * (qps or 4)
    factor = 1 + (SLOWDOWN.get(scheme, 1.5) - 1) * load * rng.uniform(0.5, 1.5, requests)
    fct_s = alone_s * factor
    start_ns = np.sort(rng.integers(0, 10**10, requests))
    fixed_s = np.full(requests, 0.01)
    ttft = Ttft(fixed_s * 0, np.full(requests, 0.84), fixed_s * 0, fct_s, fixed_s, alone_s)
    time_s = np.arange(100) / 10
    active = rng.poisson(0.2 + 2.5 * load * factor.mean(), (len(SPINES), 100)).astype(np.int32)
    active *= scheme != "ideal"
    return RunResult(
        scheme=scheme,
        engine="flow",
        fabric="leaf-spine 2x4x8",
        qps=qps,
        seed=seed,
        requests=requests,
        load=load,
        lag_s=0.0,
        ttft_model="additive" if served else "",
        flows=Flows(
            id=[f"r{i}" for i in range(requests)],
            src=["h0"] * requests,
            dst=["h8"] * requests,
            size_bytes=size_bytes.astype(np.int64),
            start_ns=start_ns.astype(np.int64),
            sport=np.full(requests, 0xC001, np.int32),
            dport=np.full(requests, 4791, np.int32),
            extra={"tenant": ["a,b"] * requests},
        ),
        fct_ns=(fct_s * 1e9).astype(np.int64),
        reserve_ns=np.zeros(requests, np.int64),
        path=["2"] * requests,
        sport=["49153"] * requests,
        spine=["spine2"] * requests,
        ttft=ttft if served else None,
        spine_series=SpineSeries(time_s, active, SPINES, active.max(axis=1)),
        config={"fabric": {"kind": "leaf-spine"}, "scheme": scheme},
        warnings=["the offered prefill load is 2.2 times what the GPUs can do"] if qps == 30 else [],
    )


def grid(
    schemes: Sequence[str] = tuple(SLOWDOWN),
    points: Sequence[float | None] = (1.0, 5.0, 25.0, 30.0),
    seeds: int = 4,
    *,
    served: bool = True,
) -> Iterator[RunResult]:
    """A whole experiment of such runs."""
    for point in points:
        for scheme in schemes:
            for seed in range(seeds):
                yield run(scheme, point, seed, served=served)
