"""Everything that a command leaves in its output folder, and nothing else of that folder touched."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ark.errors import ConfigError
from ark.report import paper
from ark.report.bars import breakdown_figure
from ark.report.curves import times_figure
from ark.report.engines import all_rows
from ark.report.page import Shown, Story, page
from ark.report.runs import Runs
from ark.report.spines import spines_figure
from ark.report.style import save_png
from ark.report.tables import flow_file, write_flows, write_results
from ark.sim.results import RunResult

FLOWS: Final = "flows"
REPORT: Final = "report.html"
_OUR_FLOW_FILE: Final = re.compile(r"[a-z0-9-]+_(?:qps[0-9.e+-]+|own-times)_seed[0-9]+\.csv")


class Folder:
    """The output folder: made at once, so that a run of an hour does not end at a folder that can't be made.

    Flow tables are written as runs come in (of the first seed only: one table a run would be most of the
    output), the rest by :meth:`finish`.
    """

    def __init__(self, path: Path, *, first_seed: int = 0) -> None:
        self.path = path
        self.first_seed = first_seed
        try:
            (path / FLOWS).mkdir(parents=True, exist_ok=True)
            probe = path / ".ark-can-write"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ConfigError(
                f'--out: "{path}" can\'t be a folder to write to ({error.strerror}); name another one'
            ) from error
        for old in self._old_flow_files():
            old.unlink(missing_ok=True)

    def take(self, result: RunResult) -> None:
        """Write the flow table of a run of the first seed."""
        if result.seed == self.first_seed:
            write_flows(result, self.path / FLOWS / flow_file(result))

    def finish(self, runs: Runs, story: Story) -> None:
        """Write results, figures, table 1, configuration and the report."""
        write_results(all_rows(runs, story.twin), self.path / "results.csv")
        shown = list(_figures(runs, with_paper=story.table1 is not None))
        for name, figure in zip(_names(runs), shown, strict=True):
            if name:
                save_png(figure.figure, self.path / name)
        if story.table1 is not None:
            self._write_json("table1.json", story.table1.as_json())
        self._write_json("config.json", story.config)
        self._write(REPORT, page(runs, story, shown))

    def _write_json(self, name: str, value: dict[str, object]) -> None:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
        self._write(name, f"{text}\n")

    def _write(self, name: str, text: str) -> None:
        # Names of the user's files that are no UTF-8 stand in it escaped.
        (self.path / name).write_text(text, encoding="utf-8", errors="backslashreplace")

    def _old_flow_files(self) -> Iterator[Path]:
        """Flow tables of an earlier run into the same folder: its other schemes would look like ours."""
        if (self.path / "config.json").exists() and (self.path / "results.csv").exists():
            yield from (file for file in (self.path / FLOWS).iterdir() if _OUR_FLOW_FILE.fullmatch(file.name))


def _names(runs: Runs) -> list[str]:
    """File names of :func:`_figures`, empty for one that is in the report only."""
    return ["fig2_fct.png", "fig3_spines.png", *(["fig4_ttft.png", ""] if runs.has_ttft else [])]


def _figures(runs: Runs, *, with_paper: bool) -> Iterator[Shown]:
    quoted = paper.REDUCTIONS if with_paper else None
    point = runs.main_point
    stars = (
        " Stars: the reductions that the paper's text states." if with_paper and len(runs.points) > 1 else ""
    )
    yield Shown(
        times_figure(runs, "fct", quoted),
        "Completion times of transfers.",
        f"FCT of each scheme, mean and 95th percentile, and by how much it is lower than ECMP's.{stars}",
        "Charts of mean and 95th percentile of flow completion time for each scheme; the numbers are in the "
        "table above.",
    )
    yield Shown(
        spines_figure(runs, point),
        "Transfers on each spine.",
        "How many transfers each spine carries over time, in the run of the first seed; dark means crowded. "
        "All panels share one scale. A scheme that treats all spines as one has no panel.",
        "Heat maps of the number of transfers on each spine over time, one for each scheme.",
    )
    if runs.has_ttft:
        yield Shown(
            times_figure(runs, "ttft", quoted),
            "Time to first token.",
            f"The same for TTFT, which contains prefill and the first decode step.{stars}",
            "Charts of mean and 95th percentile of time to first token for each scheme; the numbers are in "
            "the table above.",
        )
        yield Shown(
            breakdown_figure(runs, point),
            "Where the time goes.",
            "Only the crossed orange part is the network's to save; the hatched blue part is the bytes "
            "themselves at line rate.",
            "Bars of mean time to first token for each scheme, split into its parts.",
        )
