"""Small text files of the operator's, read with a bound."""

import stat
from pathlib import Path
from typing import Final

from ark.errors import ConfigError, Fault

BYTES_MAX: Final = 64 * 2**20
"""As much as the largest fabric file may have."""


def read_text(path: Path, what: str) -> str:
    """The UTF-8 text of a file; ``what`` it should be is for messages.

    Raises
    ------
    ConfigError
        If it cannot be read, is no regular file, is too large, or is no text.
    """
    refuse_irregular(path, what)
    try:
        with path.open("rb") as file:
            raw = file.read(BYTES_MAX + 1)
        text = raw.decode("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise ConfigError(Fault(str(path), f"can't be read as {what}: {reason}")) from None
    if len(raw) > BYTES_MAX:
        raise ConfigError(Fault(str(path), f"is larger than {BYTES_MAX:,} bytes; {what} is smaller"))
    return text


def exposed(path: Path) -> list[Fault]:
    """The fault of a file with a secret that every user of this machine may read or write; none if not."""
    if path.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
        return [Fault(str(path), "can be read by every user of this machine; run: chmod o-rw")]
    return []


def refuse_irregular(path: Path, what: str) -> None:
    """Refuse what is there and no regular file: a pipe without a writer would keep the agent waiting forever.

    Raises
    ------
    ConfigError
        If that is so.
    """
    if path.exists() and not path.is_file():
        raise ConfigError(Fault(str(path), f"is no regular file; {what} is one"))
