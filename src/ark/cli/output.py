"""What every subcommand prints: one JSON object or a table on stdout, progress with an ETA on stderr.

Stdout carries results only, so that it can be piped; whatever is said to the person who waits goes to stderr.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

LINE_EVERY_S: Final = 10.0
"""How often progress prints a line where stderr is a file or a pipe and a bar cannot be drawn."""

ETA_AFTER: Final = 3
"""Fewer pieces than this say nothing of the rest."""

Advance = Callable[[str], None]
"""Says that one more piece of work is done, and which."""


def print_json(value: Mapping[str, object]) -> None:
    """Print one JSON object on stdout; numbers that JSON does not know (NaN, infinity) become null."""
    print(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str | None = None
) -> None:
    """Print a table on stdout: text to the left, numbers to the right; no text is taken for markup.

    A row equal to ``()`` draws a line between groups of rows.
    """
    numeric = [all(_looks_numeric(row[i]) for row in rows if row) for i in range(len(columns))]
    table = Table(
        title=Text(title),
        caption=None if caption is None else Text(caption),
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.title_style = "bold"
    table.caption_justify = "left"
    for name, right in zip(columns, numeric, strict=True):
        table.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in rows:
        if row:
            table.add_row(*(Text(str(cell)) for cell in row))
        else:
            table.add_section()
    Console(highlight=False).print(table)


def note(text: str) -> None:
    """Say one line to the person who waits, on stderr."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def progress(total: int, what: str, *, workers: int = 1) -> Iterator[Advance]:
    """Show on stderr how much of ``total`` pieces of work is done and how long the rest will take.

    A terminal gets a bar; a file or a pipe gets a line now and then. There is no ETA before each of the
    ``workers`` has done two pieces: until then, their start is most of the time.
    """
    eta_after = max(ETA_AFTER, 2 * workers)
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _line_by_line(total, what, eta_after)
        return
    bar = Progress(
        TextColumn("{task.fields[what]}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        Remaining(eta_after),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task("", total=total, what=what)
        yield lambda done: bar.update(task, advance=1, description=done)


class Remaining(TimeRemainingColumn):
    """The ETA, once ``after`` pieces are done."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def render(self, task: Task) -> Text:
        """The time left, or dashes."""
        return Text("-:--:--") if task.completed < self._after else super().render(task)


def _line_by_line(total: int, what: str, eta_after: int) -> Advance:
    shown = time.monotonic()
    first_at = 0.0
    done = 0

    def advance(piece: str) -> None:
        nonlocal shown, first_at, done
        done += 1
        now = time.monotonic()
        if done == 1:
            first_at = now
        if now - shown >= LINE_EVERY_S:
            shown = now
            left_s = (now - first_at) / (done - 1) * (total - done) if done >= eta_after else None
            eta = "" if left_s is None else f", ETA {left_s:.0f} s"
            note(f"{what}: {done} of {total} done ({piece}){eta}")

    return advance


def _looks_numeric(cell: object) -> bool:
    return isinstance(cell, int | float) or str(cell)[:1] in "+-−–0123456789"


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # a NumPy array or scalar; this module does not import NumPy for it
        return _plain(value.tolist())
    return str(value)
