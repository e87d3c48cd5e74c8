"""Mooncake's engine as the data mover: transfers one by one, each judged by the counters of the uplinks.

The engine is the unmodified one of PyPI (``mooncake-transfer-engine-non-cuda``), under ``ark run`` and in
``ark.integrations.mooncake.SteeredEngine``: one connection a path, the agent's choice for each transfer.
"""

import importlib.util
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar

import msgspec

from ark.errors import LabError
from ark.fabric import Nic
from ark.integrations.preload import LIBRARY
from ark.lab.counters import Counters
from ark.lab.lab import Lab
from ark.lab.mooncake_mover import Check, Checked, Opened, Write, Written, answers
from ark.lab.pattern import checksum, pattern

WRITE_BYTES: Final = 16 * 2**20
"""Size of a write, as Mooncake cuts large transfers."""

HOSTS_MAX: Final = 4
"""Senders, and receivers: a sending process holds one engine a path, each with threads of its own."""

ANSWER_S: Final = 120.0
CHOSEN_SHARE_MIN: Final = 0.99
"""Share of a transfer's bytes that must be on the chosen path."""


T = TypeVar("T", Opened, Written, Checked)


@dataclass(frozen=True, slots=True)
class Moved:
    """One write: the path chosen, the share of bytes counted there, and whether its bytes are right."""

    transfer: int
    source: str
    target: str
    path: int | None
    share: float
    right: bool

    @property
    def held(self) -> bool:
        """Steered, on the chosen path, and right."""
        return self.right and self.path is not None and self.share >= CHOSEN_SHARE_MIN


def require() -> None:
    """Refuse to go on without the engine or the preload library.

    Raises
    ------
    LabError
        Which of them is missing, and what to do.
    """
    if importlib.util.find_spec("mooncake") is None:
        raise LabError(
            "Mooncake's engine is not installed; run: pip install mooncake-transfer-engine-non-cuda"
        )
    if not LIBRARY.exists():
        raise LabError(
            "the preload library is not built; with a C compiler run: python -m ark.integrations.preload"
        )


def move(lab: Lab, transfers: int, seed: int) -> Iterator[Moved]:
    """Write so many times from random prefill hosts to random decode hosts; agents must be running.

    Raises
    ------
    LabError
        If an engine does not start, or ends.
    """
    fabric, draw = lab.made.fabric, Random(seed)
    sources = [fabric.host(name).nics[0] for name in fabric.prefill[:HOSTS_MAX]]
    targets = [fabric.host(name).nics[0] for name in fabric.decode[:HOSTS_MAX]]
    with ExitStack() as stack:
        engines = {nic.name: _Engine(lab, nic) for nic in (*sources, *targets)}
        for engine in engines.values():
            stack.callback(engine.end)
        opened = {name: engine.opened() for name, engine in engines.items()}
        for transfer in range(transfers):
            source, target = draw.choice(sources), draw.choice(targets)
            yield _one(lab, transfer, engines[source.name], engines[target.name], opened[target.name])


def _one(lab: Lab, transfer: int, source: "_Engine", target: "_Engine", where: Opened) -> Moved:
    fabric = lab.made.fabric
    paths = fabric.paths(source.nic, target.nic)
    first_links = {path.index: next(k for k in path.links if fabric.is_fabric_link(k)) for path in paths}
    counters = Counters(lab.made, tuple(dict.fromkeys(first_links.values())))
    try:
        counters.read(0.0)
        source.tell(Write(transfer, where.session, where.buffer, WRITE_BYTES))
        written = source.hear(Written)
        counters.read(1.0)
    finally:
        counters.close()
    target.tell(Check(WRITE_BYTES))
    right = target.hear(Checked).checksum == checksum(memoryview(pattern()), transfer, WRITE_BYTES)
    sent = dict(zip(counters.links, counters.series()[1][-1].tolist(), strict=True))
    on_path = 0 if written.path is None else sent[first_links[written.path]]
    share = on_path / max(1, sum(sent.values()))
    return Moved(
        transfer, source.nic.name, target.nic.name, written.path, share, right and not written.result
    )


class _Engine:
    """The engine's process of one host."""

    def __init__(self, lab: Lab, nic: Nic) -> None:
        self.nic = nic
        self._left = b""
        self._log = lab.directory / f"mooncake-{nic.name}.log"
        socket = lab.agents.socket(nic.host)
        steered = [sys.executable, "-m", "ark.cli.main", "run", "--socket", str(socket), "--wait", "5s"]
        steered += ["--log", str(lab.directory / f"connections-{nic.name}.log"), "--"]
        mover = [sys.executable, "-m", "ark.lab.mooncake_mover", nic.address, str(WRITE_BYTES)]
        with lab.made.inside(nic.name), self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own modules, no shell
                [*steered, *mover],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )

    def opened(self) -> Opened:
        """Where others may write, once the engine is there."""
        return self.hear(Opened)

    def tell(self, command: Write | Check) -> None:
        """Send one order."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(command) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed() from None

    def hear(self, kind: type[T]) -> T:
        """The next answer, which must be of one kind.

        Raises
        ------
        LabError
            If the engine says nothing for ``ANSWER_S``, or something else.
        """
        out = self._process.stdout
        assert out is not None
        while b"\n" not in self._left:
            ready, _, _ = select.select([out], [], [], ANSWER_S)
            text = os.read(out.fileno(), 65_536) if ready else b""
            if not text:
                raise self._failed()
            self._left += text
        first, _, self._left = self._left.partition(b"\n")
        answer = answers.decode(first)
        if not isinstance(answer, kind):
            raise self._failed()
        return answer

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _failed(self) -> LabError:
        lines = self._log.read_text("utf-8", errors="replace").splitlines()
        said = json.dumps(lines[-1]) if lines else "nothing"
        return LabError(f"Mooncake's engine on {self.nic.name} has ended or hangs; it said {said}")
