"""A flow table that does not fit its fabric is refused with all faults, each in one clear line."""

from dataclasses import replace

import numpy as np
import pytest

from ark.errors import ConfigError
from ark.fabric import leaf_spine, paper_fabric
from ark.sim.offered import TIME_MAX_NS, TIME_MAX_PACKET_NS, transfers_of
from ark.workload.flows import Flows


def flows(*pairs: tuple[str, str], path: list[str] | None = None) -> Flows:
    count = len(pairs)
    return Flows(
        id=[f"f{number}" for number in range(count)],
        src=[src for src, _ in pairs],
        dst=[dst for _, dst in pairs],
        size_bytes=np.full(count, 1000),
        start_ns=np.zeros(count, np.int64),
        sport=np.full(count, 50_000, np.int32),
        dport=np.full(count, 4791, np.int32),
        path=path,
    )


def test_all_faults_come_together() -> None:
    table = flows(
        ("h0", "h99"), ("g1", "h9"), ("h3", "h3"), ("h0", "h8"), ("h0", "h8"), ("h0", "h8"),
        path=["", "", "", "7", "0>1", "0;9"],
    )  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        transfers_of(table, paper_fabric())
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        'flow "f1"', 'flow "f0"', 'flow "f2"', 'flow "f3"', 'flow "f4"', 'flow "f5"',
    ]  # fmt: skip
    assert lines[3] == 'flow "f3": path "7" is not up; there are 0, 1, 2, 3'
    assert lines[4].startswith('flow "f4": path "0>1" has a move, but a pin holds from start to end')


def test_pairs_that_no_path_joins_are_faults() -> None:
    cut = leaf_spine(2, 1, 1, down=(("leaf1", "spine0"),))
    with pytest.raises(ConfigError, match="no path"):
        transfers_of(flows(("h0", "h1")), cut)


@pytest.mark.parametrize(
    ("time_max_ns", "days", "most"), [(TIME_MAX_NS, 834, 833), (TIME_MAX_PACKET_NS, 52, 52)]
)
def test_times_that_the_engine_cannot_hold_are_faults(time_max_ns: int, days: int, most: int) -> None:
    table = replace(flows(("h0", "h8")), start_ns=np.array([time_max_ns]))
    assert len(transfers_of(table, paper_fabric(), time_max_ns=time_max_ns)) == 1
    with pytest.raises(ConfigError) as caught:
        transfers_of(replace(table, start_ns=table.start_ns + 1), paper_fabric(), time_max_ns=time_max_ns)
    assert str(caught.value) == (
        f'flow "f0": start_ns: {time_max_ns + 1} ns are {days} days; this engine runs up to {most} days: '
        "give fewer requests or a higher rate"
    )


def test_pins_are_read_by_number_also_where_a_spine_is_down() -> None:
    transfers = transfers_of(
        flows(("h0", "h2"), ("h0", "h2"), path=["2", "2;0"]), leaf_spine(2, 3, 2, down=("spine1",))
    )
    assert [transfer.pin for transfer in transfers] == [(2,), (2, 0)]
