import msgspec
import pytest

from ark.control.rows import LEAK_AGE_MIN_NS, PENDING_MAX_NS, Assignment, Drop, Key, Row, State, leak_age_ns

ROW = Row(2**64 - 1, 5, 9, 3, State.ACTIVE, (0, 2), 1, 4, 1000, 77)


def test_a_row_survives_the_wire_form_in_its_field_order() -> None:
    packed = msgspec.msgpack.encode(ROW)
    assert msgspec.msgpack.decode(packed, type=Row) == ROW
    assert msgspec.msgpack.decode(packed) == [2**64 - 1, 5, 9, 3, 1, [0, 2], 1, 4, 1000, 77, False, 0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (0, -1), (1, -1), (2, 2**63), (3, -4), (4, 2), (5, []), (5, [0] * 17), (5, [-1]), (5, [2**20]),
        (6, -1), (7, 2**20), (8, -1), (9, 2**63), (10, 1), (11, -1), (0, "h0"), (8, 1.5), (9, None),
    ],
)  # fmt: skip
def test_a_field_out_of_its_bounds_is_refused(field: int, value: object) -> None:
    fields = msgspec.to_builtins(ROW)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert([*fields[:field], value, *fields[field + 1 :]], type=Row)


def test_names_versions_and_order() -> None:
    drop = Drop(2**64 - 1, 5, 10, 3)
    assert ROW.key == drop.key == Key(2**64 - 1, 3)
    assert ROW.version < drop.version
    assert ROW.assignment == Assignment(77, 2**64 - 1, 3)


def test_a_row_is_leaked_when_ten_times_older_than_its_nic_needs_over_the_worst_path() -> None:
    age_ns = leak_age_ns(State.ACTIVE, backlog_bytes=10**10, line_rate_bps=10**11, path_count=4)
    assert age_ns == 10 * 8 * 10**10 * 4 * 10**9 // 10**11
    pending_ns = leak_age_ns(State.PENDING, backlog_bytes=10**10, line_rate_bps=10**11, path_count=4)
    assert pending_ns - age_ns == PENDING_MAX_NS
    assert leak_age_ns(State.ACTIVE, backlog_bytes=1, line_rate_bps=10**11, path_count=4) == LEAK_AGE_MIN_NS
