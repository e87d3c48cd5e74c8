"""``python -m ark.lab.mover HOST ADDRESS SOCKET WINDOW``: the process of one host, which sends and receives.

It listens at once; what to send comes as lines on standard input (``ark.lab.orders``), and what became of it
goes to standard output. Every transfer has a thread and a connection of its own: bytes leave by ``sendfile``
from memory, the receiver answers with their length and checksum, and only then a transfer is complete. The
file of the bytes is inherited as descriptor ``ARK_LAB_PATTERN``.
"""

import errno
import os
import socket
import struct
import sys
import threading
import time
import zlib
from contextlib import suppress
from typing import Final

from ark.client import Client
from ark.integrations.tcp import connect, source_port
from ark.lab.orders import PORT, Answer, Done, Order, Ready, Run, Warm, commands, line
from ark.lab.pattern import pieces

PATIENCE_S: Final = 60
"""How long a connection may stand still before its transfer counts as failed."""

ANSWER_S: Final = 0.25
"""How long ARK's answer may take. An application waits less; but here few cores stand for many hosts."""

HEADER: Final = struct.Struct("!QQ")
"""Number of the transfer and size in bytes: what a sender says first."""

RECEIPT: Final = struct.Struct("!QI")
"""Length and CRC-32 of what came: what a receiver answers."""

RETRY_S: Final = 0.05
"""Wait before a host that no route led to is tried again."""

_NO_WAY: Final = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH})
_BLOCK: Final = 256 * 1024
_BACKLOG: Final = 1024
_NS: Final = 1_000_000_000
_WINDOW_CLAMP: Final = 10  # TCP_WINDOW_CLAMP; Source: Linux, include/uapi/linux/tcp.h
_TCP_INFO_BYTES: Final = 104
_TOTAL_RETRANSMITS: Final = 100  # offset of tcpi_total_retrans in struct tcp_info; Source: the same file


class Mover:
    """Sends and receives for one host."""

    def __init__(self, address: str, client: Client, pattern: int) -> None:
        self._address = address
        self._client = client
        self._pattern = pattern
        self._said = threading.Lock()

    def say(self, answer: Answer) -> None:
        """Write one line to whoever runs the lab."""
        text = line(answer)
        with self._said:
            os.write(sys.stdout.fileno(), text)

    def listen(self, window_bytes: int) -> None:
        """Take transfers from now on, in threads that end with the process."""
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        server = socket.create_server((self._address, PORT), family=family, backlog=_BACKLOG)
        server.setsockopt(socket.IPPROTO_TCP, _WINDOW_CLAMP, window_bytes)
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()

    def warm(self, targets: tuple[str, ...]) -> None:
        """Let the agent make its path maps."""
        for target in targets:
            self._client.lanes(target, PORT, proto="tcp").release()

    def run(self, command: Run) -> None:
        """Begin each transfer at its time."""
        for order in command.orders:
            due_ns = command.begin_ns + order.start_ns
            left_ns = due_ns - time.monotonic_ns()
            if left_ns > 0:
                time.sleep(left_ns / _NS)
            threading.Thread(target=self._send, args=(order, due_ns), daemon=True).start()

    def _send(self, order: Order, due_ns: int) -> None:
        late_ns = time.monotonic_ns() - due_ns
        if order.source_port is not None:
            self.say(self._carry(order, due_ns, late_ns, order.source_port))
            return
        asked_ns = time.monotonic_ns()
        with self._client.transfer(order.target, order.size_bytes, dport=PORT, proto="tcp") as chosen:
            done = self._carry(
                order,
                due_ns,
                late_ns,
                chosen.source_port,
                path=chosen.path,
                kind=chosen.kind,
                reason=chosen.reason,
                reserve_ns=time.monotonic_ns() - asked_ns,
            )
        self.say(done)  # after the release: who has heard of all ends finds no claim

    def _carry(
        self,
        order: Order,
        due_ns: int,
        late_ns: int,
        port: int | None,
        *,
        path: int | None = None,
        kind: str = "",
        reason: str = "",
        reserve_ns: int = 0,
    ) -> Done:
        """Move the bytes of one transfer, and have their receipt."""
        sport = retransmits = 0
        try:
            with self._connection(order, port) as made:
                sport = source_port(made)
                error = self._exchange(made, order)
                information = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
                (retransmits,) = struct.unpack_from("=I", information, _TOTAL_RETRANSMITS)
                fct_ns = time.monotonic_ns() - due_ns
                # All has arrived: end by a reset, so that no TIME_WAIT keeps the port from the next transfer.
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
        except OSError as failure:
            error = failure.strerror or str(failure) or type(failure).__name__
            fct_ns = time.monotonic_ns() - due_ns
        return Done(
            order.transfer, sport, path, kind, reason, late_ns, reserve_ns, fct_ns, retransmits, error
        )

    def _connection(self, order: Order, port: int | None) -> socket.socket:
        """Connect; while the fabric looks for another way, there may be none for a moment."""
        ports = () if port is None else (port,)
        end_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                return connect((order.address, PORT), source=self._address, ports=ports, timeout_s=PATIENCE_S)
            except OSError as error:
                if error.errno not in _NO_WAY or time.monotonic() > end_s:
                    raise
            time.sleep(RETRY_S)

    def _exchange(self, made: socket.socket, order: Order) -> str:
        """Send the bytes and compare the receipt; what is wrong, or nothing."""
        patience = struct.pack("=qq", PATIENCE_S, 0)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, patience)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, patience)
        made.send(HEADER.pack(order.transfer, order.size_bytes), socket.MSG_MORE)
        for offset, length in pieces(order.transfer, order.size_bytes):
            sent = 0
            while sent < length:
                sent += os.sendfile(made.fileno(), self._pattern, offset + sent, length - sent)
        receipt = made.recv(RECEIPT.size, socket.MSG_WAITALL)
        if len(receipt) < RECEIPT.size:
            return "the receiver ended early"
        length, found = RECEIPT.unpack(receipt)
        if length != order.size_bytes:
            return f"{length} of {order.size_bytes} bytes came"
        return "" if found == order.checksum else f"checksum {found:08x}, not {order.checksum:08x}"

    def _accept(self, server: socket.socket) -> None:
        while True:
            made, _ = server.accept()
            threading.Thread(target=_receive, args=(made,), daemon=True).start()


def _receive(made: socket.socket) -> None:
    """Take one transfer and answer with its receipt; a sender that breaks off is its own affair."""
    with made, suppress(OSError):
        header = made.recv(HEADER.size, socket.MSG_WAITALL)
        if len(header) < HEADER.size:
            return
        _, size_bytes = HEADER.unpack(header)
        block = bytearray(min(_BLOCK, max(1, size_bytes)))
        view = memoryview(block)
        came = found = 0
        while came < size_bytes:
            count = made.recv_into(view[: min(len(block), size_bytes - came)], 0, socket.MSG_WAITALL)
            if not count:
                break
            found = zlib.crc32(view[:count], found)
            came += count
        made.sendall(RECEIPT.pack(came, found))
        made.recv(1)  # the sender ends first


def main(host: str, address: str, agent: str, window_bytes: str) -> None:
    """Serve until standard input ends."""
    mover = Mover(address, Client(agent, timeout_s=ANSWER_S), int(os.environ["ARK_LAB_PATTERN"]))
    mover.listen(int(window_bytes))
    threading.current_thread().name = host
    mover.say(Ready())
    for text in sys.stdin.buffer:
        command = commands.decode(text)
        if isinstance(command, Warm):
            mover.warm(command.targets)
        else:
            mover.run(command)
        mover.say(Ready())


if __name__ == "__main__":
    main(*sys.argv[1:])
