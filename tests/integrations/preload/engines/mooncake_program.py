"""A program that knows nothing of ARK: the Mooncake Transfer Engine over TCP. ROLE ADDRESS SIZE."""

import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from mooncake.engine import TransferEngine


def say(answer: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


role, address, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
engine = TransferEngine()
if engine.initialize(address, "P2PHANDSHAKE", "tcp", "") != 0:
    sys.exit("the engine does not start")
memory = np.zeros(size, np.uint8)
engine.register_memory(memory.ctypes.data, size)
if role == "receive":
    say({"session": f"{address}:{engine.get_rpc_port()}", "place": memory.ctypes.data})
    for _ in sys.stdin:
        say({"sum": int(memory.sum(dtype=np.uint64))})
else:
    for line in sys.stdin:
        order = json.loads(line)
        memory[:] = order["value"]
        one = (order["session"], memory.ctypes.data, order["place"], size)
        with ThreadPoolExecutor(16) as pool:
            running = [pool.submit(engine.transfer_sync_write, *one) for _ in range(order["at_once"])]
        say({"ok": all(transfer.result() == 0 for transfer in running)})
