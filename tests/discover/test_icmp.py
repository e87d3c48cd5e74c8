"""ICMP errors: those that real kernels send are read, and no bytes whatsoever raise."""

from ipaddress import ip_address
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.discover.icmp import IcmpError, read_icmp4, read_icmp6
from ark.discover.probe import HOPS_MAX, Flow, Probe, internet_checksum, packet, quoted_mark

FLOWS = [
    Flow("10.0.0.1", "10.0.0.9", 17, 50_000, 4791),
    Flow("10.0.0.1", "10.0.0.9", 17, 50_000, 33_434),
    Flow("10.0.0.1", "10.0.0.9", 6, 50_000, 443),
    Flow("fd00::1", "fd00::9", 17, 50_000, 4791, 0x1234),
    Flow("fd00::1", "fd00::9", 6, 50_000, 443),
]


def quoted4(probe: Probe, *, kind: int = 11, code: int = 0, size: int = 28) -> bytes:
    """What a raw socket gives for a router's answer that quotes ``size`` bytes."""
    icmp = pack("!BBHI", kind, code, 0, 0) + packet(probe, 7)[:size]
    router = ip_address("172.16.0.5").packed
    header = pack("!BBHHHBBH", 0x45, 0, 20 + len(icmp), 1, 0, 64, 1, 0)
    return header + router + ip_address(probe.flow.src).packed + icmp


def read(flow: Flow, hop: int) -> IcmpError | None:
    probe = Probe(flow, hop)
    if ":" in flow.src:
        return read_icmp6(pack("!BBHI", 3, 0, 0, 0) + packet(probe, 7)[:48], "fd00::5")
    return read_icmp4(quoted4(probe))


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_an_answer_names_the_router_and_the_probe(flow: Flow) -> None:
    router = "fd00::5" if ":" in flow.src else "172.16.0.5"
    ends = (flow.src, flow.dst, flow.proto, flow.sport, flow.dport)
    marks = set()
    for hop in range(1, HOPS_MAX + 1):
        mark = quoted_mark(Probe(flow, hop), 7)
        assert read(flow, hop) == IcmpError(router, True, *ends, mark)
        marks.add(mark)
    assert len(marks) == HOPS_MAX  # the mark tells hops apart


def test_unreachable_is_told_from_expired() -> None:
    answer = read_icmp4(quoted4(Probe(FLOWS[1], 4), kind=3, code=3))
    assert answer is not None
    assert not answer.expired


@pytest.mark.parametrize(
    ("kind", "code", "size"), [(11, 1, 28), (0, 0, 28), (8, 0, 28), (11, 0, 27), (11, 0, 19)]
)
def test_other_messages_and_short_quotes_are_nothing(kind: int, code: int, size: int) -> None:
    assert read_icmp4(quoted4(Probe(FLOWS[0], 2), kind=kind, code=code, size=size)) is None


@pytest.mark.slow
@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    read_icmp4(data)
    read_icmp6(data, "fd00::5")


@pytest.mark.slow
@given(st.data())
def test_no_damage_to_a_real_answer_raises(data: st.DataObject) -> None:
    whole = bytearray(quoted4(Probe(FLOWS[0], 2), size=60))
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    found = read_icmp4(cut)
    assert found is None or (0 <= found.sport <= 0xFFFF and found.proto in {6, 17})
    read_icmp6(cut[20:], "fd00::5")


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_checksums_are_right(flow: Flow) -> None:
    """The sum over pseudo header and segment of a right packet is zero (RFC 1071)."""
    whole = packet(Probe(flow, 3, turn=2), 0xABCDEF, dscp=26)
    ends = ip_address(flow.src).packed + ip_address(flow.dst).packed
    segment = whole[40 if ":" in flow.src else 20 :]
    assert internet_checksum(ends + pack("!IHBB", len(segment), 0, 0, flow.proto) + segment) == 0


@given(st.binary(max_size=64))
def test_the_checksum_is_that_of_the_standard(data: bytes) -> None:
    padded = data + b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(padded[k : k + 2]) for k in range(0, len(padded), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    assert internet_checksum(data) == 0xFFFF - total
