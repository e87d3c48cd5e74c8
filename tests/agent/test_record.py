from pathlib import Path

from tests.agent.cohort import cohort

from ark.agent.record import HEADER, Record
from ark.workload import read_flows

GB = 10**9


def test_finished_transfers_are_a_flow_table(folder: Path) -> None:
    more = 'record = "flows.csv"\n[policy]\nhold = "0"\nmin_bytes = "1 MB"\n'
    with cohort(folder, 3, more=more) as three:
        client = three.client("h0")
        paths = []
        for size in (GB, 1000, 2 * GB):
            with client.transfer("h2", size, dport=4791) as transfer:
                paths.append("" if transfer.path is None else str(transfer.path))
        with client.lanes("h2", 4791):
            pass
        three.until(lambda: not three["h0"].service.transfers)
        three.stop("h0")
    flows = read_flows(folder / "flows.csv")
    assert flows.size_bytes.tolist() == [GB, 1000, 2 * GB]
    assert flows.src == ["h0"] * 3
    assert flows.dst == ["h2"] * 3
    assert [path or "" for path in flows.path or []] == paths
    assert 0 <= flows.start_ns[0] <= flows.start_ns[1] <= flows.start_ns[2] < 60 * 10**9


def test_a_record_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "flows.csv"
    path.write_text(HEADER + "1.1,h0,h2,5,7,,4791,,17,steered,9,123\n")
    record = Record(path)
    assert record._origin_ns == 123
    record.close()
    assert path.read_text().count("id,") == 1
