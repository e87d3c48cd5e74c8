"""Cyclic redundancy checks of 8 to 32 bits, in the terms of the Rocksoft model.

The parameters of the presets are those of the Catalogue of parametrised CRC algorithms (Greg Cook, reveng).
"""

from collections.abc import Iterable
from typing import Final, overload

from ark.fabric.hash_spec import CrcParameters
from ark.fabric.hashing.header import Lanes
from ark.fabric.hashing.table import Table

CRC16_ARC: Final = CrcParameters(width=16, polynomial=0x8005, reflect_in=True, reflect_out=True)
CRC16_CCITT: Final = CrcParameters(width=16, polynomial=0x1021, init=0xFFFF)
CRC16_XMODEM: Final = CrcParameters(width=16, polynomial=0x1021)
CRC16_UMTS: Final = CrcParameters(width=16, polynomial=0x8005)
CRC32: Final = CrcParameters(
    width=32, polynomial=0x04C1_1DB7, init=0xFFFF_FFFF, reflect_in=True, reflect_out=True, xor_out=0xFFFF_FFFF
)
CRC32C: Final = CrcParameters(
    width=32, polynomial=0x1EDC_6F41, init=0xFFFF_FFFF, reflect_in=True, reflect_out=True, xor_out=0xFFFF_FFFF
)
CRC32_MPEG2: Final = CrcParameters(width=32, polynomial=0x04C1_1DB7, init=0xFFFF_FFFF)
CRC32_BZIP2: Final = CrcParameters(width=32, polynomial=0x04C1_1DB7, init=0xFFFF_FFFF, xor_out=0xFFFF_FFFF)


class Crc:
    """One CRC, ready to run over bytes.

    ``seed`` is XORed into the initial register (as much of it as fits). CRCs are affine: a seed XORs a
    constant into the result that does not depend on what is hashed.
    """

    def __init__(self, parameters: CrcParameters, seed: int = 0) -> None:
        self._parameters = parameters
        self._mask = (1 << parameters.width) - 1
        init = (parameters.init ^ seed) & self._mask
        if parameters.reflect_in:
            self._init = _reflected(init, parameters.width)
            polynomial = _reflected(parameters.polynomial, parameters.width)
            self._table = Table(_step_right(byte, polynomial) for byte in range(256))
        else:
            self._init = init
            self._table = Table(
                _step_left(byte, parameters.polynomial, parameters.width) for byte in range(256)
            )

    def __call__(self, message: Iterable[Lanes]) -> Lanes:
        """The check of the bytes of ``message``, an unsigned number of ``width`` bits."""
        width = self._parameters.width
        register: Lanes = self._init
        if self._parameters.reflect_in:
            for byte in message:
                register = self._table.at((register ^ byte) & 0xFF) ^ register >> 8
        else:
            for byte in message:
                step = self._table.at(register >> width - 8 ^ byte)
                register = step ^ (register << 8 & self._mask)
        if self._parameters.reflect_in != self._parameters.reflect_out:
            register = _reflected(register, width)
        return register ^ self._parameters.xor_out


def _step_right(byte: int, polynomial: int) -> int:
    register = byte
    for _ in range(8):
        register = register >> 1 ^ (polynomial if register & 1 else 0)
    return register


def _step_left(byte: int, polynomial: int, width: int) -> int:
    register = byte << width - 8
    for _ in range(8):
        register = register << 1 ^ (polynomial if register >> width - 1 & 1 else 0)
    return register & (1 << width) - 1


@overload
def _reflected(value: int, width: int) -> int: ...
@overload
def _reflected(value: Lanes, width: int) -> Lanes: ...
def _reflected(value: Lanes, width: int) -> Lanes:
    """The lowest ``width`` bits in reverse order."""
    result: Lanes = 0
    for bit in range(width):
        result = result | (value >> bit & 1) << width - 1 - bit
    return result
