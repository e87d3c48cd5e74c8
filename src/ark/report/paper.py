"""The paper's own numbers, quoted from its section 4: what ours stand beside.

Source: Lin, Hsu, Ho and Saeed, "ARK: Avoiding Routing Collisions for KV Cache Transfer in Disaggregated LLM
Inference", NAIC 2026, arXiv:2610.41160. Only numbers that its text states; nothing is read off figures.
"""

from typing import Final

QPS: Final = (1.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0)
"""Requests a second of the sweep ("from QPS = 1 to 30"; the steps between are ours)."""

HEATMAP_QPS: Final = 25.0
REQUESTS: Final = 1000

REDUCTIONS: Final = {
    "fct_mean_s": {1.0: 0.019, 25.0: 0.273, 30.0: 0.138},
    "fct_p95_s": {1.0: 0.012, 25.0: 0.340, 30.0: 0.124},
    "ttft_mean_s": {5.0: 0.02, 25.0: 0.129},
    "ttft_p95_s": {30.0: 0.12},
}
"""By which share ARK is lower than ECMP: column of ``results.csv`` -> QPS (sections 4.2, 4.3, abstract)."""

PEAK_ECMP: Final = 18
PEAK_ARK: Final = 8
PREFILL_S: Final = 0.840
DECODE1_S: Final = 0.010

TABLE1_S: Final = {
    "hash": 4.10e-6,
    "lookup": 0.87e-6,
    "initialize": 326e-3,
    "arrival_4": 3.48e-6,
    "arrival_1000": 870e-6,
    "transfer": 137e-3,
}
"""Table 1."""

MACHINE: Final = "Intel i9, one thread"
