"""A record of finished transfers as a flow table, which ``ark simulate --flows`` can run again.

Lines wait in memory and are written by a thread, so that no client waits for a disk.
"""

import logging
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from ark.agent.logs import log
from ark.agent.service import Served
from ark.agent.text_file import refuse_irregular
from ark.client.messages import Lanes
from ark.errors import ConfigError, Fault

HEADER: Final = "id,src,dst,size_bytes,start_ns,sport,dport,path,proto,kind,end_ns,origin_ns\n"

LINES_MAX: Final = 100_000
"""Lines that wait for the disk, about 10 MB. Full: further ones are dropped and counted."""

LINE_MAX: Final = 4096
"""Bytes of a line that are looked at in a file that is there already."""

WRITE_LINES: Final = 256
"""Lines that are enough for a write; fewer are written with the next ones, or at the end."""


class Record:
    """Writes transfers to a CSV file, behind what it holds already.

    Times count from the beginning of the file, ``origin_ns`` of the wall clock: add the differences of the
    origins to join the files of several hosts.

    Raises
    ------
    ConfigError
        If the file can't be written, or holds anything but a record.
    """

    def __init__(self, path: Path) -> None:
        self.dropped = 0
        self.written = 0
        self._path = path
        self._failing = False
        refuse_irregular(path, "a record")
        try:
            self._origin_ns = _origin_ns(path)
            self._file = path.open("ab", buffering=0)  # what the disk has not taken is not tried again later
            if self._file.tell() == 0:
                self._append(HEADER)
        except OSError as error:
            raise ConfigError(Fault(str(path), f"can't be written: {error.strerror}; set record")) from None
        self._lines: list[str] = []
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="ark-record")
        self._writing: Future[None] | None = None

    def finished(self, served: Served, epoch: int) -> None:
        """Take in a transfer that is over."""
        request = served.request
        if isinstance(request, Lanes):
            return
        if len(self._lines) >= LINES_MAX:
            self.dropped += 1
            return
        pair, origin_ns = served.pair, self._origin_ns
        start_ns, end_ns = (max(0, wall_ns - origin_ns) for wall_ns in (served.began_ns, time.time_ns()))
        ports = ";".join(str(lane.source_port) for lane in served.lanes if lane.source_port)
        paths = ";".join(map(str, served.paths))
        self._lines.append(
            f"{epoch}.{served.flow},{pair.source.name},{pair.target.name},{request.size_bytes},{start_ns},"
            f"{ports},{request.dport},{paths},{request.proto},{served.kind},{end_ns},{origin_ns}\n"
        )
        if len(self._lines) >= WRITE_LINES and (self._writing is None or self._writing.done()):
            self._writing = self._writer.submit(self._write, self._take())

    def close(self) -> None:
        """Write the rest and close the file."""
        self._writer.submit(self._write, self._take()).result()
        self._writer.shutdown()
        self._file.close()

    def _take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def _write(self, lines: list[str]) -> None:
        try:
            self._append("".join(lines))
            self.written += len(lines)
            self._failing = False
        except OSError as error:
            self.dropped += len(lines)
            if not self._failing:
                log(logging.ERROR, "transfers are not recorded", file=str(self._path), detail=str(error))
            self._failing = True

    def _append(self, text: str) -> None:
        """Write all of it, or nothing: a full disk leaves no part of a line."""
        data = memoryview(text.encode())
        before = os.fstat(self._file.fileno()).st_size
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            with suppress(OSError):
                self._file.truncate(before)
            raise


def _origin_ns(path: Path) -> int:
    """Where the times of a file begin: as its first row says, or now.

    Raises
    ------
    ConfigError
        If the file is no record: nothing is appended to a file of another kind.
    """
    if path.exists():
        with path.open("rb") as file:
            head, row = file.readline(LINE_MAX), file.readline(LINE_MAX)
        if head not in {b"", HEADER.encode()}:
            raise ConfigError(Fault(str(path), "is no record of transfers; set record to a new file"))
        origin = row.strip().rpartition(b",")[2][:19]
        if origin.isdigit():
            return int(origin)
    return time.time_ns()
