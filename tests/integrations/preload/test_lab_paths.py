"""A program under ``ark run`` in a fabric of namespaces: real agents, the kernel's ECMP, counted bytes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ark.fabric import leaf_spine
from ark.lab.counters import Counters
from ark.lab.lab import Lab, lab
from ark.lab.scaled import scaled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root and network namespaces"),
]

SPINES = 4
SIZE = 400_000
CONNECTIONS = 8

RECEIVER = """
import socket, sys, threading
server = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
server.bind((sys.argv[1], 0)); server.listen(64); print(server.getsockname()[1], flush=True)
def take(made):
    while made.recv(65536):
        pass
    made.close()
while True:
    threading.Thread(target=take, args=(server.accept()[0],), daemon=True).start()
"""
SENDER = """
import json, socket, sys
where, size = (sys.argv[1], int(sys.argv[2])), int(sys.argv[3])
made = []
for line in sys.stdin:
    if len(made) < int(sys.argv[4]):
        made.append(socket.create_connection(where))
    made[-1].sendall(bytes(size)); made[-1].shutdown(socket.SHUT_WR); made[-1].recv(1)
    print(json.dumps(made[-1].getsockname()[1]), flush=True)
"""


@pytest.fixture(scope="module", params=["10.0.0.1", "fd00:1::1"])
def built(request: pytest.FixtureRequest, library: Path) -> Iterator[Lab]:
    del library  # without a compiler there is nothing to be tested
    fabric = scaled(leaf_spine(2, SPINES, 1, addresses=request.param), 10**9, hash_seed=5)
    with lab(fabric.lab, name=f"ark-lab.run{os.getpid()}") as made:
        made.agents.start("ark")
        made.agents.wait()
        yield made


def start(
    built: Lab, host: str, library: Path, log: Path, text: str, *arguments: str
) -> "subprocess.Popen[str]":
    ours = {
        "LD_PRELOAD": str(library),
        "ARK_SOCKET": str(built.agents.socket(host)),
        "ARK_RUN_WAIT_MS": "5000",
    }
    with built.made.inside(host):
        return subprocess.Popen(
            [sys.executable, "-c", text, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | ours | {"ARK_RUN_LOG": str(log)},
        )


def hear(program: "subprocess.Popen[str]") -> int:
    assert program.stdout is not None
    return int(json.loads(program.stdout.readline()))


def test_every_connection_takes_the_path_it_was_given(built: Lab, library: Path, tmp_path: Path) -> None:
    fabric = built.made.fabric
    target = fabric.nic("h1").address
    uplinks = [
        next(link.index for link in fabric.links if (link.source, link.target) == ("leaf0", f"spine{number}"))
        for number in range(SPINES)
    ]
    receiver = start(built, "h1", library, tmp_path / "none", RECEIVER, target)
    port = hear(receiver)
    log = tmp_path / "log"
    sender = start(built, "h0", library, log, SENDER, target, str(port), str(SIZE), str(CONNECTIONS))
    assert sender.stdin is not None
    taken = []
    counters = Counters(built.made, uplinks)
    for _ in range(CONNECTIONS):
        counters.clear()
        counters.read(0.0)
        sender.stdin.write("\n")
        sender.stdin.flush()
        own = hear(sender)
        counters.read(1.0)
        sent = counters.series()[1][-1].tolist()
        path = sent.index(max(sent))
        assert sent[path] >= SIZE
        assert sum(sent) - sent[path] < SIZE / 100
        assert (
            log.read_text().splitlines()[-1].endswith(f"target={target} dport={port} path={path} port={own}")
        )
        taken.append(path)
    counters.close()
    assert sorted(taken) == sorted(list(range(SPINES)) * (CONNECTIONS // SPINES))
    for program in (sender, receiver):
        program.kill()
        program.communicate()
