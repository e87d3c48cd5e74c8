import json
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress

from ark.cli.output import Remaining, print_json, print_table, progress


def test_json_is_one_object_that_any_reader_takes(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(
        {"nan": float("nan"), "numbers": np.arange(2), "pair": (1, np.float64(2.5)), "none": None, "é": True}
    )
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"nan": None, "numbers": [0, 1], "pair": [1, 2.5], "none": None, "é": True}


def test_tables_take_no_text_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("a [b]title[/b]", ["name", "seconds"], [["[red]x", "1.5"], [], ["y", "−2"]], caption="[i]")
    shown = capsys.readouterr().out
    assert "a [b]title[/b]" in shown
    assert "[red]x" in shown
    assert "[i]" in shown
    assert shown.splitlines()[5].strip() == ""  # the space between two groups


def test_progress_goes_to_stderr_line_by_line_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter((0.0, 20.0, 21.0, 22.0, 32.0, 33.0, 46.0))  # the first has waited for the worker to start
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with progress(10, "Simulating", workers=2) as advance:
        for piece in "abcdef":
            advance(piece)
    assert capsys.readouterr().err.splitlines() == [
        "Simulating: 1 of 10 done (a)",
        "Simulating: 4 of 10 done (d), ETA 24 s",  # 3 more in the 12 s since the first, and 6 to go
        "Simulating: 6 of 10 done (f), ETA 21 s",  # 5 in 26 s
    ]


def test_a_bar_has_no_eta_before_enough_is_done() -> None:
    now = 20.0
    bar = Progress(get_time=lambda: now, console=Console(file=StringIO()))
    task = bar.add_task("", total=10)
    shown = []
    for _ in range(4):
        now += 1
        bar.advance(task)
        shown.append(str(Remaining(3).render(bar.tasks[0])))
    assert shown == ["-:--:--", "-:--:--", "0:00:07", "0:00:06"]
