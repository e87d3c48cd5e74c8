"""Queue pairs made ahead, one a path and peer, and the one that a transfer is to use."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from ark.client import Lane

Q = TypeVar("Q")


class PathQueuePairs(Generic[Q]):
    """The queue pairs to one peer, each connected when it is first needed or by ``connect_all``.

    Threads may share it once ``connect_all`` has returned; before, one thread at a time.

    Parameters
    ----------
    lanes
        What ``ark.lanes`` gave: a path, a source port and a flow label each.
    connect
        Makes a queue pair for a lane, and one that is not steered for None. With RDMA READ it is the *peer's*
        queue pair that needs the label: the side that sends the bytes is steered.
    """

    def __init__(self, lanes: Iterable[Lane], connect: Callable[[Lane | None], Q]) -> None:
        self._lanes = {lane.path: lane for lane in lanes if lane.source_port}
        self._connect = connect
        self._made: dict[int | None, Q] = {}

    def connect_all(self) -> None:
        """Connect what is not yet connected, so that no transfer waits for it."""
        for path in (*self._lanes, None):
            self.of(path)

    def of(self, path: int | None) -> Q:
        """The queue pair over a path; the one that is not steered for None and for paths without a port."""
        key = path if path in self._lanes else None
        if key not in self._made:
            self._made[key] = self._connect(None if key is None else self._lanes[key])
        return self._made[key]

    def __len__(self) -> int:
        """How many are connected."""
        return len(self._made)
