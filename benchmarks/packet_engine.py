"""How many data packets the packet engine simulates per CPU second, and how long its compilation takes.

The workload is the paper's at QPS 25, sizes and time divided by 50, hashed ECMP, payload 9000, with DCQCN,
ECN and PFC on. A data packet crosses 4 links and its ACK 4 more: 8 to 9 events of about 100 ns. CPU time of
this process, best of n: wall time on a shared machine is noise.

    python benchmarks/packet_engine.py [--repeat 5] [--requests 300] [--compilation]
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time

from ark.fabric.generate import leaf_spine, paper_fabric
from ark.fabric.topology import Fabric
from ark.sim.experiment import Experiment
from ark.sim.offered import transfers_of
from ark.sim.packet.engine import PacketEngine
from ark.sim.packet.settings import PacketSettings, preset
from ark.sim.schemes.catalogue import SchemeOptions, make_scheme
from ark.sim.schemes.scheme import Transfer
from ark.sim.traffic import PresetWorkload, make_traffic

SCALE = 50.0


def offered(fabric: Fabric, requests: int, qps: float) -> list[Transfer]:
    """The transfers of the scaled workload."""
    experiment = Experiment(fabric=fabric)
    traffic = make_traffic(
        PresetWorkload(requests=requests),
        fabric,
        qps=qps,
        seed=0,
        kv=experiment.kv,
        latency=experiment.latency,
        ttft="additive",
        layers=1,
        scale=SCALE,
    )
    return transfers_of(traffic.flows, fabric)


def measure(
    fabric: Fabric, transfers: list[Transfer], settings: PacketSettings, repeat: int
) -> dict[str, float | int | str]:
    """Best of ``repeat`` runs in CPU time."""
    best = float("inf")
    for _ in range(repeat):
        scheme = make_scheme("ecmp", fabric, SchemeOptions(), transfers=transfers, seed=0)
        engine = PacketEngine(fabric, transfers, scheme, settings)
        begin = time.process_time()
        engine.run()
        best = min(best, time.process_time() - begin)
    world = engine.simulation.world
    packets = int(world.flows["sent_packets"][: engine.simulation.flows].sum())
    return {
        "fabric": fabric.name,
        "payload_bytes": settings.payload_bytes,
        "data_packets": packets,
        "events_per_packet": round(int(world.clock.events) / packets, 2),
        "ecn_marks": int(world.clock.marks),
        "cpu_s": round(best, 3),
        "packets_per_cpu_s": round(packets / best),
        "ns_per_event": round(1e9 * best / int(world.clock.events), 1),
        "packet_records": int(world.clock.made),
        "bytes_per_flow": world.dtype["flows"].base.itemsize,
        "bytes_per_packet_under_way": world.dtype["packets"].base.itemsize,
        "bytes_per_link": world.dtype["links"].base.itemsize,
    }


def compilation_s() -> float:
    """CPU seconds of a first run in an empty cache, less those of a second one."""
    code = (
        "from ark.fabric.generate import paper_fabric as f\n"
        "from ark.sim.packet.engine import PacketEngine as E\n"
        "from ark.sim.packet.settings import preset\n"
        "from ark.sim.schemes.ecmp import Ecmp\n"
        "from ark.sim.schemes.scheme import Transfer as T\n"
        "x = f(); t = [T(0, x.nics[0], x.nics[8], 9000, 0, 50000, 4791)]\n"
        "E(x, t, Ecmp(x, t), preset('simai')).run()\n"
    )
    with tempfile.TemporaryDirectory() as cache:
        times = []
        for _ in range(2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": cache}, check=True
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return times[0] - times[1]


def main() -> None:
    """Print the measurements as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--compilation", action="store_true", help="measure the first compilation too")
    options = parser.parse_args()
    settings = preset("simai")
    small = paper_fabric()
    large = leaf_spine(16, 16, 32)
    rows = [
        measure(small, offered(small, options.requests, 25.0), settings, options.repeat),
        # The same load per uplink: 8 prefill leaves with 16 uplinks each instead of one with 4.
        measure(large, offered(large, 10 * options.requests, 25.0 * 32), settings, options.repeat),
    ]
    result: dict[str, object] = {"machine": platform.processor() or platform.machine(), "results": rows}
    if options.compilation:
        result["compilation_cpu_s"] = round(compilation_s(), 1)
    result["max_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
