"""Each hash function against the vectors that its authors or the usual catalogues publish."""

from ipaddress import ip_address

import pytest

from ark.fabric.hash_spec import TOEPLITZ_KEY, CrcParameters
from ark.fabric.hashing import crc
from ark.fabric.hashing.crc import Crc
from ark.fabric.hashing.murmur3 import murmur3_32
from ark.fabric.hashing.siphash import siphash24
from ark.fabric.hashing.toeplitz import Toeplitz

CHECK = b"123456789"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (crc.CRC16_ARC, 0xBB3D),
        (crc.CRC16_UMTS, 0xFEE8),
        (crc.CRC16_CCITT, 0x29B1),
        (crc.CRC16_XMODEM, 0x31C3),
        (crc.CRC32, 0xCBF43926),
        (crc.CRC32_BZIP2, 0xFC891918),
        (crc.CRC32_MPEG2, 0x0376E6E7),
        (crc.CRC32C, 0xE3069283),
        # Both directions of reflection apart, and widths that are no power of two.
        (CrcParameters(width=12, polynomial=0x80F, reflect_out=True), 0xDAF),  # CRC-12/UMTS
        (CrcParameters(width=24, polynomial=0x864CFB, init=0xB704CE), 0x21CF02),  # CRC-24/OPENPGP
        (CrcParameters(width=8, polynomial=0x07), 0xF4),  # CRC-8/SMBUS
    ],
)
def test_crc_has_the_check_value_of_the_catalogue(parameters: CrcParameters, expected: int) -> None:
    assert Crc(parameters)(CHECK) == expected


@pytest.mark.parametrize(
    ("target", "tport", "source", "sport", "addresses_only", "with_ports"),
    [  # Microsoft, "Verifying the RSS Hash Calculation"
        ("161.142.100.80", 1766, "66.9.149.187", 2794, 0x323E8FC2, 0x51CCC178),
        ("65.69.140.83", 4739, "199.92.111.2", 14230, 0xD718262A, 0xC626B0EA),
        ("12.22.207.184", 38024, "24.19.198.95", 12898, 0xD2D0A5DE, 0x5C2B394A),
        ("209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xAFC7327F),
        ("202.188.127.2", 1303, "153.39.163.191", 44251, 0x5D1809C5, 0x10E828A2),
        ("3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2CC18CD5, 0x40207D3D),
        ("ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0F0C461C, 0xDDE51BBF),
        (
            "fe80::200:f8ff:fe21:67cf",
            38024,
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            0x4B61E985,
            0x02D1FEEF,
        ),
    ],
)
def test_toeplitz_has_the_values_that_microsoft_publishes(
    target: str, tport: int, source: str, sport: int, addresses_only: int, with_ports: int
) -> None:
    toeplitz = Toeplitz(bytes.fromhex(TOEPLITZ_KEY))
    addresses = ip_address(source).packed + ip_address(target).packed
    assert toeplitz(addresses) == addresses_only
    assert toeplitz(addresses + sport.to_bytes(2) + tport.to_bytes(2)) == with_ports


def test_siphash_has_the_value_of_its_paper() -> None:
    """Appendix A: key 00 to 0f, message 00 to 0e."""
    message = bytes(range(15))
    key0, key1 = (int.from_bytes(bytes(range(start, start + 8)), "little") for start in (0, 8))
    words = [int.from_bytes(message[:8], "little"), int.from_bytes(message[8:], "little") | 15 << 56]
    assert siphash24(words, key0, key1) == 0xA129CA6149BE45E5


def test_murmur3_has_the_value_of_the_empty_message() -> None:
    assert murmur3_32([], 1) == 0x514E28B7
