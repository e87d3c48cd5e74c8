"""Max-min fairness and fluid transfers in the plainest form: the oracle for the compiled kernel.

No heap, no index, no reuse: each step looks at everything again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

INSTANT_NS = 1e-3


def fair_rates_plain(
    link_rate: Sequence[float], paths: Sequence[Sequence[int]], weights: Sequence[float]
) -> list[float]:
    """Raise all rates together, in proportion to the weights, and stop those on a link that is full."""
    rates = [0.0] * len(paths)
    open_ = set(range(len(paths)))
    while open_:
        levels = {}
        for link, capacity in enumerate(link_rate):
            crossing = [i for i in range(len(paths)) if link in paths[i]]
            rising = [i for i in crossing if i in open_]
            if rising:
                room = capacity - sum(rates[i] for i in crossing if i not in open_)
                levels[link] = room / sum(weights[i] for i in rising)
        level = min(levels.values())
        full = [link for link in levels if levels[link] <= level * (1 + 1e-12)]
        for i in list(open_):
            if any(link in paths[i] for link in full):
                rates[i] = weights[i] * level
                open_.discard(i)
    return rates


@dataclass
class PlainFlow:
    """A transfer: its stripes' paths, and how it pulls bytes."""

    start_ns: int
    size: int
    paths: list[list[int]]
    chunk: float = float("inf")
    weight: float = 1.0
    layers: tuple[float, float, int] | None = None
    end_ns: float | None = None
    left: list[float] = field(default_factory=list)
    closed: list[bool] = field(default_factory=list)
    pool: float = 0.0

    def released(self, now_ns: float) -> float:
        if self.layers is None:
            return self.size
        first, every, count = self.layers
        part = -(-self.size // count)
        due = sum(first + every * k <= now_ns + INSTANT_NS / 2 for k in range(count))
        return min(self.size, due * part)

    def next_release_ns(self, now_ns: float) -> float:
        if self.layers is None:
            return float("inf")
        first, every, count = self.layers
        times = [first + every * k for k in range(count)]
        return min((t for t in times if t > now_ns + INSTANT_NS / 2), default=float("inf"))


def completion_times_plain(link_rate: Sequence[float], flows: Sequence[PlainFlow]) -> list[float]:
    """When each flow's last byte has left, in ns."""
    now = 0.0
    taken = [0.0] * len(flows)
    while any(flow.end_ns is None for flow in flows):
        for i, flow in enumerate(flows):
            if flow.start_ns > now or flow.end_ns is not None:
                continue
            if not flow.left:
                flow.left, flow.closed = [0.0] * len(flow.paths), [False] * len(flow.paths)
            for k in range(len(flow.paths)):
                if flow.closed[k] or flow.left[k] > 0:
                    continue
                flow.left[k] = min(flow.chunk, flow.released(now) - taken[i])
                taken[i] += flow.left[k]
                flow.closed[k] = flow.left[k] == 0 and taken[i] == flow.size
            if all(flow.closed):
                flow.end_ns = now
        live = [
            (i, k)
            for i, flow in enumerate(flows)
            if flow.left and flow.end_ns is None
            for k in range(len(flow.paths))
            if flow.left[k] > 0
        ]
        rates = fair_rates_plain(
            link_rate, [flows[i].paths[k] for i, k in live], [flows[i].weight for i, _ in live]
        )
        times = [now + flows[i].left[k] / rate for (i, k), rate in zip(live, rates, strict=True)]
        times += [flow.start_ns for flow in flows if flow.start_ns > now]
        times += [flow.next_release_ns(now) for flow in flows if flow.left and flow.end_ns is None]
        if not times:
            break
        step = min(times) - now
        for (i, k), rate in zip(live, rates, strict=True):
            left = flows[i].left[k] - rate * step
            flows[i].left[k] = left if left > rate * INSTANT_NS else 0.0
        now = min(times)
    return [flow.end_ns if flow.end_ns is not None else float("nan") for flow in flows]
