"""The run directory of a lab: configurations, sockets and logs, and a note of whose it is.

It lies in ``/run/ark-lab`` under the lab's name, which is also the prefix of its namespaces. The names of two
labs differ behind the first dot, so that no name is the beginning of another one with its dash.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from ark.errors import LabError

BASE: Final = Path("/run/ark-lab")
PREFIX: Final = "ark-lab."
"""What the names of all labs begin with."""

UP: Final = "up"
"""What the lab of ``ark lab up`` is called behind the dot, unless told otherwise."""

NOTE: Final = "lab.json"


class Note(msgspec.Struct, frozen=True):
    """Whose a lab is: the process, when it began (clock ticks since boot), and its hosts and switches."""

    process: int
    began: int
    nodes: tuple[str, ...]


def name_of_run() -> str:
    """The name of the lab of this process."""
    return f"{PREFIX}{os.getpid()}"


def make(name: str, nodes: tuple[str, ...]) -> Path:
    """Make the directory of a lab, for root alone.

    Raises
    ------
    LabError
        If a lab of that name is up, or the directory can't be made.
    """
    directory = BASE / name
    if is_alive(name):
        raise LabError(f"{name} is up already; end it with: ark lab down")
    try:
        directory.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise LabError(
            f"{directory} is left of a lab that was killed; remove it with: ark lab down"
        ) from None
    except OSError as error:
        raise LabError(f"cannot make {directory}: {error.strerror}; the lab needs root: sudo ark …") from None
    note = Note(os.getpid(), began(os.getpid()) or 0, nodes)
    (directory / NOTE).write_bytes(msgspec.json.encode(note))
    return directory


def read_note(name: str) -> Note | None:
    """The note in the directory of a lab; None where there is none."""
    try:
        return msgspec.json.decode((BASE / name / NOTE).read_bytes(), type=Note)
    except (OSError, msgspec.MsgspecError):
        return None


def is_alive(name: str) -> bool:
    """Whether the process whose lab it is still runs."""
    note = read_note(name)
    return note is not None and began(note.process) == note.began


def names() -> list[str]:
    """All labs that have a directory."""
    return sorted(entry.name for entry in BASE.iterdir()) if BASE.is_dir() else []


def began(process: int) -> int | None:
    """When a process began, in clock ticks since boot; None if there is no such process."""
    try:
        text = Path(f"/proc/{process}/stat").read_text("ascii", errors="replace")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])  # field 22 of proc_pid_stat(5), behind the name
