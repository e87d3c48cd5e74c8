"""The errors that ARK raises, and the one form in which they reach people.

::

    ArkError
    ├── ConfigError          the user's file or flag is wrong; exit code 2
    ├── ProtocolError
    │   ├── LocalProtocolError   our caller broke a rule: raised
    │   └── PeerProtocolError    a peer did: counted and dropped, never ends the daemon
    ├── AgentUnavailable     client side; the transfer goes on without a preference
    ├── SimulationError      a scenario cannot run, or the kernel broke an invariant (carries the seed)
    └── LabError             a capability or tool is missing, with the command that would supply it

This module imports nothing.
"""

from dataclasses import dataclass

FAULTS_SHOWN = 20
"""How many faults of one input a message lists; a wrong file can have one a line, people read the first."""


class ArkError(Exception):
    """Anything that ARK raises on purpose; ``str()`` of it is what a person should read."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in an input: where it stands, and what is wrong and allowed there.

    ``where`` reads ``fabric.toml: link[2].rate`` for structured files and ``flows.csv:17: size_bytes`` (line,
    then column name) for tables; ``what`` names the value, what is allowed, and what to do.
    """

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class ConfigError(ArkError):
    """A file or flag of the user's is wrong; all faults found in it come together."""

    def __init__(self, *faults: Fault | str) -> None:
        self.faults = faults
        shown = [str(fault) for fault in faults[:FAULTS_SHOWN]]
        if len(faults) > FAULTS_SHOWN:
            shown.append(f"... and {len(faults) - FAULTS_SHOWN} more")
        super().__init__("\n".join(shown))


class ProtocolError(ArkError):
    """A rule of the reservation protocol was broken."""


class LocalProtocolError(ProtocolError):
    """Our own caller broke a rule, for example by completing a flow that never arrived."""


class PeerProtocolError(ProtocolError):
    """A peer's datagram broke a rule; it is counted and dropped."""


class AgentUnavailable(ArkError):  # noqa: N818 - a state of the world, not a fault of the program
    """No agent answered; the transfer goes on without a preferred path."""


class SimulationError(ArkError):
    """A scenario cannot run, or an engine broke an invariant of its own; ``seed`` repeats it."""

    def __init__(self, message: str, *, seed: int | None = None) -> None:
        self.seed = seed
        super().__init__(message if seed is None else f"{message} (seed {seed})")


class LabError(ArkError):
    """The lab lacks a capability or a tool; the message names the command that supplies it."""
