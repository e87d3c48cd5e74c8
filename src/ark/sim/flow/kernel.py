"""The compiled event loop of the flow-level engine: it runs alone from one decision to the next.

Three things happen inside: a stripe's chunk ends and it pulls the next one from its flow's pool, bytes of a
layer come to be, a flow ends. The kernel stops where somebody else must act: at the time it was given, when
flows have ended, and at chunk ends of flows whose scheme asked to be told.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.sim.compilation import kernel
from ark.sim.flow.arrays import ASKED, ENDED, LIVE, STALE, Records, Table
from ark.sim.flow.rates import fair_rates

SAME_INSTANT_NS: Final = 1e-3
"""Chunks that end within a picosecond of each other end together: their order would be rounding noise."""


@kernel
def advance(
    now_ns: float,
    until_ns: float,
    counts: NDArray[np.int64],
    stripes: Records,
    stripe_links: Table,
    flows: Records,
    flow_place: Table,
    links: Records,
    members: NDArray[np.int32],
    heap: Records,
    ended: NDArray[np.int32],
    asked: Table,
) -> float:
    """Run from ``now_ns`` to ``until_ns``, or to the first time at which somebody must act; return that time.

    At most ``counts[ENDED]`` slots then stand in ``ended`` and ``counts[ASKED]`` pairs in ``asked``; both are
    empty when ``until_ns`` was reached without.
    """
    counts[ENDED] = 0
    counts[ASKED] = 0
    while True:
        _fill_chunks(now_ns, counts, stripes, stripe_links, flows, flow_place, ended, asked)
        if counts[ENDED] + counts[ASKED] > 0:
            return now_ns
        live = counts[LIVE]
        if counts[STALE] != 0:
            fair_rates(live, stripes, stripe_links, links, members, heap)
            counts[STALE] = 0
        step_ns = until_ns - now_ns
        reached = True
        for place in range(live):
            stripe = stripes[place]
            if stripe["left"] > 0.0:
                wait_ns = stripe["left"] / stripe["rate"]
            else:
                wait_ns = flows[stripe["flow"]]["release_ns"] - now_ns
            if wait_ns <= step_ns:
                step_ns = wait_ns
                reached = False
        _send(max(step_ns, 0.0), live, stripes)
        if reached:
            return until_ns
        now_ns = min(now_ns + max(step_ns, 0.0), until_ns)


@kernel
def _send(step_ns: float, live: int, stripes: Records) -> None:
    """Let every stripe send for ``step_ns``; within an instant of its chunk's end it has ended it."""
    for place in range(live):
        stripe = stripes[place]
        left = stripe["left"] - stripe["rate"] * step_ns
        stripe["left"] = left if left > stripe["rate"] * SAME_INSTANT_NS else 0.0


@kernel
def _fill_chunks(
    now_ns: float,
    counts: NDArray[np.int64],
    stripes: Records,
    stripe_links: Table,
    flows: Records,
    flow_place: Table,
    ended: NDArray[np.int32],
    asked: Table,
) -> None:
    """Give each stripe without bytes its next chunk; end it where its flow has none left, ever.

    Stripes of one flow are served by number, because their places depend on what other flows did. Places are
    walked downwards: what fills a gap comes from the end, where all has been served, or is met further down.
    """
    for place in range(counts[LIVE] - 1, -1, -1):
        if place >= counts[LIVE] or stripes[place]["left"] > 0.0:
            continue
        slot = stripes[place]["flow"]
        flow = flows[slot]
        _release(now_ns, flow)
        for number in range(flow_place.shape[1]):
            sibling = flow_place[slot, number]
            if sibling < 0 or stripes[sibling]["left"] > 0.0:
                continue
            if flow["pool"] > 0.0:
                _pull(slot, stripes[sibling], flow, counts, asked)
            elif flow["hidden"] > 0.0:
                if stripes[sibling]["rate"] > 0.0:
                    stripes[sibling]["rate"] = 0.0
                    counts[STALE] = 1
            else:
                _remove_stripe(sibling, counts, stripes, stripe_links, flow_place)
                flow["open"] -= 1
                if flow["open"] == 0:
                    ended[counts[ENDED]] = slot
                    counts[ENDED] += 1


@kernel
def _pull(slot: int, stripe: np.void, flow: np.void, counts: NDArray[np.int64], asked: Table) -> None:
    """Move one chunk from the flow's pool to a stripe, and note it where the scheme wants to know."""
    if stripe["rate"] == 0.0:
        counts[STALE] = 1  # it takes part in the sharing again, or for the first time
    elif flow["asks"] != 0:
        asked[counts[ASKED], 0] = slot
        asked[counts[ASKED], 1] = stripe["number"]
        counts[ASKED] += 1
    chunk = min(flow["chunk"], flow["pool"])
    stripe["left"] = chunk
    flow["pool"] -= chunk


@kernel
def _release(now_ns: float, flow: np.void) -> None:
    """Move the layers that have come to be by now into the flow's pool."""
    while flow["hidden"] > 0.0 and flow["release_ns"] <= now_ns:
        part = min(flow["part"], flow["hidden"])
        flow["hidden"] -= part
        flow["pool"] += part
        flow["release_ns"] += flow["every_ns"]


@kernel
def _remove_stripe(
    place: int, counts: NDArray[np.int64], stripes: Records, stripe_links: Table, flow_place: Table
) -> None:
    """Take an ended stripe out; the last one fills its place."""
    flow_place[stripes[place]["flow"], stripes[place]["number"]] = -1
    last = counts[LIVE] - 1
    if place < last:
        stripes[place] = stripes[last]
        stripe_links[place, :] = stripe_links[last, :]
        flow_place[stripes[place]["flow"], stripes[place]["number"]] = place
    counts[LIVE] = last
    counts[STALE] = 1
