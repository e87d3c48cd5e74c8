"""Max-min fair rates of all live stripes: the compiled water filling."""

import numpy as np
from numpy.typing import NDArray

from ark.sim.compilation import kernel
from ark.sim.flow.arrays import Records, Table


@kernel
def fair_rates(
    live: int,
    stripes: Records,
    stripe_links: Table,
    links: Records,
    members: NDArray[np.int32],
    heap: Records,
) -> None:
    """Set the weighted max-min fair rate of stripes ``0 .. live-1``; one without bytes gets zero.

    The water rises at all stripes alike, in proportion to their weights, until a link is full; that link's
    stripes keep their rates, and the water rises on for the others (Bertsekas and Gallager, Data Networks,
    2nd ed., 6.5.2). The next link to fill comes from a heap by level = room / open weight. A level only ever
    rises while others freeze, so a stale entry is too low: it is met early, corrected and put back.

    ``links["open"]`` must be all zero and is so again afterwards.
    """
    size = _used_links(live, stripes, stripe_links, links, members, heap)
    for place in range(size):
        link = links[heap[place]["link"]]
        heap[place]["level"] = link["room"] / link["weight"]
    for place in range(size // 2 - 1, -1, -1):
        _sink(place, size, heap)
    while size > 0:
        link = links[heap[0]["link"]]
        if link["open"] > 0:
            level = max(link["room"], 0.0) / link["weight"]
            if level > heap[0]["level"]:
                heap[0]["level"] = level
                _sink(0, size, heap)
                continue
            _freeze(link, level, stripes, stripe_links, links, members)
        size -= 1
        heap[0] = heap[size]
        _sink(0, size, heap)


@kernel
def _used_links(
    live: int,
    stripes: Records,
    stripe_links: Table,
    links: Records,
    members: NDArray[np.int32],
    heap: Records,
) -> int:
    """List the links in use in ``heap``, and each one's stripes in ``members`` from its ``first`` on."""
    used = 0
    for place in range(live):
        stripe = stripes[place]
        if stripe["left"] <= 0.0:
            stripe["rate"] = 0.0
            continue
        stripe["rate"] = -1.0  # open: the water still rises
        for hop in range(stripe["hops"]):
            link = links[stripe_links[place, hop]]
            if link["open"] == 0:
                heap[used]["link"] = stripe_links[place, hop]
                used += 1
                link["room"] = link["rate"]
                link["weight"] = 0.0
            link["open"] += 1
            link["weight"] += stripe["weight"]
    total = 0
    for entry in range(used):
        link = links[heap[entry]["link"]]
        total += link["open"]
        link["first"] = total
    for place in range(live - 1, -1, -1):
        if stripes[place]["rate"] < 0.0:
            for hop in range(stripes[place]["hops"]):
                link = links[stripe_links[place, hop]]
                link["first"] -= 1
                members[link["first"]] = place
    return used


@kernel
def _freeze(
    full: np.void,
    level: float,
    stripes: Records,
    stripe_links: Table,
    links: Records,
    members: NDArray[np.int32],
) -> None:
    """Let every open stripe of the full link keep the level that it has reached."""
    member = full["first"]
    while full["open"] > 0:
        place = members[member]
        member += 1
        stripe = stripes[place]
        if stripe["rate"] < 0.0:
            stripe["rate"] = stripe["weight"] * level
            for hop in range(stripe["hops"]):
                link = links[stripe_links[place, hop]]
                link["open"] -= 1
                link["room"] -= stripe["rate"]
                link["weight"] -= stripe["weight"]


@kernel
def _sink(place: int, size: int, heap: Records) -> None:
    """Restore the order of the heap below ``place``; equal levels go by link."""
    while True:
        least = place
        for child in range(2 * place + 1, min(2 * place + 3, size)):
            below, above = heap[child], heap[least]
            if below["level"] < above["level"] or (
                below["level"] == above["level"] and below["link"] < above["link"]
            ):
                least = child
        if least == place:
            return
        level, link = heap[place]["level"], heap[place]["link"]
        heap[place] = heap[least]
        heap[least]["level"], heap[least]["link"] = level, link
        place = least
