"""What the guest runs: builds the Clos, starts the agents, sends, and writes down what was seen.

It judges nothing; ``tests/rdma/test_soft_roce.py`` does, on the host, with ``/mnt/result.json``.
"""

import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Final

from tests.rdma.guest import network
from tests.rdma.guest.agents import Agents
from tests.rdma.guest.capture import Capture
from tests.rdma.guest.ends import READ, SETTLE_S, WRITE, End, connected
from tests.rdma.guest.ibverbs_pair import ibverbs_pair
from tests.rdma.guest.network import HOSTS
from tests.rdma.guest.unmodified import unmodified

from ark.client import Lane, Transfer
from ark.fabric.roce import DPORT
from ark.integrations.roce import BY_NAME, PathQueuePairs
from ark.integrations.roce.on_pyverbs import move

PAIRS: Final = 8
PART_BYTES: Final = 1 << 16
SEGMENT_BYTES: Final = 1 << 18
BUFFER_BYTES: Final = max(PAIRS * PART_BYTES, 3 * SEGMENT_BYTES)
ANNOUNCED_BYTES: Final = 1 << 24
"""Size that the agents are told: long enough to be managed, so that the transfer counts."""

SLOW: Final = "1mbit"
TIMEOUT_S: Final = 60.0

SENDER, RECEIVER = HOSTS


def steered(agents: Agents, left: End, right: End) -> list[dict[str, object]]:
    """Transfers at once, each on a queue pair with the label that its agent gave; the last two by READ."""
    data = os.urandom(PAIRS * PART_BYTES)
    left.buffer.write(data, len(data))
    client = agents.client(SENDER)
    transfers = [client.transfer(RECEIVER.name, ANNOUNCED_BYTES, dport=DPORT) for _ in range(PAIRS)]
    pairs = []
    with Capture() as capture:
        for number, transfer in enumerate(transfers):
            ours, theirs, outcome = connected(left, right, transfer.source_port, None)
            pairs.append((ours, theirs, outcome))
            place = {"offset": number * PART_BYTES, "size_bytes": PART_BYTES, "number": number}
            if number < PAIRS - 2:
                left.post(ours, WRITE, to=right, **place)
                left.finished(1, TIMEOUT_S)
            else:
                right.post(theirs, READ, to=left, **place)
                right.finished(1, TIMEOUT_S)
        time.sleep(SETTLE_S)
    arrived = right.buffer.read(len(data), 0)
    found = []
    for number, (transfer, (_, theirs, outcome)) in enumerate(zip(transfers, pairs, strict=True)):
        part = slice(number * PART_BYTES, (number + 1) * PART_BYTES)
        found.append(
            {
                "path": transfer.path,
                "source_port": transfer.source_port,
                "outcome": str(outcome),
                "verb": "WRITE" if number < PAIRS - 2 else "READ",
                "spines": capture.spines(SENDER.address, theirs.qp_num),
                "ports": sorted(capture.ports(SENDER.address, theirs.qp_num)),
                "verified": arrived[part] == data[part],
            }
        )
        transfer.release()
    return found


def crowded(agents: Agents) -> tuple[Transfer, Transfer]:
    """Two transfers that share a path while all others are free: the first should move."""
    client = agents.client(SENDER)
    held = [client.transfer(RECEIVER.name, ANNOUNCED_BYTES, dport=DPORT) for _ in range(network.SPINES + 1)]
    rival = held.pop()
    (victim,) = (one for one in held if one.path == rival.path)
    for one in held:
        if one is not victim:
            one.release()
    return victim, rival


def moved(agents: Agents, left: End, right: End) -> dict[str, object]:
    """One transfer in three segments: over the throttled spine, moved by drain and move, over a lane."""
    data = os.urandom(3 * SEGMENT_BYTES)
    left.buffer.write(data, len(data))
    lanes = agents.client(SENDER).lanes(RECEIVER.name, DPORT)

    def connect(lane: Lane | None) -> tuple[object, object]:
        return connected(left, right, None if lane is None else lane.source_port, None)[:2]

    ready = PathQueuePairs(lanes, connect)
    ready.connect_all()
    victim, rival = crowded(agents)
    before = victim.path
    assert before is not None
    network.throttle(SENDER, before, SLOW)
    ours, theirs, _ = connected(left, right, victim.source_port, None)
    took_s = []
    spines = []
    outcome = None
    for segment in range(3):
        if segment == 1:
            victim.move(2 * SEGMENT_BYTES)
            assert victim.source_port is not None
            outcome = move(ours, victim.source_port, driver=left.driver)
        if segment == 2:
            ours, theirs = ready.of(victim.path)
        with Capture() as capture:
            began = time.monotonic()
            place = {"offset": segment * SEGMENT_BYTES, "size_bytes": SEGMENT_BYTES, "number": segment}
            left.post(ours, WRITE, to=right, **place)
            left.finished(1, TIMEOUT_S)
            took_s.append(time.monotonic() - began)
            time.sleep(SETTLE_S)
        spines.append(capture.spines(SENDER.address, theirs.qp_num))
    after = victim.path
    for one in (victim, rival, lanes):
        one.release()
    return {
        "paths": [before, after],
        "outcome": str(outcome),
        "took_s": took_s,
        "spines": spines,
        "lanes": len(ready),
        "verified": right.buffer.read(len(data), 0) == data,
    }


def alone(agents: Agents, left: End, right: End) -> dict[str, object]:
    """A transfer once the agents have gone: no preference, and the bytes arrive all the same."""
    data = os.urandom(PART_BYTES)
    left.buffer.write(data, len(data))
    transfer = agents.client(SENDER).transfer(RECEIVER.name, ANNOUNCED_BYTES, dport=DPORT)
    ours, _, outcome = connected(left, right, transfer.source_port, None)
    left.post(ours, WRITE, to=right, offset=0, size_bytes=PART_BYTES, number=0)
    left.finished(1, TIMEOUT_S)
    return {
        "path": transfer.path,
        "reason": transfer.reason,
        "outcome": str(outcome),
        "verified": right.buffer.read(PART_BYTES, 0) == data,
    }


def foreign(left: End, right: End) -> str:
    """What the real libmlx5 says of a queue pair that is none of its own."""
    ours, _, _ = connected(left, right, None, None)
    return str(move(ours, 50_000, driver=BY_NAME["mlx5"]))


def main() -> None:
    """Run all, and write what was seen."""
    began = time.monotonic()

    def say(what: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:6.1f} s: {what}\n")
        sys.stdout.flush()

    network.build()
    say("the Clos is built")
    agents = Agents(Path("/run/ark"))
    left, right = (End(host, BUFFER_BYTES) for host in HOSTS)
    say(f"devices are open, driver {left.driver.name}")
    agents.wait()
    say("the agents have heard each other")
    result: dict[str, object] = {"kernel": platform.release(), "python": sys.version.split()[0]}
    result["driver"] = left.driver.name
    result["steered"] = steered(agents, left, right)
    say("eight queue pairs have sent")
    result["ibverbs"] = ibverbs_pair(agents)
    say("a queue pair of the package ibverbs has sent")
    result["unmodified"] = unmodified(agents, (left.gid_index, right.gid_index))
    say("an unmodified program has sent")
    result["moved"] = moved(agents, left, right)
    say("a transfer has moved")
    result["foreign"] = foreign(left, right)
    agents.stop()
    result["alone"] = alone(agents, left, right)
    agents.close()
    Path("/mnt/result.json").write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
