"""Mooncake's real engine on loopback: a receiver, and a sender that ARK steers, under ``ark run``."""

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.contracts.programs.sockets import carrier, connections, path_by_port, record

RECEIVER = "127.0.0.2"
SIZE = 4 << 20


def receive(folder: Path) -> None:
    from mooncake.engine import TransferEngine  # noqa: PLC0415 - only where it is installed

    buffer = ctypes.create_string_buffer(SIZE)
    engine = TransferEngine()
    assert engine.initialize(RECEIVER, "P2PHANDSHAKE", "tcp", "") == 0
    assert engine.register_memory(ctypes.addressof(buffer), SIZE) == 0
    session = f"{RECEIVER}:{engine.get_rpc_port()}"
    ready = folder / "ready.tmp"
    ready.write_text(json.dumps([session, ctypes.addressof(buffer)]))
    ready.rename(folder / "ready")
    sys.stdin.read(1)  # until the test has enough
    (folder / "received").write_bytes(buffer.raw[:16])


def send(folder: Path) -> None:
    from mooncake.engine import TransferEngine  # noqa: PLC0415

    from ark.integrations import mooncake  # noqa: PLC0415

    session, address = json.loads((folder / "ready").read_text())
    buffer = ctypes.create_string_buffer(b"ARK" * (SIZE // 3), SIZE)
    here = ctypes.addressof(buffer)
    engine = mooncake.SteeredEngine(TransferEngine)
    assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") == 0
    assert engine.register_memory(here, SIZE) == 0
    chosen = record(engine.steering)
    results: list[Any] = []
    for _ in range(12):
        before = connections()
        assert (
            engine.batch_transfer_sync_write(
                session, [here, here + 1000], [address, address + 1000], [1000, SIZE - 1000]
            )
            == 0
        )
        results.append([chosen[-1], path_by_port(carrier(before, SIZE))])
    sys.stdout.write(json.dumps(results))
    sys.stdout.flush()
    os._exit(0)  # several engines in one process end in any order


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](Path(sys.argv[2]))
    os._exit(0)
