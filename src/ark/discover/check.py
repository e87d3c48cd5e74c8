"""Ask again which switches some known ports cross. Pure."""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from ark.discover.probe import Flow, Probe


class Verdict(StrEnum):
    """What a check says of one port."""

    SAME = "same"
    MOVED = "moved"
    SILENT = "silent"


class Check:
    """Asks again which switches some ports cross, and compares; ``Prober`` runs it.

    Parameters
    ----------
    flow
        The pair's flow.
    expected
        The name of the switch at each position, for each port.
    names
        The switch that an address belongs to.
    """

    def __init__(
        self, flow: Flow, expected: Mapping[int, Mapping[int, str]], names: Mapping[str, str], *, turn: int
    ) -> None:
        self.expected = expected
        self._names = names
        self._queue = deque(
            Probe(replace(flow, sport=port), position, turn)
            for port, positions in expected.items()
            for position in positions
        )
        self._left = len(self._queue)
        self._verdicts: dict[int, Verdict] = dict.fromkeys(expected, Verdict.SAME)

    @property
    def is_done(self) -> bool:
        """See ``Asking``."""
        return not self._left

    @property
    def verdicts(self) -> Mapping[int, Verdict]:
        """What became of each port; a port that moved counts as moved also if a switch was silent."""
        return self._verdicts

    def start(self) -> None:
        """See ``Asking``."""

    def next_probe(self) -> Probe | None:
        """See ``Asking``."""
        return self._queue.popleft() if self._queue else None

    def answered(self, probe: Probe, router: str, *, expired: bool) -> None:
        """See ``Asking``."""
        self._left -= 1
        port = probe.flow.sport
        if not expired or self._names.get(router, router) != self.expected[port][probe.hop]:
            self._verdicts[port] = Verdict.MOVED

    def gave_up(self, probe: Probe) -> None:
        """See ``Asking``."""
        self._left -= 1
        if self._verdicts[probe.flow.sport] is Verdict.SAME:
            self._verdicts[probe.flow.sport] = Verdict.SILENT

    def check(self) -> None:
        """See ``Asking``."""
        assert 0 <= len(self._queue) <= self._left
