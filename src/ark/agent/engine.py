"""The shell around the controller: reads the clocks, feeds it, does what it returned, arms one timer."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, Final, ParamSpec

from ark.agent.logs import log
from ark.agent.transport import Transport
from ark.control.controller import Controller, Output
from ark.control.decision import Decision
from ark.control.histogram import Times, decades_ns
from ark.control.reports import Report
from ark.control.wire import Keys
from ark.units import NS_PER_S

P = ParamSpec("P")

DECISION_BOUNDS_NS: Final = decades_ns(1_000, 5)
"""Classes of times to decide: 1 µs to 50 ms."""

LATE_BOUNDS_NS: Final = decades_ns(100_000, 5)
"""Classes of the timer's lateness: 100 µs to 5 s."""

GRAIN_NS: Final = 1_000_000
"""How finely the event loop can wait. A timer that rings within it is not set anew: under load, looking for
the next deadline after each input would cost a tenth of the whole."""


class Engine:
    """Runs a controller in the event loop.

    Parameters
    ----------
    decided
        Takes decisions, before anything is sent: clients are answered first.
    store
        Writes down a new epoch, before anything is sent in it.

    Attributes
    ----------
    decision_times
        Of inputs of clients.
    late_times
        By how much the timer was late: a loop that is too busy.
    """

    def __init__(
        self,
        controller: Controller,
        transport: Transport,
        *,
        decided: Callable[[Sequence[Decision], int], None],
        store: Callable[[int], None],
    ) -> None:
        self.controller = controller
        self.transport = transport
        self.decision_times = Times(DECISION_BOUNDS_NS)
        self.late_times = Times(LATE_BOUNDS_NS)
        self._decided = decided
        self._store = store
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ns = 0

    def start(self) -> None:
        """Begin to hear peers and to keep time, from within a running event loop."""
        self._loop = asyncio.get_running_loop()
        self.transport.start(self._receive)
        self._arm(time.monotonic_ns())

    def stop(self) -> None:
        """Neither hear nor keep time any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop = None
        self.transport.close()

    def feed(
        self, give: Callable[Concatenate[int, int, P], Output], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Tell the controller what a client does.

        Raises
        ------
        LocalProtocolError
            If the client broke a rule.
        """
        now = time.monotonic_ns()
        self._follow(give(now, time.time_ns(), *args, **kwargs), now)
        self.decision_times.add(time.monotonic_ns() - now)

    def reconfigure(self, keys: Keys, peers: Mapping[int, str], peers_expected: int) -> None:
        """Let the controller use other keys and hear other hosts."""
        now = time.monotonic_ns()
        output = self.controller.reconfigure(
            now, time.time_ns(), keys=keys, peers=peers, peers_expected=peers_expected
        )
        self._follow(output, now)

    def _receive(self, data: bytes, address: str) -> None:
        now = time.monotonic_ns()
        self._follow(self.controller.message_received(now, time.time_ns(), data, address), now)

    def _tick(self) -> None:
        self._timer = None
        now = time.monotonic_ns()
        if now >= self._armed_ns:
            self.late_times.add(now - self._armed_ns)
        if now >= self.controller.next_deadline():
            self._follow(self.controller.tick(now, time.time_ns()), now)
        else:
            self._arm(now)

    def _follow(self, output: Output, now: int) -> None:
        if output.decisions:
            self._decided(output.decisions, now)
        if output.epoch is not None:
            self._store(output.epoch)
        if output.sends:
            self.transport.send(output.sends)
        for report in output.reports:
            self._report(report, output.cause)
        self._arm(now)

    def _arm(self, now: int) -> None:
        """Let the timer ring at the next deadline, or sooner: a ring too soon only arms it again."""
        if self._loop is None or (self._timer is not None and self._armed_ns - now <= GRAIN_NS):
            return
        deadline = max(now, self.controller.next_deadline())
        if self._timer is not None:
            if self._armed_ns <= deadline:
                return
            self._timer.cancel()
        self._armed_ns = deadline
        self._timer = self._loop.call_at(deadline / NS_PER_S, self._tick)

    def _report(self, report: Report, cause: int) -> None:
        log(
            logging.WARNING,
            report.trouble.value,
            host=f"{report.host:016x}",
            detail=report.detail,
            cause=cause,
        )
