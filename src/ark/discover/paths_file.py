"""Write the file of learned paths, so that who reads it finds the old one or the new one, whole."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ark.discover.learned import LearnedMap, write_learned
from ark.discover.numbering import Kind
from ark.errors import ConfigError


def write_paths(path: Path, maps: Iterable[LearnedMap], numbering: Kind) -> None:
    """Replace the file by another one of the same folder, with the rights of the old one.

    What is there and no regular file (``/dev/stdout``, say) is written to as it is.

    Raises
    ------
    ConfigError
        If it cannot be written; what was there is as it was.
    """
    text = write_learned(maps, numbering)
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, "utf-8")
        else:
            _replace(path.resolve(), text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # else a crash of the machine could leave an empty file
        if path.exists():
            shutil.copymode(path, fresh)
            with suppress(PermissionError):  # only root may give files away
                os.chown(fresh, path.stat().st_uid, path.stat().st_gid)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
