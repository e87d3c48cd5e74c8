"""The file of learned paths: replaced as a whole, and kept as its watches see the fabric."""

import os
import threading
from pathlib import Path

import msgspec
import pytest
from tests.discover.test_files import ONE

from ark.cli.discover_watch import Kept, watches_of
from ark.discover.learned import LearnedFile, LearnedMap, read_learned
from ark.discover.numbering import OrderNumbering
from ark.discover.paths_file import write_paths
from ark.discover.watch import Watch
from ark.errors import ConfigError

MANY = tuple(msgspec.structs.replace(ONE, target=f"h{number}") for number in range(300))


def read(path: Path) -> tuple[LearnedMap, ...]:
    return read_learned(path.read_text("utf-8"), str(path)).maps


def test_a_reader_finds_the_old_file_or_the_new_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "paths.json"
    write_paths(path, MANY, "fabric")
    done = threading.Event()

    def write() -> None:
        for count in (1, 300, 2, 300, 3):
            write_paths(path, MANY[:count], "fabric")
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    while not done.is_set():
        seen.add(len(read(path)))
    writer.join()
    assert seen <= {1, 2, 3, 300}
    assert len(read(path)) == 3
    assert list(tmp_path.iterdir()) == [path]


def test_rights_and_links_stay_as_they_were(tmp_path: Path) -> None:
    path, link = tmp_path / "paths.json", tmp_path / "link.json"
    path.write_text("{}")
    path.chmod(0o640)
    link.symlink_to(path)
    write_paths(link, [ONE], "fabric")
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert read(path) == (ONE,)


def test_what_is_no_regular_file_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text("utf-8")))
    reader.start()
    write_paths(pipe, [ONE], "fabric")
    reader.join()
    assert read_learned(found[0], "pipe").maps == (ONE,)
    assert pipe.is_fifo()


def test_what_cannot_be_written_is_one_clear_line_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no/paths\.json: cannot be written: No such file or directory"):
        write_paths(tmp_path / "no" / "paths.json", [ONE], "fabric")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "paths.json"


def kept(path: Path, *maps: LearnedMap) -> tuple[Kept, list[Watch]]:
    write_paths(path, maps, "fabric")
    watches = watches_of(maps, {}, OrderNumbering(), now=0, interval_ns=10**9)
    return Kept(path, LearnedFile("ark-paths", 1, "fabric", maps), watches), watches


def test_the_file_says_which_maps_are_in_doubt(path: Path) -> None:
    """Of two maps of one pair, and one that cannot be watched, that one which a counter speaks against."""
    other = msgspec.structs.replace(ONE, dport=9000)
    single = msgspec.structs.replace(ONE, target="h1", influence="one-path", varying=())
    keeper, watches = kept(path, ONE, other, single)
    assert len(watches) == 2
    before = path.stat().st_ino
    keeper.write_if_due()
    assert path.stat().st_ino == before  # nothing has changed
    watches[1].counted(0, expected_bytes=1000, counted_bytes=0, now=0)
    keeper.changed()
    keeper.write_if_due()
    assert read(path) == (ONE, msgspec.structs.replace(other, state="suspect"), single)


def test_changes_at_once_are_written_once_and_the_last_ones_at_the_end(path: Path) -> None:
    keeper, watches = kept(path, *MANY[:2])
    watches[0].counted(0, expected_bytes=1000, counted_bytes=0, now=0)
    keeper.changed()
    keeper.write_if_due()
    once = path.stat().st_ino
    watches[1].counted(0, expected_bytes=1000, counted_bytes=0, now=0)
    keeper.changed()
    keeper.write()
    assert path.stat().st_ino != once
    assert [one.state for one in read(path)] == ["suspect", "suspect"]


def test_a_file_that_cannot_be_written_ends_no_watch(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keeper, _ = kept(path, ONE)
    path.unlink()
    path.parent.rmdir()
    keeper.changed()
    keeper.write_if_due()
    keeper.write_if_due()
    assert capsys.readouterr().err.count("agents go on with what they know") == 1
