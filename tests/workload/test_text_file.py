"""Text files: what is read of them, and their bounds."""

import os
from pathlib import Path
from threading import Thread

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


def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "PIPE_WAIT_MS", 1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match=r"pipe: cannot be read: it is a pipe, and nobody writes to it$"):
        read_text(tmp_path / "pipe", what="text")


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    text = "a line\n" * 300_000  # more than a block, and than a pipe holds
    writer = Thread(target=(tmp_path / "pipe").write_text, args=(text,))
    writer.start()
    assert read_text(tmp_path / "pipe", what="text") == text
    writer.join()


def test_a_pipe_may_be_open_long_before_its_first_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_open, source = os.pipe()
    set_blocking = os.set_blocking

    def then_write(file: int, blocking: bool) -> None:  # called once the pipe was found to be empty
        set_blocking(file, blocking)
        os.write(source, b"a\n")
        os.close(source)

    monkeypatch.setattr(os, "set_blocking", then_write)
    assert read_text(Path(f"/dev/fd/{kept_open}"), what="text") == "a\n"
    os.close(kept_open)


def test_a_device_without_end_is_refused_at_its_first_block() -> None:
    with pytest.raises(ConfigError, match=r"/dev/zero: is a binary file; expected text"):
        read_text(Path("/dev/zero"), what="text", lines_max=None)


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
