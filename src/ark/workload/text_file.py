"""Text files of other people's, read whole but with a bound, and refused where they are no text.

The usual accidents get a message of their own: a web page saved in place of the file, an archive that was not
unpacked, a Git LFS pointer, a wrong encoding.
"""

import os
import select
import stat
from io import BufferedReader
from pathlib import Path
from typing import Final

from ark.errors import ConfigError, Fault
from ark.units import format_size

FILE_BYTES_MAX: Final = 1 << 30
"""Largest file that is read; it takes a few times as much memory while it is parsed."""

PIPE_WAIT_MS: Final = 2_000
"""How long a named pipe may be without a writer; opening it the usual way would wait for one forever."""

_BLOCK: Final = 1 << 20
_ARCHIVES: Final = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"PAR1": "Parquet",
}
_OTHER_ENCODINGS: Final = (b"\xff\xfe", b"\xfe\xff")


def read_text(path: Path, *, what: str, lines_max: int | None = None) -> str:
    """The text of a file: UTF-8, without byte-order mark, lines ending in ``\\n``.

    Parameters
    ----------
    path : Path
    what : str
        What the file should be, for messages: "a trace".
    lines_max : int, optional
        Stop after that many lines at the latest.

    Raises
    ------
    ConfigError
        If the file cannot be read, is larger than ``FILE_BYTES_MAX``, empty, binary, not UTF-8, is plainly
        something else (an archive, a web page, a Git LFS pointer), or is a pipe that nobody writes to.
    """
    try:
        raw = _read_bytes(path, what, lines_max)
    except OSError as error:
        raise ConfigError(Fault(str(path), f"cannot be read: {error.strerror or error}")) from None
    except ValueError:  # a NUL in the name itself
        raise ConfigError(Fault(str(path), "is not a file name")) from None
    _refuse_binary(path, raw, what)
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            Fault(
                f"{path}:{line}", f"byte 0x{raw[error.start]:02x} is not UTF-8 text; save the file as UTF-8"
            )
        ) from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise ConfigError(Fault(str(path), f"is empty; expected {what}"))
    return text


def _read_bytes(path: Path, what: str, lines_max: int | None) -> bytes:
    with open(path, "rb", opener=_open) as file:
        blocks = [_first_block(file)]
        _refuse_what_is_no_text(path, blocks[0], what)
        size, lines = len(blocks[0]), blocks[0].count(b"\n")
        while blocks[-1] and (lines_max is None or lines < lines_max):
            if size > FILE_BYTES_MAX:
                raise ConfigError(
                    Fault(
                        str(path),
                        f"is larger than {format_size(FILE_BYTES_MAX)}; split it, or cut it to fewer rows",
                    )
                )
            blocks.append(file.read(_BLOCK))
            size += len(blocks[-1])
            lines += blocks[-1].count(b"\n")
    raw = b"".join(blocks)
    return raw if lines_max is None else _first_lines(raw, lines_max)


def _open(name: str, flags: int) -> int:
    """Open a file for reading, at once even where it is a pipe without a writer."""
    return os.open(name, flags | os.O_NONBLOCK)


def _first_block(file: BufferedReader) -> bytes:
    """The first block of a file just opened; an ``OSError`` if it is a pipe that nobody writes to."""
    head = b""
    if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
        at_once: bytes | None = file.read(_BLOCK)  # None: somebody has the pipe open and writes nothing yet
        if at_once == b"":
            waiting = select.poll()
            waiting.register(file, select.POLLIN | select.POLLHUP)
            anything = waiting.poll(PIPE_WAIT_MS)
            at_once = file.read(_BLOCK)
            if at_once == b"" and not anything:
                raise OSError(None, "it is a pipe, and nobody writes to it")
        head = at_once or b""
    os.set_blocking(file.fileno(), True)
    return head + file.read(_BLOCK - len(head))


def _refuse_binary(path: Path, raw: bytes, what: str) -> None:
    if b"\0" in raw:
        raise ConfigError(Fault(str(path), f"is a binary file; expected {what}"))


def _first_lines(raw: bytes, count: int) -> bytes:
    parts = raw.split(b"\n", count)
    return raw if len(parts) <= count else b"\n".join(parts[:count])


def _refuse_what_is_no_text(path: Path, head: bytes, what: str) -> None:
    for magic, kind in _ARCHIVES.items():
        if head.startswith(magic):
            raise ConfigError(
                Fault(str(path), f"is a {kind} file, not {what}; unpack or convert it to text first")
            )
    if head.startswith(_OTHER_ENCODINGS):
        raise ConfigError(Fault(str(path), "is UTF-16 text; save it as UTF-8"))
    _refuse_binary(path, head, what)  # before a device without end is read up to the bound
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    if start.startswith(b"<"):
        raise ConfigError(
            Fault(str(path), f"is a web page (it starts with <), not {what}; download the raw file itself")
        )
    if start.startswith(b"version https://git-lfs"):
        raise ConfigError(
            Fault(str(path), f"is a Git LFS pointer, not {what}; fetch the file with `git lfs pull`")
        )
