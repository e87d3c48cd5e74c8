"""Schemes without collisions: all uplinks of a leaf are one pipe, and all its downlinks another.

What remains are NICs, the pipes, and the fair sharing of both.
"""

from typing import Final

from ark.sim.schemes.scheme import Assignment, FixedAtArrival, Transfer

FASTPASS_DELAY_NS: Final = 10_000
"""Fastpass: from a request to the arbiter to the first slot, batch included. Our assumption: no source."""

DRILL_GOODPUT: Final = 0.8
"""DRILL at flow level: share of sent bytes that a receiver with go-back-N takes, the rest comes out of order.

From htsim: of 256 MB under adaptive routing 65 MB were sent again, 256 / (256 + 65) = 0.8."""


class Pooled(FixedAtArrival):
    """``ideal``, and schemes that come near it, at a price.

    Parameters
    ----------
    name
        Its name in results.
    delay_ns
        How long each transfer waits before it sends.
    goodput
        Share of the network's goodput that is left (flow level only).
    """

    pooled = True

    def __init__(self, name: str = "ideal", *, delay_ns: int = 0, goodput: float = 1.0) -> None:
        self.name = name
        self.goodput = goodput
        self._delay_ns = delay_ns

    def arrived(self, now_ns: int, transfer: Transfer) -> Assignment:
        """Into the pipe."""
        return Assignment((0,), (transfer.sport,), now_ns + self._delay_ns)
