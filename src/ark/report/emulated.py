"""What a run of the lab leaves in its output folder: the tables and figures of simulations, and the checks.

All of it is labelled "emulated": real kernels, sockets and agents, at rates that one machine can carry.
"""

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ark.lab.outcome import Emulated, LinkBytes
from ark.lab.scaled import Scaled
from ark.report.beside import beside_figure, beside_rows, beside_sentences
from ark.report.curves import times_figure
from ark.report.link_bytes import link_bytes_figure
from ark.report.page import Shown, Story, page
from ark.report.provenance import provenance
from ark.report.runs import Point, Runs
from ark.report.spines import spines_figure
from ark.report.style import percent, point_name, save_png
from ark.report.tables import write_results
from ark.report.write import REPORT, Folder
from ark.sim.results import Cell, RunResult

CHECKS: Final = (
    "scheme",
    "qps",
    "seed",
    "transfers",
    "failed",
    "strayed",
    "elsewhere_share",
    "uncounted",
    "retransmits",
    "busy_share",
    "lab_busy_share",
    "late_p95_s",
    "reserve_mean_s",
    "spoiled",
    "wrong",
)
"""The columns of ``checks.csv``, one row a run."""


@dataclass(slots=True)
class Emulation:
    """All runs of one experiment in the lab, beside their simulations."""

    fabric: Scaled
    runs: Runs = field(default_factory=Runs)
    twin: Runs = field(default_factory=Runs)
    checks: list[dict[str, Cell]] = field(default_factory=list)
    counted: dict[tuple[str, Point], LinkBytes] = field(default_factory=dict)
    wrongs: list[str] = field(default_factory=list)

    def add(self, one: Emulated, simulated: RunResult) -> None:
        """Take in one run and its twin."""
        result = one.result
        self.runs.add(result)
        self.twin.add(simulated)
        if result.seed == min(seed for _, _, seed in self.runs.kept):
            self.counted[result.scheme, result.qps] = one.bytes
        self.checks.append(check_row(one))
        name = f"{result.scheme}, {result.qps:g} requests/s, seed {result.seed}"
        self.wrongs += [f"{name}: {wrong}" for wrong in one.wrongs()]

    def remarks(self) -> list[str]:
        """What a reader must know before using a number."""
        told = list(self.wrongs)
        spoiled = [row for row in self.checks if row["spoiled"]]
        if spoiled:
            worst = max(spoiled, key=lambda row: (float(row["late_p95_s"]), float(row["busy_share"])))
            told.append(
                f"In {len(spoiled)} of {len(self.checks)} runs this machine was the bottleneck, or as good "
                f"as that (the worst: {worst['spoiled']}): times there may say more about it than about "
                "the network. Repeat them on an idle machine, or at a lower --rate."
            )
        return told

    def verdict(self) -> str:
        """One sentence on bytes, paths and claims."""
        transfers = sum(int(row["transfers"]) for row in self.checks)
        if self.wrongs:
            return f"Not all is right: {self.wrongs[0]}."
        most = max((float(row["elsewhere_share"]) for row in self.checks), default=0.0)
        return (
            f"All {transfers:,} transfers arrived whole, with the right checksum; at most "
            f"{percent(most, 2)} of a run's bytes were beside the chosen paths; no claim was left."
        )

    def cpu(self) -> str:
        """One sentence on the machine."""
        busy = [float(row["busy_share"]) for row in self.checks]
        own = [float(row["lab_busy_share"]) for row in self.checks]
        late = max(float(row["late_p95_s"]) for row in self.checks)
        return (
            f"CPU: at most {percent(max(busy))} of all cores busy, at most {percent(max(own))} by processes "
            f"of the lab; senders woke up {late * 1e3:.1f} ms late at most (95th "
            "percentile)."
        )

    def facts(self) -> list[tuple[str, str]]:
        """What the page says about checks and simulation."""
        return [
            ("Checks", self.verdict()),
            ("Machine", self.cpu()),
            ("Beside simulation", " ".join(beside_sentences(self.runs, self.twin))),
        ]


def check_row(one: Emulated) -> dict[str, Cell]:
    """One run's row of ``checks.csv``."""
    result = one.result
    cells: dict[str, Cell] = {
        "scheme": result.scheme,
        "qps": "" if result.qps is None else result.qps,
        "seed": result.seed,
        "transfers": result.requests,
        "failed": len(one.failed),
        "strayed": one.strayed,
        "elsewhere_share": one.elsewhere_share,
        "uncounted": one.uncounted,
        "retransmits": one.retransmits,
        "busy_share": one.busy.busy_share,
        "lab_busy_share": one.busy.lab_share,
        "late_p95_s": one.late_p95_s,
        "reserve_mean_s": float(result.reserve_ns.mean()) / 1e9,
        "spoiled": one.spoiled,
        "wrong": "; ".join(one.wrongs()),
    }
    return cells | {f"answered_{kind}": count for kind, count in one.kinds.items()}


def write(folder: Folder, emulation: Emulation, story: Story) -> None:
    """Write results, checks, counters, figures, configuration and the report."""
    runs, twin, path = emulation.runs, emulation.twin, folder.path
    write_results([*runs.rows(), *twin.rows()], path / "results.csv")
    _write_rows(path / "checks.csv", CHECKS, emulation.checks)
    _write_link_bytes(path / "link_bytes.csv", emulation)
    shown = _figures(emulation)
    for name, figure in shown.items():
        save_png(figure.figure, path / name)
    config = json.dumps({"made_with": provenance(), "experiment": story.config}, indent=2, default=str)
    (path / "config.json").write_text(f"{config}\n", encoding="utf-8")
    (path / REPORT).write_text(page(runs, story, list(shown.values())), encoding="utf-8")


def as_object(emulation: Emulation) -> dict[str, object]:
    """The part of the JSON object that only the lab has."""
    return {
        "right": not emulation.wrongs,
        "verdict": emulation.verdict(),
        "machine": emulation.cpu(),
        "remarks": emulation.remarks(),
        "beside": beside_rows(emulation.runs, emulation.twin),
        "checks": emulation.checks,
    }


def _figures(emulation: Emulation) -> dict[str, Shown]:
    runs = emulation.runs
    point = runs.main_point
    counted = {scheme: emulation.counted[scheme, point] for scheme in runs.schemes}
    about = f"{point_name(point, runs.load(point))}, seed {runs.seeds[0]}"
    return {
        "fig2_fct.png": Shown(
            times_figure(runs, "fct", None),
            "Completion times of transfers.",
            "Emulated: mean and 95th percentile of each scheme, and by how much they are lower than ECMP's.",
            "Charts of mean and 95th percentile of flow completion time for each scheme.",
        ),
        "beside.png": Shown(
            beside_figure(runs, emulation.twin, point),
            "Emulated beside simulated.",
            "The same transfers with real bytes, and as fluids that share links fairly and whose agents hear "
            "of each other at once.",
            "Bars of mean and 95th percentile of flow completion time, emulated and simulated.",
        ),
        "fig3_spines.png": Shown(
            spines_figure(runs, point),
            "Transfers on each spine.",
            "Emulated: how many transfers each spine carries over time, in the run of the first seed.",
            "Heat maps of the number of transfers on each spine over time, one for each scheme.",
        ),
        "link_bytes.png": Shown(
            link_bytes_figure(emulation.fabric.lab, counted, about),
            "Bytes into each spine.",
            "From the counters of the emulated switches: how much of the rate of the links into each spine "
            "was used over time, in the run of the first seed.",
            "Heat maps of the used share of the links into each spine over time, one for each scheme.",
        ),
    }


def _write_rows(path: Path, columns: tuple[str, ...], rows: list[dict[str, Cell]]) -> None:
    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _write_link_bytes(path: Path, emulation: Emulation) -> None:
    """The counters over time of the first seed: bytes since the start of the run, headers included."""
    links = emulation.fabric.lab.links
    rows: list[dict[str, Cell]] = [
        {
            "scheme": scheme,
            "qps": "" if point is None else point,
            "time_s": round(float(time_s), 4),
            "source": links[link].source,
            "target": links[link].target,
            "sent_bytes": int(counted.sent[row, column]),
        }
        for (scheme, point), counted in emulation.counted.items()
        for row, time_s in enumerate(counted.time_s)
        for column, link in enumerate(counted.links)
    ]
    _write_rows(path, ("scheme", "qps", "time_s", "source", "target", "sent_bytes"), rows)
