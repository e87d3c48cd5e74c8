"""What a decision costs: ``python benchmarks/decision.py [--json]``; exit code 1 if a gate is not met.

Method: CPU time of one process, best of several rounds that take turns, so that a busy machine slows both
sides of a ratio alike. Sketch: a decision touches K x 2 links or one integer of K bits, three dictionaries
and two small objects, so 10 to 20 us in CPython, and twice that with lag, where a row is laid on the table,
taken off, and laid on again when all see it; the paper's scan of R is K dictionary look-ups. With K = 1000
the least loaded path is not looked for but known: a path or two are put into another class, 2 us each.
"""

import json
import platform
import random
import sys
import time
from collections.abc import Callable
from typing import Literal

from ark.control.decider import Decider
from ark.control.fleet import Fleet
from ark.control.geometry import PathSets
from ark.control.paper import Claims, FirstFree
from ark.control.policy import Policy, Request
from ark.control.rows import Row, State
from ark.control.view import view
from ark.fabric import leaf_spine
from ark.fabric.topology import Fabric

ROUNDS = 7
GATE_K_RATIO = 3.0
GATE_UPDATES_PER_S = 50_000
SIZE_BYTES = 10**9


def best_us(calls: int, *runs: Callable[[], None]) -> list[float]:
    """Best CPU time of each run in us a call; the runs take turns."""
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for index, run in enumerate(runs):
            start = time.process_time()
            run()
            best[index] = min(best[index], (time.process_time() - start) / calls * 1e6)
    return best


def claim(path: int) -> Row:
    """Somebody's claim of a path."""
    return Row(path + 1, 0, 1, 0, State.ACTIVE, (path,), 0, 1, SIZE_BYTES, path)


def lookup(paths: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """2,000 look-ups of the only free path, the last one: ours, and the paper's scan."""
    claims = Claims()
    for path in range(paths - 1):
        claims.change(None, claim(path))
    chooser = FirstFree(PathSets(leaf_spine(2, paths, 1)), claims)
    request = Request(0, 1, SIZE_BYTES, 0, 0)
    table = {path: (path, path) for path in range(paths - 1)}

    def ours() -> None:
        for _ in range(2000):
            chooser.pick(request)

    def scan() -> None:
        for _ in range(2000):
            next(path for path in range(paths) if path not in table)

    return ours, scan


def arrivals(name: Literal["ark", "paper"], paths: int) -> Callable[[], None]:
    """2,000 arrivals and completions of one host while all paths but the last are taken."""
    policy = Policy(name=name, line_rate_bps=10**11, hold_ns=0, min_bytes=0)
    known = view(policy, leaf_spine(2, paths, 1), measured=False)
    for path in range(paths - 1):
        known.table.put(claim(path))
    decider = Decider(0, 0, policy=policy, view=known, history=0)

    def run() -> None:
        for flow in range(2000):
            decider.flow_arrived(flow, 10**6 + flow, flow, 0, 1, SIZE_BYTES)
            decider.flow_completed(flow, flow)

    return run


def fleet(fabric: Fabric, policy: str, lag_ns: int) -> Callable[[], None]:
    """4,000 arrivals, 200 transfers at a time, on 512 hosts, 16 leaves, 8 spines."""

    def run() -> None:
        rng = random.Random(1)
        all_hosts = Fleet(fabric, hosts=512, policy=policy, lag_ns=lag_ns)  # type: ignore[arg-type]
        live: list[tuple[int, int]] = []
        for flow in range(4000):
            now_ns, host = flow * 3_000_000, rng.randrange(256)
            all_hosts.flow_arrived(now_ns, host, flow, host // 32, 8 + flow % 8, SIZE_BYTES, flow * 7919)
            live.append((host, flow))
            if len(live) > 200:
                all_hosts.flow_completed(now_ns, *live.pop(rng.randrange(len(live))))

    return run


def updates(fabric: Fabric) -> Callable[[], None]:
    """10,000 rows of peers taken in (5,000 PUT, 5,000 DROP) by a host with 1,000 transfers of its own."""
    policy = Policy(name="ark", line_rate_bps=10**11)
    known = view(policy, fabric)
    decider = Decider(0, 0, policy=policy, view=known)
    for flow in range(1000):
        decider.flow_arrived(0, flow, flow, 0, 1 + flow % 15, SIZE_BYTES * 100)
    rows = [
        Row(1, 0, 1, flow, State.ACTIVE, (flow % 8,), 0, 1 + flow % 15, SIZE_BYTES, 10**6 + flow)
        for flow in range(5000)
    ]

    def run() -> None:
        for row in rows:
            change = known.table.put(row)
            assert change is not None
            decider.row_changed(1, 10**7, change)
        for row in rows:
            change = known.table.remove(row.host, row.flow)
            assert change is not None
            decider.row_changed(1, 10**7, change)

    return run


def measure() -> dict[str, float]:
    """All figures by name."""
    (small, small_scan), (large, large_scan) = lookup(4), lookup(1000)
    looked = best_us(2000, small, large, small_scan, large_scan)
    arrived = best_us(2000, *(arrivals(name, paths) for name in ("paper", "ark") for paths in (4, 1000)))
    fabric = leaf_spine(16, 8, 32)
    cases = [(policy, lag_ns) for policy in ("ark", "paper") for lag_ns in (0, 100_000, 10_000_000)]
    costs = best_us(7800, *(fleet(fabric, *case) for case in cases))
    (update,) = best_us(10_000, updates(fabric))
    figures = {
        "lookup_k4_us": looked[0],
        "lookup_k1000_us": looked[1],
        "lookup_k1000_over_k4": looked[1] / looked[0],
        "scan_k4_us": looked[2],
        "scan_k1000_us": looked[3],
        "scan_k1000_over_k4": looked[3] / looked[2],
        "arrival_and_completion_k4_us": arrived[0],
        "arrival_and_completion_k1000_us": arrived[1],
        "arrival_k1000_over_k4": arrived[1] / arrived[0],
        "ark_arrival_and_completion_k4_us": arrived[2],
        "ark_arrival_and_completion_k1000_us": arrived[3],
        "ark_arrival_k1000_over_k4": arrived[3] / arrived[2],
        "updates_per_s": 1e6 / update,
    }
    for (policy, lag_ns), cost in zip(cases, costs, strict=True):
        figures[f"fleet_{policy}_lag_{lag_ns // 1000}us_us_per_call"] = cost
    return figures


def main() -> int:
    """Print the figures; 1 if a gate is not met."""
    figures = measure()
    met = (
        max(figures[f"{name}_k1000_over_k4"] for name in ("lookup", "arrival", "ark_arrival")) <= GATE_K_RATIO
        and figures["updates_per_s"] >= GATE_UPDATES_PER_S
    )
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    if "--json" in sys.argv[1:]:
        print(json.dumps({"machine": machine, "rounds": ROUNDS, "gates_met": met, "figures": figures}))
    else:
        print(f"{machine}, best of {ROUNDS} rounds, CPU time")
        for name, value in figures.items():
            print(f"{name:40} {value:14.2f}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
