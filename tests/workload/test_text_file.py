"""Text files: what is read of them, and their bounds."""

from pathlib import Path

import pytest

from ark.errors import ConfigError
from ark.workload import text_file
from ark.workload.table import Table
from ark.workload.text_file import read_text


def test_marks_and_line_ends_of_other_systems_go(tmp_path: Path) -> None:
    file = tmp_path / "t"
    file.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_text(file, what="text") == "a\nb\nc\n"


def test_only_the_first_lines(tmp_path: Path) -> None:
    file = tmp_path / "t"
    file.write_bytes(b"a\nb\nc")
    assert read_text(file, what="text", lines_max=2) == "a\nb"
    assert read_text(file, what="text", lines_max=9) == "a\nb\nc"


def test_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "t"
    file.write_bytes(b"a\n" * (1 << 20))
    monkeypatch.setattr(text_file, "FILE_BYTES_MAX", 1 << 20)
    with pytest.raises(ConfigError, match=r"is larger than 1.05 MB; split it, or cut it to fewer rows"):
        read_text(file, what="text")
    assert read_text(file, what="text", lines_max=3) == "a\na\na"


def test_tables_of_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ark.workload.table.ROWS_MAX", 3)
    monkeypatch.setattr("ark.workload.table._ROWS_A_BLOCK", 2)
    rows = "a\n1\n2\n3\n"
    assert len(Table("t.csv", rows).rows({}, keep_rest=True).text["a"]) == 3
    with pytest.raises(ConfigError, match=r"t.csv: has more than 3 rows; take only the first ones"):
        Table("t.csv", rows + "4\n").rows({}, keep_rest=True)


def test_blocks_are_joined_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ark.workload.table._ROWS_A_BLOCK", 2)
    rows = Table("t.csv", "a\n" + "".join(f"{n}\n" for n in range(7))).rows({}, keep_rest=True, limit=5)
    assert rows.text["a"] == ["0", "1", "2", "3", "4"]
    assert rows.line.tolist() == [2, 3, 4, 5, 6]
