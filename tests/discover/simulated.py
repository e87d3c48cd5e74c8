"""A network that answers probes in virtual time: with loss, limits, spraying and silent switches."""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from ark.discover.icmp import IcmpError
from ark.discover.probe import Probe, quoted_mark
from ark.discover.prober import Prober
from ark.fabric import Fabric, FiveTuple, Nic, route
from ark.units import NS_PER_S


@dataclass
class SimulatedNetwork:
    """``answers`` says which error a probe raises; the rest is what happens to that error on its way."""

    fabric: Fabric
    source: Nic
    target: Nic
    loss: float = 0.0
    rate_per_s: float = 0.0
    silent: frozenset[str] = frozenset()
    sprays: bool = False
    round_trip_ns: int = 200_000
    draw: Random = field(default_factory=lambda: Random(1))
    tokens: dict[str, tuple[float, int]] = field(default_factory=dict)
    reached: list[Probe] = field(default_factory=list)

    def switches(self, probe: Probe) -> list[str]:
        flow = probe.flow
        sport = self.draw.randrange(1 << 16) if self.sprays else flow.sport
        path = route(
            self.fabric,
            FiveTuple(flow.src, flow.dst, sport, flow.dport, flow.proto, flow.dest_qp),
            self.source,
            self.target,
        )
        return [self.fabric.links[link].source for link in path.links[1:]]

    def answer(self, probe: Probe, nonce: int, now: int) -> IcmpError | None:
        hops = self.switches(probe)
        flow = probe.flow
        expired = probe.hop <= len(hops)
        if not expired:
            self.reached.append(probe)
        router = hops[probe.hop - 1] if expired else flow.dst
        if router in self.silent or self.draw.random() < self.loss or not self._allowed(router, now):
            return None
        mark = quoted_mark(probe, nonce)
        return IcmpError(router, expired, flow.src, flow.dst, flow.proto, flow.sport, flow.dport, mark)

    def _allowed(self, router: str, now: int) -> bool:
        """A bucket of six, as Linux has for each router and receiver."""
        if not self.rate_per_s:
            return True
        level, since = self.tokens.get(router, (6.0, now))
        level = min(6.0, level + (now - since) * self.rate_per_s / NS_PER_S)
        self.tokens[router] = (level - 1 if level >= 1 else level, now)
        return level >= 1


def run(
    prober: Prober,
    networks: Mapping[str, SimulatedNetwork],
    *,
    start: int = 0,
    end: int = 3600 * NS_PER_S,
    then: Callable[[int], Sequence[int]] = lambda _: (),
) -> int:
    """Run a prober to its end (or to ``end``) and return the time; ``then`` is called at every step.

    ``networks`` are by destination address; ``then`` returns times at which it wants to be called again.
    """
    now = start
    flying: list[tuple[int, int, IcmpError]] = []
    count = 0
    while now < end:
        wanted = list(then(now))
        for probe in prober.probes_to_send(now):
            network = networks[probe.flow.dst]
            error = network.answer(probe, prober.nonce, now)
            if error is not None:
                count += 1
                delay = int(network.round_trip_ns * (1 + network.draw.random()))
                heapq.heappush(flying, (now + delay, count, error))
        prober.check()
        deadline = prober.next_deadline()
        if deadline is None:  # the last search has just ended
            wanted = list(then(now))
            deadline = prober.next_deadline()
        if deadline is None and not wanted:
            return now
        times = [*wanted, *(arrival for arrival, _, _ in flying[:1])]
        if deadline is not None:
            times.append(deadline)
        now = max(now, min(times))
        while flying and flying[0][0] <= now:
            prober.icmp_received(now, heapq.heappop(flying)[2])
    return now
