"""Send bytes to another host, over the path that the agent of this host chooses.

On the receiving host:  python examples/send.py receive 9000
On the sending host:    python examples/send.py send h8 9000 "100 MB"

The name is that of the fabric file. Without an agent nothing is steered, and h8 must be a name that this host
can resolve, or an address.
"""

import contextlib
import socket
import sys
import threading
import time

from ark.client import Client
from ark.integrations.tcp import connect, source_port
from ark.units import format_rate, format_size, parse_size

PIECE = bytes(1 << 20)

WAIT_S = 1.0
"""For the agent's answer; an engine would not wait for longer than the usual 20 ms."""


def receive(port: int) -> None:
    """Take in all that comes, and say at the end of each transfer how much it was; until Ctrl-C."""
    with socket.create_server(("", port), backlog=64) as server:
        print(f"listening on port {server.getsockname()[1]}", flush=True)
        while True:
            threading.Thread(target=_take, args=(server.accept()[0],), daemon=True).start()


def _take(connection: socket.socket) -> None:
    total = 0
    with connection:
        while piece := connection.recv(len(PIECE)):
            total += len(piece)
        connection.sendall(total.to_bytes(8, "big"))


def send(host: str, port: int, size_bytes: int) -> None:
    """One transfer: ask for a path, send from the port that leads there, and wait until all has arrived."""
    with Client(timeout_s=WAIT_S).transfer(host, size_bytes, dport=port, proto="tcp") as path:
        target = (path.target_address or host, port)
        ports = [lane.source_port for lane in path.lanes if lane.source_port]
        with connect(target, source=path.source_address or "", ports=ports) as connection:
            start = time.perf_counter()
            left = size_bytes
            while left:
                left -= connection.send(PIECE[:left])
            connection.shutdown(socket.SHUT_WR)
            arrived = int.from_bytes(connection.recv(8, socket.MSG_WAITALL), "big")
            took_s = time.perf_counter() - start
            way = path.reason if path.path is None else f"path {path.path}"
            print(f"{way}, from port {source_port(connection)}: {format_size(arrived)} at", end=" ")
            print(format_rate(round(arrived * 8 / took_s)))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["receive", port]:
            with contextlib.suppress(KeyboardInterrupt):
                receive(int(port))
        case ["send", host, port, size]:
            try:
                send(host, int(port), parse_size(size))
            except OSError as error:
                sys.exit(f"{host}, port {port}: {error}")
        case _:
            sys.exit(__doc__)
