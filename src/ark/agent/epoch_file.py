"""The file that keeps our epoch over restarts."""

import os
from pathlib import Path

from ark.agent.text_file import refuse_irregular
from ark.control.epoch import EPOCH_MAX
from ark.errors import ConfigError, Fault


def read_epoch(path: Path) -> int | None:
    """The epoch written last; None without a file, or if it is spoilt (peers tell us then)."""
    refuse_irregular(path, "the state")
    try:
        epoch = int(path.read_text()[:32])
    except (FileNotFoundError, ValueError):
        return None
    except OSError as error:
        raise ConfigError(Fault(str(path), f"can't be read: {error.strerror}; set state")) from None
    return epoch if 0 <= epoch < EPOCH_MAX else None


def write_epoch(path: Path, epoch: int) -> None:
    """Replace the file, so that after a crash it holds the old epoch or the new one, whole.

    Raises
    ------
    ConfigError
        If it can't be written: an agent that forgets its epoch must not run.
    """
    fresh = path.with_name(f"{path.name}.new")
    try:
        with fresh.open("w") as file:
            file.write(f"{epoch}\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise ConfigError(
            Fault(str(path), f"can't be written: {error.strerror}; set state to a file this user may write")
        ) from None
