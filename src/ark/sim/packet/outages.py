"""Links that fail and come back, and when the routing notices."""

from collections.abc import Sequence
from dataclasses import dataclass

from ark.sim.packet.simulation import Simulation


@dataclass(frozen=True, slots=True)
class LinkEvent:
    """A link, and its partner the other way, fails or comes back."""

    time_ns: int
    link: int
    up: bool


class Outages:
    """What is to happen to links, in order of time; routes follow each event ``reconverge_ns`` later.

    With None they never do: who sends over a link that is down loses it all until the link comes back.
    """

    def __init__(
        self, events: Sequence[LinkEvent], reconverge_ns: int | None, simulation: Simulation
    ) -> None:
        self._simulation = simulation
        self._coming = sorted(events, key=lambda event: event.time_ns)
        self._unnoticed: list[LinkEvent] = []
        self._reconverge_ns = reconverge_ns
        self.avoided: set[int] = set()
        """Links, both ways, that routes lead around."""

    @property
    def due_ns(self) -> int | None:
        """When ``happen`` has something to do next."""
        times = [event.time_ns for event in self._coming[:1]]
        if self._reconverge_ns is not None:
            times += [event.time_ns + self._reconverge_ns for event in self._unnoticed[:1]]
        return min(times, default=None)

    def happen(self, now_ns: int) -> bool:
        """Let links fail and come back up to ``now_ns``; True if routes are other ones from now on."""
        while self._coming and self._coming[0].time_ns <= now_ns:
            event = self._coming.pop(0)
            self._simulation.set_link(event.link, now_ns, up=event.up)
            self._unnoticed.append(event)
        before = set(self.avoided)
        while (
            self._reconverge_ns is not None
            and self._unnoticed
            and self._unnoticed[0].time_ns + self._reconverge_ns <= now_ns
        ):
            event = self._unnoticed.pop(0)
            both = {event.link, int(self._simulation.world.links[event.link].reverse)}
            self.avoided = self.avoided - both if event.up else self.avoided | both
        return self.avoided != before
