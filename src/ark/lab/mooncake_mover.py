"""``python -m ark.lab.mooncake_mover ADDRESS SIZE``: one host's Mooncake engine, unmodified, over TCP.

Started by ``ark.lab.mooncake`` under ``ark run``, so that the preload library chooses the ports of its
connections. Orders come as lines of JSON on standard input, answers go to standard output: a session to write
to, a transfer to send, or the checksum of what has come.
"""

import ctypes
import os
import sys
import zlib
from collections.abc import Sequence
from typing import Final

import msgspec

from ark.client import Client
from ark.integrations.mooncake import SteeredEngine
from ark.integrations.steering import Sending, Steering
from ark.integrations.wiring import lanes_to_make
from ark.lab.pattern import pattern, pieces

ANSWER_S: Final = 5.0
"""How long the agent's answer may take: few cores stand for many hosts here."""


class Write(msgspec.Struct, frozen=True, tag="write"):
    """Write the bytes of a transfer into a buffer of another host's engine."""

    transfer: int
    session: str
    buffer: int
    size_bytes: int


class Check(msgspec.Struct, frozen=True, tag="check"):
    """Say the checksum of the buffer's first bytes, and wipe them."""

    size_bytes: int


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The engine is there: where others may write."""

    session: str
    buffer: int


class Written(msgspec.Struct, frozen=True, tag="written"):
    """A transfer is over: the path that ARK chose, if it did, and the engine's result (0 is good)."""

    path: int | None
    result: int


class Checked(msgspec.Struct, frozen=True, tag="checked"):
    """CRC-32 of what was in the buffer."""

    checksum: int


commands: Final = msgspec.json.Decoder(Write | Check)
answers: Final = msgspec.json.Decoder(Opened | Written | Checked)


class Noting(Steering):
    """A steering that remembers which path the last transfer got."""

    path: int | None = None

    def begin(self, session: str, size_bytes: int, paths: Sequence[int | None]) -> Sending:
        """As of ``Steering``."""
        sending = super().begin(session, size_bytes, paths)
        self.path = paths[sending.lane] if sending.steered else None
        return sending


def main(address: str, size: str) -> None:
    """Serve until standard input ends."""
    from mooncake.engine import TransferEngine  # noqa: PLC0415 - the user's own installation

    size_bytes = int(size)
    client = Client(timeout_s=ANSWER_S)
    steering = Noting(lanes_to_make(dport=0, proto="tcp", client=client), dport=0, proto="tcp", client=client)
    engine = SteeredEngine(TransferEngine, steering)
    buffer = ctypes.create_string_buffer(size_bytes)
    here = ctypes.addressof(buffer)
    if engine.initialize(address, "P2PHANDSHAKE", "tcp", "") or engine.register_memory(here, size_bytes):
        sys.exit("Mooncake's engine does not start")
    say(Opened(f"{address}:{engine.get_rpc_port()}", here))
    for text in sys.stdin.buffer:
        command = commands.decode(text)
        if isinstance(command, Check):
            say(Checked(zlib.crc32(memoryview(buffer)[: command.size_bytes])))
            ctypes.memset(here, 0, command.size_bytes)
            continue
        _fill(here, command)
        result = engine.transfer_sync_write(command.session, here, command.buffer, command.size_bytes)
        say(Written(steering.path, result))
    os._exit(0)  # several engines in one process end in any order


def _fill(here: int, command: Write) -> None:
    """Put the bytes of a transfer into the buffer."""
    data = pattern()
    sent = b"".join(
        data[offset : offset + length] for offset, length in pieces(command.transfer, command.size_bytes)
    )
    ctypes.memmove(here, sent, len(sent))


def say(answer: Opened | Written | Checked) -> None:
    """Write one line; the engine logs to standard error, and must not write in between."""
    os.write(OUT, msgspec.json.encode(answer) + b"\n")


OUT: Final = os.dup(1)
"""Standard output as it was: what the engine itself prints goes to standard error."""

if __name__ == "__main__":
    os.dup2(2, 1)
    main(*sys.argv[1:])
