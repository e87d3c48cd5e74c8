import json

import numpy as np
import pytest

from ark.cli.output import print_json, print_table, progress


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
    clock = iter((0.0, 4.0, 11.0, 12.0))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with progress(4, "Simulating") as advance:
        for piece in ("a", "b", "c"):
            advance(piece)
    assert capsys.readouterr() == ("", "Simulating: 2 of 4 done (b), ETA 11 s\n")
