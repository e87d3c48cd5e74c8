"""A network of links with the flows that are live on it: the kernel's arrays, and how they grow."""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ark.sim.flow.arrays import ASKED, ENDED, ENTRY, FLOW, LINK, LIVE, STALE, STRIPE, KernelArguments
from ark.sim.flow.kernel import advance

A = TypeVar("A", bound=np.generic)

FIRST_PLACES: Final = 64
"""Places and slots at the start; they double when they are all taken."""

FIRST_HOPS: Final = 6
"""Links that a path may have at the start, enough for three tiers; a longer path makes room."""


class Stop(NamedTuple):
    """Why time has stopped: slots of flows that have ended, and (slot, number) of stripes at a segment end.

    Both are empty where the time that was asked for has been reached.
    """

    ended: tuple[int, ...]
    asked: tuple[tuple[int, int], ...]


class FluidNetwork:
    """Links, and the flows that are live on them now; ``run`` lets time pass.

    Attributes
    ----------
    now_ns : float
        The time up to which everything has been computed.
    arguments : KernelArguments
        The state itself, as the kernel takes it.
    """

    def __init__(self, link_rate: NDArray[np.float64], *, stripes_max: int) -> None:
        """Start empty; ``link_rate`` is in bytes/ns, zero for a link that is down (no path may use it)."""
        self.now_ns = 0.0
        links = np.zeros(len(link_rate), LINK)
        links["rate"] = link_rate
        self.arguments = KernelArguments(
            counts=np.zeros(4, np.int64),
            stripes=np.zeros(FIRST_PLACES, STRIPE),
            stripe_links=np.zeros((FIRST_PLACES, FIRST_HOPS), np.int32),
            flows=np.zeros(FIRST_PLACES, FLOW),
            flow_place=np.full((FIRST_PLACES, stripes_max), -1, np.int32),
            links=links,
            members=np.zeros(FIRST_PLACES * FIRST_HOPS, np.int32),
            heap=np.zeros(len(link_rate), ENTRY),
            ended=np.zeros(FIRST_PLACES, np.int32),
            asked=np.zeros((FIRST_PLACES, 2), np.int32),
        )
        self._free = list(range(FIRST_PLACES - 1, -1, -1))

    def add_flow(
        self,
        paths: Sequence[Sequence[int]],
        size_bytes: int,
        *,
        chunk_bytes: float = np.inf,
        weight: float = 1.0,
        asks: bool = False,
        layers: tuple[float, float, int] | None = None,
    ) -> int:
        """The slot of a new flow with one stripe a path; each stripe shares links with ``weight``.

        ``layers`` = (first_ns, every_ns, count): the bytes come to be in ``count`` equal parts instead of all
        at once.
        """
        if not self._free:
            self._grow_flows()
        slot = self._free.pop()
        pool, hidden, (first_ns, every_ns, count) = size_bytes, 0, layers or (0.0, 0.0, 1)
        if layers is not None:
            pool, hidden = 0, size_bytes
        part = -(-size_bytes // count)
        self.arguments.flows[slot] = (pool, hidden, first_ns, every_ns, part, chunk_bytes, len(paths), asks)
        for number, path in enumerate(paths):
            self._add_stripe(slot, number, path, weight)
        return slot

    def run(self, until_ns: float) -> Stop:
        """Let time pass until ``until_ns``, or until flows have ended or stripes are at a segment end.

        With nothing live and ``until_ns`` infinite, time stands still.
        """
        arrays = self.arguments
        if until_ns == np.inf and not arrays.counts[LIVE]:
            return Stop((), ())
        self.now_ns = advance(self.now_ns, until_ns, *arrays)
        counts = arrays.counts
        return Stop(
            tuple(arrays.ended[: counts[ENDED]].tolist()),
            tuple((slot, number) for slot, number in arrays.asked[: counts[ASKED]].tolist()),
        )

    def _add_stripe(self, slot: int, number: int, path: Sequence[int], weight: float) -> None:
        """Place one stripe; it has no bytes yet, the kernel gives it its first chunk."""
        place = int(self.arguments.counts[LIVE])
        if place == len(self.arguments.stripes):
            self._grow_stripes()
        arrays = self.arguments
        arrays.stripes[place] = (0.0, 0.0, weight, slot, number, 0)
        arrays.flow_place[slot, number] = place
        arrays.counts[LIVE] = place + 1
        self._lay(place, path)

    def move_stripe(self, slot: int, number: int, path: Sequence[int]) -> None:
        """Put a live stripe on another path, with the bytes that it has left."""
        place = int(self.arguments.flow_place[slot, number])
        assert place >= 0, "an ended stripe has no path"
        self._lay(place, path)

    def _lay(self, place: int, path: Sequence[int]) -> None:
        """Write down the links of a stripe."""
        missing = len(path) - self.arguments.stripe_links.shape[1]
        if missing > 0:
            self._grow_hops(missing)
        arrays = self.arguments
        arrays.stripe_links[place, : len(path)] = path
        arrays.stripes["hops"][place] = len(path)
        arrays.counts[STALE] = 1

    def free_flow(self, slot: int) -> None:
        """Give back the slot of a flow that has ended."""
        self._free.append(slot)

    def bytes_left(self, slot: int) -> int:
        """Bytes of a live flow that have not left yet, rounded up."""
        arrays = self.arguments
        places = arrays.flow_place[slot]
        flow = arrays.flows[slot]
        taken = float(arrays.stripes["left"][places[places >= 0]].sum())
        return int(np.ceil(flow["pool"] + flow["hidden"] + taken))

    def _grow_stripes(self) -> None:
        arrays = self.arguments
        self.arguments = arrays._replace(
            stripes=_doubled(arrays.stripes),
            stripe_links=_doubled(arrays.stripe_links),
            members=_doubled(arrays.members),
            asked=_doubled(arrays.asked),
        )

    def _grow_hops(self, missing: int) -> None:
        arrays = self.arguments
        stripe_links = np.pad(arrays.stripe_links, ((0, 0), (0, missing)))
        self.arguments = arrays._replace(
            stripe_links=stripe_links, members=np.zeros(stripe_links.size, np.int32)
        )

    def _grow_flows(self) -> None:
        arrays = self.arguments
        before = len(arrays.flows)
        self.arguments = arrays._replace(
            flows=_doubled(arrays.flows), flow_place=_doubled(arrays.flow_place), ended=_doubled(arrays.ended)
        )
        self.arguments.flow_place[before:] = -1
        self._free.extend(range(2 * before - 1, before - 1, -1))


def _doubled(array: NDArray[A]) -> NDArray[A]:
    """The same array with as many empty places behind it."""
    return np.concatenate([array, np.zeros_like(array)])
