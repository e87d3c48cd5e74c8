"""How many bytes a NIXL transfer moves, from the lists of descriptors that it is made of.

NIXL takes descriptors as tuples, NumPy arrays (also strided), tensors, or lists of its own; a transfer picks
some of a prepared list by index. Arrays are asked by their own methods, so that nothing is imported here.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

LENGTH: Final = 1
"""Column, or place in a tuple, of a descriptor's length: (address, length, device, …)."""

COUNT: Final = 4
"""Column of the number of blocks in a strided descriptor: (address, length, device, stride, count)."""

STRANGE: Final = (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError)
"""What happens where descriptors are of no form that is known here."""


class Sizes(NamedTuple):
    """The lengths of a prepared list.

    Attributes
    ----------
    lengths
        One for each descriptor, or for each run of equal ones.
    common
        The length of all, where they are equal.
    ends
        Where each run ends: an array as long as ``lengths``; None without runs.
    """

    lengths: Any
    common: int | None
    ends: Any = None

    def of(self, indices: Any) -> int | None:
        """Bytes of the descriptors with these numbers; None if there are no such."""
        try:
            if self.common is not None:
                return self.common * len(indices)
            if self.ends is not None:
                return int(self.lengths[self.ends.searchsorted(indices, side="right")].sum())
            if hasattr(self.lengths, "sum"):
                return int(self.lengths[indices].sum())
            return sum(int(self.lengths[int(index)]) for index in indices)
        except STRANGE:
            return None


def sizes_of(descriptors: Any) -> Sizes | None:
    """The lengths in anything that ``prep_xfer_dlist`` takes; None where they can't be made out."""
    try:
        lengths, counts = _lengths(descriptors)
        if hasattr(lengths, "min"):
            common = int(lengths.min()) if lengths.min() == lengths.max() else None
        else:
            common = lengths[0] if min(lengths) == max(lengths) else None
        return Sizes(lengths, common, None if counts is None else counts.cumsum())
    except STRANGE:
        return None


def total_bytes(descriptors: Any) -> int | None:
    """Bytes of all descriptors of a list; None where they can't be made out."""
    try:
        lengths, counts = _lengths(descriptors)
        if counts is not None:
            return int((lengths * counts).sum())
        return int(lengths.sum()) if hasattr(lengths, "sum") else sum(lengths)
    except STRANGE:
        return None


def _lengths(descriptors: Any) -> tuple[Any, Any]:
    """The length of each descriptor, an array or a list, and of strided ones how many blocks each has."""
    if hasattr(descriptors, "element_size"):  # a tensor: one region
        return [_tensor_bytes(descriptors)], None
    if hasattr(descriptors, "shape"):
        rows, columns = descriptors.shape
        if not rows or columns not in {3, COUNT + 1}:
            raise ValueError(f"{columns} columns")
        strided = columns > COUNT
        return descriptors[:, LENGTH], descriptors[:, COUNT].astype("int64") if strided else None
    if hasattr(descriptors, "descCount"):  # a list of NIXL's own has neither a length nor an iterator
        return [int(descriptors[index][LENGTH]) for index in range(descriptors.descCount())], None
    if not isinstance(descriptors, Sequence):
        raise TypeError(f"descriptors of type {type(descriptors).__name__}")
    return [
        _tensor_bytes(one) if hasattr(one, "element_size") else int(one[LENGTH]) for one in descriptors
    ], None


def _tensor_bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())
