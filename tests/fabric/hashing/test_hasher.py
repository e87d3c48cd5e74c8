"""What each function reads of a header, and that many headers at once are hashed as each of them."""

from functools import cache
from ipaddress import ip_address
from typing import get_args

import mmh3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ark.errors import ConfigError
from ark.fabric.five_tuple import FiveTuple, header_of
from ark.fabric.hash_spec import CrcParameters, HashField, HashFunction, HashSpec
from ark.fabric.hashing import Hasher, crc, hasher
from ark.fabric.hashing.crc import Crc
from ark.fabric.hashing.header import Header

FUNCTIONS = [function for function in get_args(HashFunction) if function != "spray"]
FLOW = FiveTuple("10.0.1.2", "10.0.3.4", 0xC123, 4791, 17, dest_qp=0x010203)
ports = st.integers(0, 0xFFFF)


def spec_of(function: HashFunction, **changes: object) -> HashSpec:
    parts = {"function": function, "seed": 5, "fields": ("src", "dst", "sport", "dport")} | changes
    if function == "crc":
        parts["crc"] = CrcParameters(width=20, polynomial=0xB1D35, reflect_in=True)
    return HashSpec(**parts)  # type: ignore[arg-type]


@cache
def hasher_of(function: HashFunction) -> Hasher:
    return hasher(spec_of(function), node=9)


def value(spec: HashSpec, header: Header, node: int = 9) -> int:
    hashed = hasher(spec, node=node).hash(header)
    assert isinstance(hashed, int)
    return hashed


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("function", FUNCTIONS)
@settings(max_examples=20)
@given(data=st.data())
def test_many_headers_are_hashed_as_each(function: HashFunction, version: int, data: st.DataObject) -> None:
    """Whichever fields vary: all of a header, or one of it beside constants."""
    words = st.tuples(*[st.integers(0, 2**32 - 1)] * (1 if version == 4 else 4))
    header = st.builds(Header, words, words, st.integers(0, 255), ports, ports)
    headers = data.draw(st.lists(header, min_size=1, max_size=5))
    of_switch = hasher_of(function)
    lanes = Header(
        tuple(np.array(column, dtype=np.uint32) for column in zip(*(h.src for h in headers), strict=True)),
        tuple(np.array(column, dtype=np.uint32) for column in zip(*(h.dst for h in headers), strict=True)),
        *(np.array(column, dtype=np.uint32) for column in zip(*(h[2:5] for h in headers), strict=True)),
    )
    found = of_switch.hash(lanes)
    assert not isinstance(found, int)
    assert found.tolist() == [of_switch.hash(h) for h in headers]
    assert int(found.max()) < 2**of_switch.bits

    only_ports = headers[0]._replace(sport=np.array([h.sport for h in headers], dtype=np.uint32))
    found = of_switch.hash(only_ports)
    assert not isinstance(found, int)
    assert found.tolist() == [of_switch.hash(headers[0]._replace(sport=h.sport)) for h in headers]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_field_counts_exactly_where_it_is_named(function: HashFunction) -> None:
    header = header_of(FLOW)._replace(flow_label=0xABCDE)
    changed: dict[HashField, Header] = {
        "src": header._replace(src=(0x0A000103,)),
        "dst": header._replace(dst=(0x0A000305,)),
        "proto": header._replace(proto=6),
        "sport": header._replace(sport=0xC124),
        "dport": header._replace(dport=4792),
        "dest-qp": header._replace(dest_qp=0x010204),
        "flow-label": header._replace(flow_label=0xABCDF),
        "ingress-port": header._replace(ingress_port=3),
    }
    fields: list[HashField] = ["src", "dst", "proto", "sport", "dport", "flow-label"]
    if function != "linux":
        fields += ["dest-qp", "ingress-port"]
    for field in fields:
        others = tuple(other for other in fields if other != field)
        other = changed[field]
        for named, differs in (((field,), True), (others, False)):
            spec = spec_of(function, fields=named)
            assert (value(spec, header) != value(spec, other)) is differs, (field, named)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_seed_is_the_number_of_the_switch_unless_it_is_given(function: HashFunction) -> None:
    header = header_of(FLOW)
    own = spec_of(function, seed=None)
    assert value(own, header, node=7) == value(spec_of(function, seed=7), header, node=1)
    assert len({value(own, header, node=node) for node in range(1, 9)}) > 6


def test_murmur3_reads_the_words_of_the_simulators() -> None:
    """Addresses as integers and both ports in one word, each in native order, seeded by the switch."""
    message = b"".join(word.to_bytes(4, "little") for word in (0x0A000102, 0x0A000304, 0xC123 | 4791 << 16))
    assert value(spec_of("murmur3", seed=None), header_of(FLOW), node=16) == mmh3.hash(
        message, 16, signed=False
    )
    only_dport = spec_of("murmur3", fields=("dport",))
    assert value(only_dport, header_of(FLOW)) == mmh3.hash(
        (4791 << 16).to_bytes(4, "little"), 5, signed=False
    )


def test_crcs_read_the_fields_in_network_order() -> None:
    fields: tuple[HashField, ...] = ("dport", "src", "proto", "dest-qp", "ingress-port", "flow-label", "dst")
    message = bytes.fromhex("12b7 0a000102 11 010203 0007 0abcde 0a000304")
    header = header_of(FLOW)._replace(ingress_port=7, flow_label=0xABCDE)
    for function, parameters in (("crc16-arc", crc.CRC16_ARC), ("crc32c", crc.CRC32C)):
        spec = HashSpec(function=function, fields=fields, seed=0)  # type: ignore[arg-type]
        assert value(spec, header) == Crc(parameters)(message)
    whole = value(HashSpec(function="crc32", fields=fields, seed=0), header)
    assert value(HashSpec(function="crc32-high16", fields=fields, seed=0), header) == whole >> 16
    assert value(HashSpec(function="crc32-low16", fields=fields, seed=0), header) == whole & 0xFFFF


def test_ipv6_addresses_are_read_whole() -> None:
    src, dst = "2001:db8:1:2:3:4:5:6", "fe80::9"
    header = header_of(FiveTuple(src, dst, 1, 2))
    message = ip_address(src).packed + ip_address(dst).packed
    spec = HashSpec(function="crc32", fields=("src", "dst"), seed=0)
    assert value(spec, header) == Crc(crc.CRC32)(message)


def test_xor_folds_each_field_from_its_end() -> None:
    fields: tuple[HashField, ...] = ("src", "proto", "dest-qp")
    header = header_of(FLOW)
    spec16 = HashSpec(function="xor16", fields=fields, seed=0)
    assert value(spec16, header) == 0x0A00 ^ 0x0102 ^ 0x11 ^ 0x01 ^ 0x0203
    spec8 = HashSpec(function="xor8", fields=fields, seed=0x1FF)
    assert value(spec8, header) == 0x0A ^ 0x01 ^ 0x02 ^ 0x11 ^ 0x01 ^ 0x02 ^ 0x03 ^ 0xFF


def test_the_linux_hash_is_the_same_both_ways() -> None:
    for spec in (HashSpec(function="linux", seed=3, policy=1), HashSpec(function="linux", seed=3)):
        assert value(spec, header_of(FLOW)) == value(spec, header_of(FLOW.reversed()))


def test_what_a_hash_lacks_is_said() -> None:
    sixth = header_of(FiveTuple("::1", "::2", 1, 2))
    with pytest.raises(ConfigError, match="Toeplitz key of 40 bytes is too short for 37 hashed bytes"):
        value(HashSpec(function="toeplitz"), sixth)
    with pytest.raises(
        ConfigError, match=r"reads the destination queue pair \(BTH\) of a packet; give dest_qp"
    ):
        value(HashSpec(fields=("dest-qp",)), sixth)
    with pytest.raises(ConfigError, match="packets are sprayed"):
        value(HashSpec(function="spray"), sixth)


@pytest.mark.parametrize("function", ["crc16-arc", "crc32c", "crc", "xor8", "xor16", "toeplitz"])
@settings(max_examples=30)
@given(first=ports, second=ports, mask=ports, other=st.integers(0, 2**32 - 1))
def test_affine_hashes_shift_by_the_same_for_every_pair_of_addresses(
    function: HashFunction, first: int, second: int, mask: int, other: int
) -> None:
    """What RePaC builds on: a change of the port changes the hash by what depends on that change alone."""
    of_switch = hasher_of(function)

    def hashed(src: int, port: int) -> int:
        found = of_switch.hash(Header((src,), (5,), 17, port, 4791))
        assert isinstance(found, int)
        return found

    shift = hashed(1, first) ^ hashed(1, first ^ mask)
    assert hashed(other, second) ^ hashed(other, second ^ mask) == shift
