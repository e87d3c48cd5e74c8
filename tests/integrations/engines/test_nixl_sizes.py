"""Bytes of NIXL transfers: any form of descriptors, against adding them up one by one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ark.integrations.nixl_sizes import sizes_of, total_bytes

runs = st.lists(st.tuples(st.integers(1, 2**40), st.integers(1, 50)), min_size=1, max_size=8)


class OwnList:
    """A list of NIXL's own: it can be counted and indexed only."""

    def __init__(self, rows: list[tuple[int, int, int]]) -> None:
        self._rows = rows

    def descCount(self) -> int:  # noqa: N802 - NIXL's name
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[int, int, int]:
        return self._rows[index]


class Tensor:
    """As much of a tensor as is asked."""

    def numel(self) -> int:
        return 100

    def element_size(self) -> int:
        return 2


@pytest.mark.slow
@given(runs, st.data())
def test_all_forms_agree(lengths_and_counts: list[tuple[int, int]], data: st.DataObject) -> None:
    strided = np.array([[0, size, 0, size, count] for size, count in lengths_and_counts], dtype=np.uint64)
    each = [size for size, count in lengths_and_counts for _ in range(count)]
    rows = [(0, size, 0) for size in each]
    forms: list[Any] = [strided, np.array(rows, dtype=np.uint64), rows, OwnList(rows)]
    indices = data.draw(st.lists(st.integers(0, len(each) - 1), max_size=20))
    picked: list[Any] = [indices, np.array(indices, dtype=np.int32)]
    for form in forms:
        assert total_bytes(form) == sum(each)
        sizes = sizes_of(form)
        assert sizes is not None
        for one in picked:
            assert sizes.of(one) == sum(each[index] for index in indices)


def test_tensors() -> None:
    assert total_bytes(Tensor()) == 200
    assert total_bytes([Tensor(), Tensor()]) == 400


@pytest.mark.parametrize(
    "strange", [None, 7, "text", [], [()], np.zeros((0, 3)), np.zeros((2, 4)), np.zeros(3), {}]
)
def test_what_is_no_list_of_descriptors_has_no_size(strange: Any) -> None:
    assert sizes_of(strange) is None


@pytest.mark.parametrize("strange", [[99], [0.5, "x"], None, 3])
def test_numbers_that_are_not_there_have_no_size(strange: Any) -> None:
    sizes = sizes_of([(0, 10, 0), (0, 20, 0)])
    assert sizes is not None
    assert sizes.of(strange) is None
