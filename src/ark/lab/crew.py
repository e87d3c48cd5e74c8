"""The processes that send and receive, one in the namespace of each host, and what they say."""

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Final

from ark.errors import LabError
from ark.lab.agents import Agents
from ark.lab.clos import Clos
from ark.lab.orders import Answer, Command, Done, Order, Ready, Run, Warm, answers, line
from ark.lab.pattern import memory_file, pattern

START_S: Final = 60.0
LEAD_NS: Final = 300_000_000
"""From the order to the start of a run: time for every process to have its list."""

TURN_S: Final = 0.1
"""How often ``each_turn`` is called while transfers run."""

DONE_S: Final = 150.0
"""How long after the start of the last transfer all must have ended: twice what one may stand still."""


class Crew:
    """The processes of all hosts."""

    def __init__(self, made: Clos, agents: Agents, *, window_bytes: int) -> None:
        self._made = made
        self._agents = agents
        self._window_bytes = window_bytes
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._left: dict[str, bytes] = {}
        self._selector = selectors.DefaultSelector()

    @property
    def processes(self) -> list[int]:
        """The numbers of the processes."""
        return [process.pid for process in self._running.values()]

    def start(self) -> None:
        """Start all, and wait until they listen."""
        file = memory_file(pattern())
        try:
            for nic in self._made.fabric.nics:
                self._start(nic.name, nic.address, file)
        finally:
            os.close(file)
        self._wait(set(self._running))

    def warm(self, targets: Mapping[str, Sequence[str]]) -> None:
        """Let the agents of these hosts make their path maps to the hosts that they will send to."""
        for host, names in targets.items():
            self._tell(host, Warm(tuple(names)))
        self._wait(set(targets))

    def run(self, orders: Mapping[str, Sequence[Order]], each_turn: Callable[[float], None]) -> list[Done]:
        """Carry out the orders, by sending host; what became of each transfer, in order of number.

        ``each_turn`` is called about every ``TURN_S`` with the seconds since the start.

        Raises
        ------
        LabError
            If a process ends, or some transfers are never heard of again.
        """
        begin_ns = time.monotonic_ns() + LEAD_NS
        for host, its in orders.items():
            self._tell(host, Run(begin_ns, tuple(its)))
        wanted = sum(len(its) for its in orders.values())
        last_ns = max((order.start_ns for its in orders.values() for order in its), default=0)
        end_s = last_ns / 1e9 + DONE_S
        done: list[Done] = []
        ready: set[str] = set()
        turn_s = -LEAD_NS / 1e9  # once before anything moves
        while len(done) < wanted or len(ready) < len(orders):
            now_s = (time.monotonic_ns() - begin_ns) / 1e9
            if now_s > end_s:
                raise LabError(f"{wanted - len(done)} of {wanted} transfers did not end in {end_s:.0f} s")
            if now_s >= turn_s:
                each_turn(now_s)
                turn_s = now_s + TURN_S
            for host, answer in self._hear(max(0.0, min(turn_s - now_s, TURN_S))):
                if isinstance(answer, Done):
                    done.append(answer)
                else:
                    ready.add(host)
        each_turn((time.monotonic_ns() - begin_ns) / 1e9)
        return sorted(done, key=lambda one: one.transfer)

    def stop(self) -> None:
        """End all."""
        for process in self._running.values():
            process.kill()
        for process in self._running.values():
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        self._running.clear()
        self._selector.close()

    def _start(self, host: str, address: str, file: int) -> None:
        command = [sys.executable, "-m", "ark.lab.mover", host, address]
        with self._made.inside(host):
            process = subprocess.Popen(  # noqa: S603 - our own module, no shell
                [*command, str(self._agents.socket(host)), str(self._window_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[file],
                env=os.environ | {"ARK_LAB_PATTERN": str(file)},
                start_new_session=True,
            )
        self._running[host] = process
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, host)

    def _tell(self, host: str, command: Command) -> None:
        pipe: IO[bytes] | None = self._running[host].stdin
        assert pipe is not None
        try:
            pipe.write(line(command))
            pipe.flush()
        except BrokenPipeError:
            raise LabError(f"the process that sends and receives for {host} has ended") from None

    def _wait(self, hosts: set[str]) -> None:
        """Return once all these have said that they are ready."""
        end_s = time.monotonic() + START_S
        waiting = set(hosts)
        while waiting:
            if time.monotonic() > end_s:
                raise LabError(
                    f"after {START_S:.0f} s these hosts are not ready: {', '.join(sorted(waiting))}"
                )
            waiting -= {host for host, answer in self._hear(TURN_S) if isinstance(answer, Ready)}

    def _hear(self, timeout_s: float) -> Iterator[tuple[str, Answer]]:
        for key, _ in self._selector.select(timeout_s):
            host = str(key.data)
            text = os.read(key.fd, 65_536)
            if not text:
                raise LabError(f"the process that sends and receives for {host} has ended")
            *lines, self._left[host] = (self._left.get(host, b"") + text).split(b"\n")
            for one in lines:
                yield host, answers.decode(one)
