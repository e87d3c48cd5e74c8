"""Look-up tables of the byte-wise hashes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ark.fabric.hashing.header import Lanes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Table:
    """A table of unsigned 32-bit numbers that one index or an array of them can be looked up in."""

    __slots__ = ("_array", "_entries")

    def __init__(self, entries: Iterable[int]) -> None:
        self._entries = tuple(entries)
        self._array: npt.NDArray[np.uint32] | None = None  # made on first use, so that scalars need no NumPy

    def at(self, index: Lanes) -> Lanes:
        """The entry at ``index``, or the entries at each of them."""
        if isinstance(index, int):
            return self._entries[index]
        if self._array is None:
            import numpy as np  # noqa: PLC0415 - only arrays need NumPy

            self._array = np.array(self._entries, dtype=np.uint32)
        return self._array[index]
