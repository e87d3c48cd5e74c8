"""A fleet the long way: each host has a table of its own, and rows travel one by one. Slow and obvious."""

from collections import deque
from itertools import count

from ark.control.decider import Decider
from ark.control.decision import Counters, Decision, Event
from ark.control.fleet import Move
from ark.control.geometry import Geometry
from ark.control.policy import Policy
from ark.control.rows import Change, Drop, Row
from ark.control.view import View, view


class Replicas:
    """N deciders with N tables; what one announces, the others take in ``lag_ns`` later."""

    def __init__(self, geometry: Geometry, policy: Policy, *, hosts: int, lag_ns: int) -> None:
        self.lag_ns = lag_ns
        self.counters = Counters()
        self.views: list[View] = [view(policy, geometry) for _ in range(hosts)]
        self.deciders = [
            Decider(host, 0, policy=policy, view=own, counters=self.counters)
            for host, own in enumerate(self.views)
        ]
        self.travelling: deque[tuple[int, int, Row | Drop]] = deque()
        self.moves: list[Move] = []
        self.ticks = count(1)

    def stamp(self, now_ns: int) -> int:
        """Simulated time; without lag every host has heard all before, so a hybrid clock is ahead of all."""
        return now_ns if self.lag_ns else next(self.ticks)

    def flow_arrived(
        self, now_ns: int, host: int, flow: int, source: int, target: int, size_bytes: int, spread: int
    ) -> Decision:
        self.advance(now_ns)
        decision = self.deciders[host].flow_arrived(
            now_ns, self.stamp(now_ns), flow, source, target, size_bytes, spread=spread
        )
        self.send(now_ns, host, [decision])
        return decision

    def segment_ended(self, now_ns: int, host: int, flow: int, bytes_left: int) -> Decision | None:
        self.advance(now_ns)
        decision = self.deciders[host].segment_ended(now_ns, self.stamp(now_ns), flow, bytes_left)
        self.send(now_ns, host, [decision])
        return decision if decision.event is Event.MOVED else None

    def flow_completed(self, now_ns: int, host: int, flow: int) -> None:
        self.advance(now_ns)
        self.send(now_ns, host, [self.deciders[host].flow_completed(now_ns, flow)])

    def tick(self, now_ns: int) -> list[Move]:
        self.advance(now_ns)
        moves, self.moves = self.moves, []
        return moves

    def advance(self, now_ns: int) -> None:
        while True:
            deadlines = [decider.next_deadline() for decider in self.deciders]
            times = [deadline for deadline in deadlines if deadline is not None]
            if self.travelling:
                times.append(self.travelling[0][0] + self.lag_ns)
            if not times or min(times) > now_ns:
                return
            at_ns = min(times)
            while self.travelling and self.travelling[0][0] + self.lag_ns == at_ns:
                _, sender, message = self.travelling.popleft()
                self.deliver(at_ns, sender, message)
            for host, decider in enumerate(self.deciders):
                self.send(at_ns, host, decider.tick(at_ns))

    def deliver(self, now_ns: int, sender: int, message: Row | Drop) -> None:
        for host, own in enumerate(self.views):
            if host == sender:
                continue
            change: Change | None
            if isinstance(message, Row):
                change = own.table.put(message)
            else:
                change = own.table.remove(message.host, message.flow)
            assert change is not None
            decisions = self.deciders[host].row_changed(now_ns, self.stamp(now_ns), change)
            self.moves.extend(
                Move(host, decision.flow, decision.paths)
                for decision in decisions
                if decision.event is Event.MOVED
            )
            self.send(now_ns, host, decisions)

    def send(self, now_ns: int, host: int, decisions: list[Decision]) -> None:
        for decision in decisions:
            if decision.announce is not None:
                if self.lag_ns:
                    self.travelling.append((now_ns, host, decision.announce))
                else:
                    self.deliver(now_ns, host, decision.announce)

    def check(self) -> None:
        for own, decider in zip(self.views, self.deciders, strict=True):
            own.table.check()
            decider.check()
