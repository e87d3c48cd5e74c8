"""What a path map costs against a loop over ports: ``python benchmarks/pathmap.py [--json]``.

Exit code 1 if a gate is not met. Method: CPU time of one process, best of several rounds in which the map and
the loops take turns; the map holds all 65,536 ports, the loops run over every 64th and are scaled. Two loops:
one asks ``route`` for each port, as a program without path maps would; the other is the least that a loop can
do, it only hashes and selects at the one switch that decides, and the gate is on that one. Sketch: a hash of
five words is about 40 operations, 0.05 us each in CPython and 0.5 ns a port in NumPy.
"""

import json
import platform
import sys
import time
from collections.abc import Callable

import numpy as np

from ark.fabric import ALL_PORTS, FiveTuple, HashSpec, leaf_spine, path_map, route, route_flows
from ark.fabric.five_tuple import header_of
from ark.fabric.hash_spec import HashFunction
from ark.fabric.route import Decision, router

ROUNDS = 7
STEP = 64
GATE_RATIO = 100
GATE_FLOWS_S = 2.0
FUNCTIONS: tuple[HashFunction, ...] = ("murmur3", "crc16-arc", "crc32c", "xor16", "toeplitz", "linux")


def best_s(*runs: Callable[[], object]) -> list[float]:
    """Best CPU time of each run in seconds; the runs take turns."""
    best = [float("inf")] * len(runs)
    for _ in range(ROUNDS):
        for index, run in enumerate(runs):
            start = time.process_time()
            run()
            best[index] = min(best[index], time.process_time() - start)
    return best


def of_function(function: HashFunction) -> dict[str, float | str]:
    """Time of a map and of both loops, for one hash function in the paper's fabric."""
    fabric = leaf_spine(2, 4, 8, hash=HashSpec(function=function))
    source, target = fabric.nic("h0"), fabric.nic("h8")
    header = header_of(FiveTuple(source.address, target.address, 0, 4791))
    decision = router(fabric).next_hop("leaf0", target)
    assert isinstance(decision, Decision)
    ports = range(0, 65_536, STEP)

    def routes() -> list[int]:
        flows = (FiveTuple(source.address, target.address, port, 4791) for port in ports)
        return [route(fabric, flow, source, target).index for flow in flows]

    def hashes() -> list[object]:
        return [decision.choose(header._replace(sport=port)) for port in ports]

    mapped_s, routes_s, hashes_s = best_s(
        lambda: path_map(fabric, source, target, ports=ALL_PORTS), routes, hashes
    )
    return {
        "function": function,
        "map_ms": mapped_s * 1e3,
        "route_loop_ms": routes_s * STEP * 1e3,
        "hash_loop_ms": hashes_s * STEP * 1e3,
        "ratio_routes": routes_s * STEP / mapped_s,
        "ratio_hashes": hashes_s * STEP / mapped_s,
    }


def many_flows_s() -> float:
    """CPU time to route 100,000 flows from prefill to decode hosts, 512 hosts, 16 leaves, 8 spines."""
    fabric = leaf_spine(16, 8, 32)
    draw = np.random.default_rng(0)
    count = 100_000
    sources, targets = draw.integers(0, 256, count), draw.integers(256, 512, count)
    sports = draw.integers(0xC000, 0x10000, count)
    start = time.process_time()
    route_flows(fabric, sources, targets, sports)
    return time.process_time() - start


def main() -> int:
    """Measure, print, judge."""
    rows = [of_function(function) for function in FUNCTIONS]
    flows_s = many_flows_s()
    ratio = min(float(row["ratio_hashes"]) for row in rows)
    result = {
        "machine": f"{platform.machine()} {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, NumPy {np.__version__}",
        "method": f"CPU time, best of {ROUNDS}; loops over every {STEP}th port, scaled",
        "ports": 65_536,
        "results": rows,
        "ratio_least": ratio,
        "flows_100k_s": flows_s,
    }
    if "--json" in sys.argv[1:]:
        print(json.dumps(result, indent=2))
    else:
        print(f"{result['machine']}; {result['method']}")
        for row in rows:
            print(
                f"{row['function']:>10}: map {row['map_ms']:6.2f} ms; "
                f"loop of hashes {row['hash_loop_ms']:6.0f} ms, {row['ratio_hashes']:4.0f} times; "
                f"loop of routes {row['route_loop_ms']:7.0f} ms, {row['ratio_routes']:5.0f} times"
            )
        print(f"least ratio to a loop of hashes: {ratio:.0f} (at least {GATE_RATIO})")
        print(f"100,000 flows on 512 hosts, first call: {flows_s:.2f} s (at most {GATE_FLOWS_S:g} s)")
    return 0 if ratio >= GATE_RATIO and flows_s <= GATE_FLOWS_S else 1


if __name__ == "__main__":
    sys.exit(main())
