"""NIXL's real agent on loopback: a receiver, and a sender that ARK steers.

UCX has one address on the loopback device, and ``ark run`` leaves alone what a host sends to itself: the
program says there which path a connection takes.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

import nixl_cu12._api as nixl
import numpy as np
from tests.contracts.programs.sockets import OpenedHere, be_patient, carrier, connections, path_of, record

BLOCK = 65_536
BLOCKS = 64
SIZE = BLOCK * BLOCKS


def receive(folder: Path) -> None:
    buffer = ctypes.create_string_buffer(SIZE)
    agent = nixl.nixl_agent("decode", nixl.nixl_agent_config(num_threads=0))
    agent.register_memory([(ctypes.addressof(buffer), SIZE, 0, "")], "DRAM")
    (folder / "metadata").write_bytes(agent.get_agent_metadata())
    ready = folder / "ready.tmp"
    ready.write_text(json.dumps(["decode", ctypes.addressof(buffer)]))
    ready.rename(folder / "ready")
    sys.stdin.read(1)
    agent.get_new_notifs()
    (folder / "received").write_bytes(buffer.raw[:16])


def send(folder: Path) -> None:
    be_patient()
    from ark.integrations import nixl as ours  # noqa: PLC0415
    from ark.integrations.sessions import talking_to  # noqa: PLC0415

    if os.environ["RECEIVER"].startswith("127."):
        vars(ours)["ConnectionLog"] = OpenedHere
    name, address = json.loads((folder / "ready").read_text())
    buffer = ctypes.create_string_buffer(b"ARK" * (SIZE // 3), SIZE)
    steering = ours.steering_for_ucx()
    chosen = record(steering)
    agent = ours.steered_agent(nixl.nixl_agent, steering)("prefill", nixl.nixl_agent_config(num_threads=4))
    agent.register_memory([(ctypes.addressof(buffer), SIZE, 0, "")], "DRAM")
    with talking_to(f"tcp://{os.environ['RECEIVER']}:5600"):
        agent.add_remote_agent((folder / "metadata").read_bytes())
    local, remote = (
        agent.prep_xfer_dlist(who, np.array([[start, BLOCK, 0, BLOCK, BLOCKS]], dtype=np.uint64), "DRAM")
        for who, start in (("", ctypes.addressof(buffer)), (name, address))
    )
    indices = np.arange(BLOCKS, dtype=np.int32)
    for _ in sys.stdin:  # one transfer a line
        before = connections()
        handle = agent.make_prepped_xfer("WRITE", local, indices, remote, indices)
        state = agent.transfer(handle)
        while state == "PROC":
            state = agent.check_xfer_state(handle)
        assert state == "DONE"
        print(json.dumps([chosen[-1], path_of(carrier(before, SIZE))]), flush=True)  # noqa: T201
        agent.release_xfer_handle(handle)
    os._exit(0)  # NIXL 1.5.1 itself crashes at the end of a process that has sent over UCX's TCP


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](Path(sys.argv[2]))
    os._exit(0)
