"""Mooncake's real engine on loopback: a receiver, and a sender that ARK steers, under ``ark run``."""

import ctypes
import json
import os
import sys
from pathlib import Path

from tests.contracts.programs.sockets import be_patient, carrier, connections, path_of, record

RECEIVER = os.environ["RECEIVER"]
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
    be_patient()
    from mooncake.engine import TransferEngine  # noqa: PLC0415

    from ark.integrations import mooncake  # noqa: PLC0415

    session, address = json.loads((folder / "ready").read_text())
    buffer = ctypes.create_string_buffer(b"ARK" * (SIZE // 3), SIZE)
    here = ctypes.addressof(buffer)
    engine = mooncake.SteeredEngine(TransferEngine)
    assert engine.initialize(os.environ["SENDER"], "P2PHANDSHAKE", "tcp", "") == 0
    assert engine.register_memory(here, SIZE) == 0
    chosen = record(engine.steering)
    for _ in sys.stdin:  # one transfer a line
        before = connections()
        assert (
            engine.batch_transfer_sync_write(
                session, [here, here + 1000], [address, address + 1000], [1000, SIZE - 1000]
            )
            == 0
        )
        print(json.dumps([chosen[-1], path_of(carrier(before, SIZE))]), flush=True)  # noqa: T201
    os._exit(0)  # several engines in one process end in any order


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](Path(sys.argv[2]))
    os._exit(0)
