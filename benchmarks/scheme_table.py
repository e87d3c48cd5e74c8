"""The scheme table that was measured with ConWeave's ns-3, by our packet engine: slowdowns side by side.

8 leaves x 16 hosts, 8 spines, 100 Gbit/s and 1 us everywhere, PFC, 9 MB of buffer, ECN from 100 to 400 KB,
packets of 1000 bytes, DCQCN without a window. Leaves 0-3 send to leaves 4-7, a random permutation,
``full`` from 8 hosts a leaf (as many as there are spines), ``half`` from 4: three waves, starts within 10 us.
Slowdown is FCT over that of a lone transfer. The draws of pairs and ports are not those of the reference.

    python benchmarks/scheme_table.py [--seeds 7,8,9] [--schemes ecmp,ark] [--columns full,half,timers,16MB]
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.fabric.generate import leaf_spine
from ark.fabric.roce import SPORTS
from ark.fabric.topology import Fabric
from ark.sim.packet.engine import PacketEngine
from ark.sim.packet.settings import PacketSettings, preset, with_timers
from ark.sim.schemes.catalogue import SchemeOptions, make_scheme
from ark.sim.schemes.scheme import Transfer

WAVES: Final = 3
WAVE_NS: Final = 20_000_000
"""From one wave to the next: all transfers of the one before are over, and DCQCN's state with them."""
START_NS: Final = 10_000
MB: Final = 10**6
DPORT: Final = 4791
FIRST_PORT: Final = 10_000
"""Ports of the reference's generator: from here on by one for each transfer of a host."""


@dataclass(frozen=True, slots=True)
class Column:
    """One set-up: hosts that send a leaf, bytes a transfer, DCQCN's timers."""

    hosts: int
    size_bytes: int
    settings: PacketSettings


@dataclass(frozen=True, slots=True)
class Row:
    """One scheme as we run it, and what was measured there: column to means and 99th percentiles."""

    label: str
    scheme: str
    measured: dict[str, str]
    queue_pairs: int = 1
    ports: str = "random"


CONWEAVE: Final = preset("conweave")
COLUMNS: Final = {
    "full": Column(8, 4 * MB, CONWEAVE),
    "half": Column(4, 4 * MB, CONWEAVE),
    "timers": Column(8, 4 * MB, with_timers(CONWEAVE, 50, 50, 55)),
    "16MB": Column(8, 16 * MB, CONWEAVE),
}
ROWS: Final = (
    Row(
        "ECMP",
        "ecmp",
        {
            "full": "3.63 3.44 3.45 / 6.4 6.0 6.7",
            "half": "2.42 / 5.24",
            "timers": "2.71 / 5.41",
            "16MB": "2.61 / 4.72",
        },
        ports="in turn",
    ),
    Row("random port a transfer", "ecmp", {"full": "3.43 / 5.99"}),
    Row("E-ECMP, 2 parts", "e-ecmp", {"full": "3.78 / 6.2"}, queue_pairs=2),
    Row("E-ECMP, 4 parts", "e-ecmp", {"full": "3.75 / 5.3", "half": "1.52 / 2.87"}, queue_pairs=4),
    Row("E-ECMP, 8 parts", "e-ecmp", {"full": "3.08 / 3.6"}, queue_pairs=8),
    Row("LetFlow", "letflow", {"full": "3.57 / 6.02", "half": "2.59 / 3.92", "timers": "2.63 / 5.47"}),
    Row("CONGA", "conga", {"full": "4.04 / 7.29", "half": "2.40 / 5.02", "timers": "2.94 / 5.89"}),
    Row("DRILL", "drill", {"full": "3.06 / 5.70", "half": "1.90 / 5.18", "timers": "2.27 / 4.69"}),
    Row(
        "ConWeave",
        "conweave",
        {
            "full": "2.81 2.66 2.82 / 4.5 3.8 4.0",
            "half": "1.71 / 2.63",
            "timers": "2.06 / 3.09",
            "16MB": "2.27 / 2.97",
        },
    ),
    Row(
        "port, uplinks reserved",
        "ark-uplinks",
        {"full": "2.46 2.79 2.36 / 5.9 5.1 5.1", "half": "1.81 / 3.56", "timers": "1.88 / 5.65"},
    ),
    Row(
        "port, both links reserved",
        "ark",
        {
            "full": "1.53 1.64 1.80 / 3.9 3.9 3.9",
            "half": "0.99 / 0.99",
            "timers": "1.31 / 2.66",
            "16MB": "1.42 / 2.60",
        },
    ),
    Row(
        "port, edge-coloured plan",
        "planned",
        {"full": "0.99 0.99 0.99 / 0.99", "half": "0.99 / 0.99", "timers": "0.99 / 0.99"},
    ),
)


def transfers_of(fabric: Fabric, column: Column, ports: str, seed: int) -> list[Transfer]:
    """Three waves of a random permutation."""
    rng = np.random.default_rng(seed)
    leaves = fabric.nics[-1].attachment + 1
    of_leaf = [[nic for nic in fabric.nics if nic.attachment == leaf] for leaf in range(leaves)]
    sources = [nic for leaf in of_leaf[: leaves // 2] for nic in leaf[: column.hosts]]
    targets = [nic for leaf in of_leaf[leaves // 2 :] for nic in leaf[: column.hosts]]
    found: list[Transfer] = []
    for wave in range(WAVES):
        starts = np.sort(rng.integers(0, START_NS, len(sources))) + wave * WAVE_NS
        drawn = rng.integers(SPORTS.start, SPORTS.stop, len(sources))
        pairs = zip(rng.permutation(len(sources)), rng.permutation(len(targets)), strict=True)
        for number, (source, target) in enumerate(pairs):
            port = FIRST_PORT + wave if ports == "in turn" else int(drawn[number])
            ends = sources[source], targets[target]
            found.append(Transfer(len(found), *ends, column.size_bytes, int(starts[number]), port, DPORT))
    return found


def slowdowns(fabric: Fabric, row: Row, column: Column, seed: int) -> NDArray[np.float64]:
    """Slowdown of each transfer of one run."""
    transfers = transfers_of(fabric, column, row.ports, seed)
    options = SchemeOptions(queue_pairs=row.queue_pairs)
    scheme = make_scheme(row.scheme, fabric, options, transfers=transfers, seed=seed, engine="packet")
    outcome = PacketEngine(fabric, transfers, scheme, column.settings, seed=seed).run()
    return outcome.fct_ns / _lone_ns(fabric, column)


def _lone_ns(fabric: Fabric, column: Column) -> float:
    """FCT of a lone transfer, by the same engine."""
    nics = fabric.nics
    lone = [Transfer(0, nics[0], nics[-1], column.size_bytes, 0, SPORTS.start, DPORT)]
    scheme = make_scheme("ecmp", fabric, SchemeOptions(), transfers=lone, seed=0, engine="packet")
    settings = replace(column.settings, whole_nanoseconds=False)
    return float(PacketEngine(fabric, lone, scheme, settings).run().fct_ns[0])


def print_column(name: str, rows: Sequence[Row], seeds: Sequence[int]) -> None:
    """One column of the table: means of all seeds, then 99th percentiles, ours and theirs."""
    fabric = leaf_spine(8, 8, 16, delay_ns=1000)
    column = COLUMNS[name]
    print(f"\n{name}\n{'scheme':26} {'ours: mean / p99':40} measured there")
    for row in rows:
        if name not in row.measured:
            continue
        runs = [slowdowns(fabric, row, column, seed) for seed in seeds]
        means = " ".join(f"{run.mean():.2f}" for run in runs)
        tails = " ".join(f"{np.percentile(run, 99):.1f}" for run in runs)
        print(f"{row.label:26} {f'{means} / {tails}':40} {row.measured[name]}", flush=True)


def main() -> None:
    """Print the columns asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", default="7,8,9")
    parser.add_argument("--schemes", default="")
    parser.add_argument("--columns", default=",".join(COLUMNS))
    options = parser.parse_args()
    wanted = options.schemes.split(",") if options.schemes else [row.scheme for row in ROWS]
    for name in options.columns.split(","):
        rows = [row for row in ROWS if row.scheme in wanted]
        print_column(name, rows, [int(seed) for seed in options.seeds.split(",")])


if __name__ == "__main__":
    main()
