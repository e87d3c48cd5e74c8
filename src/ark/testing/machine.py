"""The hosts of a simulated cluster, and the transfers of their applications."""

from dataclasses import dataclass, field

from ark.control.controller import Controller
from ark.control.rows import Row
from ark.testing.invariants import Seen
from ark.testing.schedule import Transfer


@dataclass(slots=True)
class Client:
    """A transfer as its application sees it: it lives on when the controller crashes."""

    transfer: Transfer
    number: int
    flow: int = 0
    paths: tuple[int, ...] = ()
    started: bool = False
    over: bool = False


@dataclass(slots=True)
class Machine:
    """One simulated host: its clocks, its disk, and its controller while it is up."""

    index: int
    host: int
    address: str
    attachment: int
    monotonic_ns: int
    wall_ns: int
    stored_epoch: int | None = None
    controller: Controller | None = None
    life: int = 0
    booted_ns: int = 0
    died_ns: int = 0
    armed_ns: int = -1
    ticked_ns: int = -1
    ticks: int = 0
    flows: int = 0
    inputs: int = 0
    clients: dict[int, Client] = field(default_factory=dict)
    fresh: dict[int, int] = field(default_factory=dict)
    """Virtual time at which the last datagram that was new arrived, by its sender."""
    seen: set[bytes] = field(default_factory=set)
    said: dict[tuple[int, int], Row] = field(default_factory=dict)
    """Rows in its table that their owners are known to have said."""
    heard: dict[tuple[int, str], Seen] = field(default_factory=dict)
    """What its peers' streams were like when they were looked at."""


def running(machine: Machine) -> Controller:
    """The controller of a machine that is up."""
    assert machine.controller is not None
    return machine.controller


def own_rows(machine: Machine) -> list[Row]:
    """The rows of a host as it has them itself."""
    return [row for row in running(machine).view.table if row.host == machine.host]


def identity(row: Row, source: int, flow: int) -> object:
    """All that two tables must agree on in a row."""
    return (
        row.host, row.epoch, flow, row.state, row.paths, source, row.target, row.size_bytes, row.stamp,
        row.fallback, row.moves,
    )  # fmt: skip
