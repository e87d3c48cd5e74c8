import msgspec
import pytest

from ark.errors import ConfigError
from ark.fabric.five_tuple import FiveTuple, address_words, header_of
from ark.fabric.hash_spec import CrcParameters, HashSpec


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"fields": []}, "fields must name at least one field, and each only once"),
        ({"fields": ["src", "src"]}, "fields must name at least one field, and each only once"),
        ({"seed": -1}, r"Expected `int` >= 0 - at `\$.seed`"),
        ({"seed": 2**32}, r"Expected `int` <= 4294967295 - at `\$.seed`"),
        ({"buckets": 0}, r"Expected `int` >= 1 - at `\$.buckets`"),
        ({"weights": {"spine0": 0}}, 'the weight of "spine0" must be 1 to 65535, not 0'),
        ({"function": "crc"}, 'function "crc" needs a table "crc", the other functions take none'),
        ({"crc": {"width": 8, "polynomial": 7}}, 'needs a table "crc", the other functions take none'),
        (
            {"function": "crc", "crc": {"width": 7, "polynomial": 7}},
            "the width of a CRC is 8 to 32 bits, not 7",
        ),
        (
            {"function": "crc", "crc": {"width": 8, "polynomial": 256}},
            "polynomial 0x100 does not fit the width of 8 bits",
        ),
        ({"key": "6d5"}, "key must be hexadecimal digits, two a byte"),
        ({"key": "6d5a56"}, "key must be 8 to 128 bytes long, not 3"),
        ({"function": "linux", "fields": ["dest-qp"]}, 'Linux cannot hash the field "dest-qp"'),
        (
            {"function": "linux", "policy": 1, "fields": ["src"]},
            "policy 1 of Linux hashes the 5-tuple; write policy = 3 to hash other fields",
        ),
        ({"function": "linux", "seed": 0}, "seed 0 means a random seed in Linux"),
    ],
)
def test_a_specification_that_contradicts_itself_is_refused(table: object, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(table, HashSpec)


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 2**32}, {"buckets": 0}])
def test_numbers_out_of_bounds_are_refused_from_python_too(wrong: dict[str, int]) -> None:
    [(name, value)] = wrong.items()
    with pytest.raises(ValueError, match=f"{name}.* {value}"):
        HashSpec(**wrong)  # type: ignore[arg-type]


def test_a_specification_survives_encoding() -> None:
    spec = HashSpec(
        function="crc",
        crc=CrcParameters(width=16, polynomial=0x1021),
        fields=("src", "dest-qp"),
        seed=7,
        selection="resilient",
        weights={"spine1": 3},
    )
    assert msgspec.json.decode(msgspec.json.encode(spec), type=HashSpec) == spec


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"sport": 65536}, "sport must be 0 to 65535, not 65536"),
        ({"dport": -1}, "dport must be 0 to 65535, not -1"),
        ({"proto": 256}, "proto must be 0 to 255, not 256"),
        ({"dest_qp": 2**24}, "dest_qp must be 0 to 16777215, not 16777216"),
        ({"flow_label": 2**20}, "flow_label must be 0 to 1048575, not 1048576"),
    ],
)
def test_a_five_tuple_keeps_its_ranges(numbers: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FiveTuple(**{"src": "10.0.0.1", "dst": "10.0.0.2", "sport": 1, "dport": 2} | numbers)  # type: ignore[arg-type]


def test_addresses_become_words() -> None:
    assert address_words("11.0.3.1") == (0x0B000301,)
    assert address_words("2001:db8::1") == (0x20010DB8, 0, 0, 1)
    with pytest.raises(ConfigError, match='"h0" is no IPv4 or IPv6 address'):
        address_words("h0")
    with pytest.raises(ConfigError, match=r"10\.0\.0\.1 and ::1 are not both IPv4 or both IPv6"):
        header_of(FiveTuple("10.0.0.1", "::1", 1, 2))


def test_the_way_back_swaps_addresses_and_ports() -> None:
    assert FiveTuple("1.1.1.1", "2.2.2.2", 5, 6, 17).reversed() == FiveTuple("2.2.2.2", "1.1.1.1", 6, 5, 17)
