"""Many deadlines, of which the next one is known: a heap that forgets what was moved or cancelled."""

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_SLACK: Final = 64
"""Dead heap entries that are cheaper to keep than to clear; beyond it and the live ones the heap is
rebuilt."""


class Deadlines(Generic[K]):
    """At most one deadline a key; memory follows the number of keys, however often each is moved."""

    __slots__ = ("_at", "_heap", "_order")

    def __init__(self) -> None:
        self._at: dict[K, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._order = 0

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: K) -> bool:
        return key in self._at

    def set(self, key: K, at: int) -> None:
        """Put the deadline of ``key`` at ``at``, in place of the one it may have."""
        self._order += 1
        self._at[key] = (at, self._order)
        heappush(self._heap, (at, self._order, key))
        if len(self._heap) > 2 * len(self._at) + _SLACK:
            self._heap = [(when, order, live) for live, (when, order) in self._at.items()]
            heapify(self._heap)

    def cancel(self, key: K) -> None:
        """Forget the deadline of ``key``, if it has one."""
        self._at.pop(key, None)

    def due(self, now: int) -> list[K]:
        """Take out and return the keys whose deadline is at or before ``now``, earliest first."""
        keys: list[K] = []
        while (at := self.next_deadline()) is not None and at <= now:
            key = heappop(self._heap)[2]
            del self._at[key]
            keys.append(key)
        return keys

    def next_deadline(self) -> int | None:
        """The earliest deadline, or None."""
        heap = self._heap
        while heap:
            at, order, key = heap[0]
            if self._at.get(key) == (at, order):
                return at
            heappop(heap)
        return None

    def check(self) -> None:
        """Assert that no key is without its heap entry and that dead entries are bounded."""
        entries = {(order, key) for _, order, key in self._heap}
        assert all((order, key) in entries for key, (_, order) in self._at.items())
        assert len(self._heap) <= 2 * len(self._at) + _SLACK + 1
