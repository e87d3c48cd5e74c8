import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.agent.cohort import cohort

from ark.agent.record import HEADER, Record
from ark.errors import ConfigError
from ark.workload import read_flows

GB = 10**9


def test_finished_transfers_are_a_flow_table(folder: Path) -> None:
    more = 'record = "flows.csv"\n[policy]\nhold = "0"\nmin_bytes = "1 MB"\n'
    with cohort(folder, 3, more=more) as three:
        client = three.client("h0")
        paths = []
        for size in (GB, 1000, 2 * GB):
            with client.transfer("h2", size, dport=4791) as transfer:
                paths.append("" if transfer.path is None else str(transfer.path))
        with client.lanes("h2", 4791):
            pass
        three.until(lambda: not three["h0"].service.transfers)
        three.stop("h0")
    flows = read_flows(folder / "flows.csv")
    assert flows.size_bytes.tolist() == [GB, 1000, 2 * GB]
    assert flows.src == ["h0"] * 3
    assert flows.dst == ["h2"] * 3
    assert [path or "" for path in flows.path or []] == paths
    assert 0 <= flows.start_ns[0] <= flows.start_ns[1] <= flows.start_ns[2] < 60 * 10**9


def test_a_record_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(HEADER + "1.1,h0,h2,5,7,,4791,,17,steered,9,123\n")
    record = Record(path)
    assert record._origin_ns == 123
    record.close()
    assert path.read_text().count("id,") == 1


@pytest.mark.parametrize("content", [b'kind = "leaf-spine"\n', b"\xff\xfe\x00", bytes(10_000)])
def test_nothing_is_appended_to_a_file_that_is_no_record(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "flows.csv"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"flows\.csv: is no record of transfers"):
        Record(path)
    assert path.read_bytes() == content


def test_a_record_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"flows\.csv: can't be written: No such file or directory"):
        Record(tmp_path / "nowhere" / "flows.csv")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="pipe: is no regular file"):
        Record(tmp_path / "pipe")


@contextmanager
def files_up_to(size_bytes: int) -> Iterator[None]:
    """For this process the disk is full once a file has so many bytes."""
    before, old = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)


def test_what_a_full_disk_does_not_take_is_counted_and_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    record = Record(path)
    record._write(["1,first\n"])
    whole = path.read_bytes()
    with files_up_to(len(whole) + 10):
        record._write(["2,too long for the disk\n"] * 3)
        record._write(["3,still too long\n"])
    assert (record.written, record.dropped) == (1, 4)
    assert path.read_bytes() == whole
    record._write(["4,room again\n"])
    record.close()
    assert path.read_bytes() == whole + b"4,room again\n"
