import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.control.networks import Clos

from ark.control.geometry import PathSets
from ark.control.load import LinkLoads
from ark.control.paper import Claims
from ark.control.rows import Change, Row, State
from ark.control.table import Table


def row(host: int, path: int = 0, *, stamp: int = 1) -> Row:
    return Row(host, 0, 1, 0, State.ACTIVE, (path,), 0, 1, 1000, stamp)


def table(rows_max: int = 100) -> tuple[Table, LinkLoads, Claims]:
    paths = PathSets(Clos(2, 4))
    loads, claims = LinkLoads(paths), Claims()
    return Table(paths, loads, claims, rows_max=rows_max), loads, claims


changes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 9)))


def apply(target: Table, told: list[tuple[int, int, int]]) -> None:
    for host, path, stamp in told:
        if stamp:
            target.put(row(host, path, stamp=stamp))
        else:
            target.remove(host, 0)


@given(changes, st.randoms())
def test_the_same_rows_make_the_same_table_in_whatever_order_they_came(
    told: list[tuple[int, int, int]], rng: object
) -> None:
    one, loads, claims = table()
    apply(one, told)
    one.check()
    last = list({change[0]: change for change in told}.values())
    rng.shuffle(last)  # type: ignore[attr-defined]
    other, other_loads, other_claims = table()
    apply(other, last * 2)
    assert sorted(one, key=lambda each: each.key) == sorted(other, key=lambda each: each.key)
    assert loads.cost == other_loads.cost
    assert [claims.owner(path) for path in range(4)] == [other_claims.owner(path) for path in range(4)]


@given(changes, changes)
def test_a_rollback_undoes_everything(
    before: list[tuple[int, int, int]], after: list[tuple[int, int, int]]
) -> None:
    one, loads, claims = table()
    apply(one, before)
    rows, cost, taken = sorted(one, key=lambda each: each.key), loads.cost[:], claims.taken
    one.begin()
    apply(one, after)
    one.rollback()
    one.check()
    assert (sorted(one, key=lambda each: each.key), loads.cost, claims.taken) == (rows, cost, taken)


def test_changes_tell_what_was_and_what_is() -> None:
    one, _, _ = table()
    first, second = row(1), replace(row(1), seq=2, size_bytes=5)
    assert one.put(first) == Change(None, first)
    assert one.put(second) == Change(first, second)
    assert one.get(1, 0) is second
    assert len(one) == 1
    assert one.remove(1, 0) == Change(second, None)
    assert one.remove(1, 0) is None
    assert one.get(1, 0) is None


def test_a_row_that_does_not_fit_the_fabric_is_refused_and_counted() -> None:
    one, _, _ = table()
    assert one.put(row(1, 4)) is None
    assert (len(one), one.misfits, one.refused) == (0, 1, 0)


def test_a_full_table_refuses_new_rows_but_not_news_of_old_ones() -> None:
    one, _, _ = table(rows_max=2)
    room = []
    for host in (1, 2):
        one.put(row(host))
        room.append(one.full)
    assert room == [False, True]
    assert one.put(row(3)) is None
    assert one.refused == 1
    assert one.put(row(2, 3)) is not None
    one.check()


def test_rollback_needs_a_beginning() -> None:
    one, _, _ = table()
    with pytest.raises(AssertionError):
        one.rollback()
