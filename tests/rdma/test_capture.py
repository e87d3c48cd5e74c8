"""What the capture makes of frames."""

import socket
import struct

from hypothesis import given
from hypothesis import strategies as st
from tests.rdma.guest.capture import Crossed, crossed

from ark.fabric.roce import DPORT


def frame(*, opcode: int, dest_qp: int, source_port: int, port: int = DPORT, ip: int = 0x45) -> bytes:
    ethernet = bytes(12) + b"\x08\x00"
    addresses = socket.inet_aton("10.1.0.2") + socket.inet_aton("10.2.0.2")
    network = bytes([ip, 0]) + bytes(7) + bytes([socket.IPPROTO_UDP]) + bytes(2) + addresses
    transport = struct.pack("!HHHH", source_port, port, 0, 0)
    return ethernet + network + transport + bytes([opcode]) + bytes(4) + dest_qp.to_bytes(3, "big") + bytes(4)


@given(st.integers(0, 255), st.integers(0, 0xFF_FFFF), st.integers(0, 0xFFFF))
def test_a_packet_of_roce_is_told_by_port_queue_pair_and_kind(
    opcode: int, dest_qp: int, source_port: int
) -> None:
    found = crossed(3, frame(opcode=opcode, dest_qp=dest_qp, source_port=source_port))
    assert found == Crossed(3, "10.1.0.2", source_port, dest_qp, opcode not in {0x11, 0x12})


def test_other_packets_are_none_of_ours() -> None:
    assert crossed(0, frame(opcode=10, dest_qp=1, source_port=50_000, port=53)) is None
    assert crossed(0, frame(opcode=10, dest_qp=1, source_port=50_000, ip=0x46)) is None


@given(st.binary(max_size=100))
def test_garbage_is_read_or_left(data: bytes) -> None:
    crossed(0, data)
