"""A program that knows nothing of ARK: NIXL with UCX over TCP. ROLE ADDRESS SIZE."""

import base64
import json
import sys
import time
from collections.abc import Mapping

import numpy as np
from nixl_cu12._api import nixl_agent, nixl_agent_config


def say(answer: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


role, size = sys.argv[1], int(sys.argv[3])
agent = nixl_agent(role, nixl_agent_config(backends=["UCX"]))
memory = np.zeros(size, np.uint8)
agent.register_memory([(memory.ctypes.data, size, 0, "")], mem_type="DRAM")
if role == "receive":
    session = base64.b64encode(agent.get_agent_metadata()).decode()
    say({"session": session, "place": memory.ctypes.data})
    for _ in sys.stdin:
        say({"sum": int(memory.sum(dtype=np.uint64))})
else:
    peers: dict[str, str] = {}
    for line in sys.stdin:
        order = json.loads(line)
        if order["session"] not in peers:
            peers[order["session"]] = agent.add_remote_agent(base64.b64decode(order["session"]))
        memory[:] = order["value"]
        ours = agent.get_xfer_descs([(memory.ctypes.data, size, 0)], mem_type="DRAM")
        theirs = agent.get_xfer_descs([(order["place"], size, 0)], mem_type="DRAM")
        handle = agent.initialize_xfer("WRITE", ours, theirs, peers[order["session"]])
        state = agent.transfer(handle)
        while state == "PROC":
            time.sleep(0.001)
            state = agent.check_xfer_state(handle)
        agent.release_xfer_handle(handle)
        say({"ok": state == "DONE"})
