"""The Toeplitz hash of receive-side scaling.

Source: Microsoft, "RSS Hashing Functions", Windows driver documentation. Bit i of the input, most
significant bit of the first byte first, XORs the 32 bits of the key that start at bit i into the result.
"""

from collections.abc import Sequence

from ark.errors import ConfigError
from ark.fabric.hashing.header import Lanes
from ark.fabric.hashing.table import Table


class Toeplitz:
    """The hash of one key, ready to run over bytes."""

    def __init__(self, key: bytes) -> None:
        self._key_bits = int.from_bytes(key)
        self._size_bits = 8 * len(key)
        self._tables: list[Table] = []  # one for each place of a byte, made when a message reaches it

    def __call__(self, message: Sequence[Lanes]) -> Lanes:
        """The 32-bit hash of the bytes of ``message``.

        Raises
        ------
        ConfigError
            If the key is too short for the message.
        """
        missing = 8 * len(message) + 32 - self._size_bits
        if missing > 0:
            raise ConfigError(
                f"the Toeplitz key of {self._size_bits // 8} bytes is too short for {len(message)} hashed "
                'bytes; hash fewer fields (receive-side scaling leaves out "proto"), or give a key of at '
                f"least {len(message) + 4} bytes"
            )
        while len(self._tables) < len(message):
            self._tables.append(self._table(len(self._tables)))
        result: Lanes = 0
        for table, byte in zip(self._tables, message, strict=False):
            result = result ^ table.at(byte)
        return result

    def _table(self, place: int) -> Table:
        windows = [self._key_bits >> self._size_bits - 32 - 8 * place - bit & 0xFFFF_FFFF for bit in range(8)]
        entries = [0]
        for window in reversed(windows):  # entry of a byte = XOR of the windows of its bits
            entries += [entry ^ window for entry in entries]
        return Table(entries)
