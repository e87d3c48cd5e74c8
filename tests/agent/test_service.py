"""Real agents and real clients: what applications get."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.agent.agents import write_cluster
from tests.agent.cohort import PATIENCE_S, Cohort, cohort

from ark.client import Client
from ark.client.session import NO_AGENT
from ark.errors import LocalProtocolError
from ark.fabric import FiveTuple, route

TB = 10**12


@pytest.fixture
def client(four: Cohort) -> Client:
    return four.client("h0")


def path_of(four: Cohort, port: int, *, source: str = "h0", target: str = "h2", proto: int = 17) -> int:
    """Where the fabric itself sends packets from this port."""
    fabric = four["h0"].config.fabric
    here, there = fabric.nic(source), fabric.nic(target)
    return route(fabric, FiveTuple(here.address, there.address, port, 4791, proto), here, there).index


def test_a_transfer_gets_a_port_that_leads_to_its_path(four: Cohort, client: Client) -> None:
    with client.transfer("h2", TB, dport=4791) as transfer:
        assert transfer.kind == "steered"
        assert transfer.path is not None
        assert transfer.source_port is not None
        assert path_of(four, transfer.source_port) == transfer.path
        assert (transfer.source_address, transfer.target_address) == ("10.0.0.1", "10.0.0.3")
        assert transfer.flow_label is not None
        assert not transfer.reason


def test_everybody_learns_of_a_transfer_and_of_its_end(four: Cohort, client: Client) -> None:
    with client.transfer("h2", TB, dport=4791) as transfer:
        four.until(lambda: len(four.rows("h3")) == 1 and four.agree())
        (row,) = four.call(lambda: list(four["h3"].controller.view.table))
        assert (row.paths, row.size_bytes) == ((transfer.path,), TB)
    four.until(lambda: not any(four.rows(name) for name in four.agents))


def test_transfers_at_once_take_different_paths_and_ports(four: Cohort, client: Client) -> None:
    held = [client.transfer("h2", TB, dport=4791) for _ in range(8)]
    assert sorted(transfer.path or 0 for transfer in held) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len({transfer.source_port for transfer in held}) == 8
    for transfer in held:
        transfer.release()
    again = client.transfer("h2", TB, dport=4791)
    assert again.source_port in {transfer.source_port for transfer in held}
    again.release()
    again.release()
    four.until(lambda: not four["h0"].service.transfers)


def test_two_hosts_avoid_each_other(four: Cohort, client: Client) -> None:
    other = four.client("h1")
    mine = [client.transfer("h2", TB, dport=4791) for _ in range(2)]
    four.until(lambda: len(four.rows("h1")) == 2)
    theirs = [other.transfer("h3", TB, dport=4791) for _ in range(2)]
    assert len({transfer.path for transfer in mine + theirs}) == 4
    for transfer in mine + theirs:
        transfer.release()


def test_tcp_has_ports_and_no_flow_label(four: Cohort, client: Client) -> None:
    with client.transfer("h2", TB, dport=4791, proto="tcp") as transfer:
        assert transfer.source_port is not None
        assert path_of(four, transfer.source_port, proto=6) == transfer.path
        assert transfer.flow_label is None


def test_short_transfers_and_neighbours_are_left_alone(client: Client) -> None:
    with client.transfer("h2", 1000, dport=4791) as short, client.transfer("h1", TB, dport=4791) as near:
        assert (short.path, short.kind) == (None, "unmanaged")
        assert short.reason == "too short to be managed, or all is full"
        assert (near.path, near.reason) == (
            None,
            "there is only one path, so the source port does not matter",
        )
        assert near.move(1) is False


def test_unknown_names_give_no_preference_and_a_reason(client: Client) -> None:
    with client.transfer("h22", TB, dport=4791) as transfer:
        assert transfer.path is None
        assert transfer.reason == 'unknown host "h22"; did you mean "h2"?'
    with client.transfer("h0", TB, dport=4791) as transfer:
        assert transfer.reason == '"h0" is this host; nothing crosses the fabric'
    with client.transfer("h2", TB, dport=4791, nic="h2") as transfer:
        assert transfer.reason == '"h2" is no NIC of this host; it has h0 (10.0.0.1)'


@pytest.mark.parametrize("own", [{"nic": "h0"}, {"nic": 0}, {"src": "10.0.0.1"}])
def test_nics_may_be_named_by_name_number_or_address(client: Client, own: "dict[str, Any]") -> None:
    with client.transfer("10.0.0.3", TB, dport=4791, **own) as transfer:
        assert (transfer.source_address, transfer.target_address) == ("10.0.0.1", "10.0.0.3")


def test_bytes_left_are_announced_at_segment_ends(four: Cohort, client: Client) -> None:
    with client.transfer("h2", TB, dport=4791) as transfer:
        assert transfer.move(TB // 2) is False
        four.until(lambda: {row.size_bytes for row in four.rows("h3")} == {TB // 2})


def test_a_reservation_ahead_starts_when_told(four: Cohort, client: Client) -> None:
    with client.transfer("h2", TB, dport=4791, ahead=True) as transfer:
        assert transfer.path is not None
        with pytest.raises(LocalProtocolError, match=r"only after start\(\)"):
            transfer.move(1)
        four.until(lambda: {row.state for row in four.rows("h3")} == {0})
        transfer.start()
        four.until(lambda: {row.state for row in four.rows("h3")} == {1})
        assert transfer.move(TB // 4) is False


def test_lanes_are_one_port_a_path_and_not_shared(four: Cohort, client: Client) -> None:
    with client.lanes("h2", 4791) as lanes, four.client("h0").lanes("h2", 4791) as others:
        assert [lane.path for lane in lanes] == [0, 1, 2, 3] == list(lanes.source_ports)
        assert all(path_of(four, lane.source_port) == lane.path for lane in lanes)
        assert not set(lanes.source_ports.values()) & set(others.source_ports.values())
        assert lanes[2].source_port == lanes.source_ports[2]
        with pytest.raises(KeyError):
            lanes[4]
        first = lanes.source_ports
    with client.lanes("h2", 4791) as again:
        assert again.source_ports == first


def test_an_exception_releases(four: Cohort, client: Client) -> None:
    with pytest.raises(ZeroDivisionError), client.transfer("h2", TB, dport=4791):
        _ = 1 / 0
    four.until(lambda: not four["h0"].service.transfers)


def test_the_end_of_a_client_releases_all_that_it_held(four: Cohort) -> None:
    client = four.client("h0")
    held = [client.transfer("h2", TB, dport=4791) for _ in range(200)]
    lanes = client.lanes("h2", 4791)
    assert all(transfer.path is not None for transfer in held)
    assert len(lanes) == 4
    four.until(lambda: len(four.rows("h1")) == 200)
    client.close()
    four.until(lambda: not four.rows("h1") and not four["h0"].service.transfers)
    assert four.call(lambda: four["h0"].service.lane_sets) == 0


def test_threads_share_a_client(four: Cohort, client: Client) -> None:
    together = threading.Barrier(8)

    def work(_: int) -> set[int | None]:
        together.wait(PATIENCE_S)
        paths = set()
        for _ in range(25):
            with client.transfer("h2", TB, dport=4791) as transfer:
                paths.add(transfer.path)
        return paths

    with ThreadPoolExecutor(8) as pool:
        assert set().union(*pool.map(work, range(8))) <= {0, 1, 2, 3}
    four.until(lambda: not four["h0"].service.transfers)


@pytest.mark.slow
def test_thousands_of_transfers_in_flight(four: Cohort, client: Client) -> None:
    held = [client.transfer("h2", TB, dport=4791) for _ in range(3000)]
    paths = [transfer.path for transfer in held]
    assert {paths.count(path) for path in range(4)} == {750}
    four.until(four.agree)
    assert four.call(lambda: len(four.rows("h3"))) == 3000
    for transfer in held:
        transfer.release()
    four.until(lambda: not any(four.rows(name) for name in four.agents))


def table(client: Client, question: str, argument: int = 0) -> list[dict[str, Any]]:
    rows = client.status(question, argument)["results"]
    assert isinstance(rows, list)
    return rows


def test_status_tells_what_is_going_on(four: Cohort, client: Client) -> None:
    with client.transfer("h2", TB, dport=4791) as transfer:
        summary = client.status()
        assert (summary["host"], summary["peers_heard"], summary["transfers"]) == ("h0", 3, 1)
        (row,) = table(client, "transfers")
        assert row["paths"] == [transfer.path]
        assert row["source_ports"] == [transfer.source_port]
        (reservation,) = table(client, "reservations")
        assert (reservation["host"], reservation["source"], reservation["target"]) == ("h0", "leaf0", "leaf1")
        busy = {(link["source"], link["target"]) for link in table(client, "links") if link["flows"]}
        assert busy == {("leaf0", f"spine{transfer.path}"), (f"spine{transfer.path}", "leaf1")}
        assert [peer["live"] for peer in table(client, "peers")] == [True] * 3
        (why,) = table(client, "why", row["flow"])
        assert (why["input"], why["event"]) == ("flow_arrived", "assigned")
    assert table(client, "clients")


def test_equal_tables_have_equal_digests(four: Cohort, client: Client) -> None:
    others = [four.client(name) for name in ("h1", "h3")]
    empty = client.status("digest")
    assert empty == {"reservations": 0, "digest": "0" * 16}
    with client.transfer("h2", TB, dport=4791):
        four.until(four.agree)
        digest = client.status("digest")
        assert digest != empty
        assert [other.status("digest") for other in others] == [digest] * 2
    four.until(lambda: not any(four.rows(name) for name in four.agents))


@pytest.mark.slow
def test_each_rail_is_a_way_of_its_own(tmp_path: Path) -> None:
    rails = "nics_per_host = 2\nrail_optimised = true\n"
    write_cluster(tmp_path, leaves=4, spines=2, hosts_per_leaf=1, more=rails)
    with cohort(tmp_path, 2, more='[policy]\nhold = "0"\nmin_bytes = "1 MB"\n') as two:
        client = two.client("h0")
        with (
            client.transfer("h1", TB, dport=4791, nic=0) as first,
            client.transfer("h1", TB, dport=4791, nic=1) as second,
            client.lanes("h1", 4791, nic=1) as lanes,
        ):
            fabric = two["h0"].config.fabric
            ends = [(one.source_address, one.target_address) for one in (first, second, lanes)]
            names = [[fabric.nic(f"{host}.{rail}").address for host in ("h0", "h1")] for rail in (0, 1, 1)]
            assert ends == [tuple(pair) for pair in names]
            assert len(lanes) == 2
            two.until(lambda: len(two.rows("h1")) == 2 and two.agree())
            rows = two.call(lambda: list(two["h1"].controller.view.table))
            assert len({(row.source, row.target) for row in rows}) == 2
        two.until(lambda: not two.rows("h1"))


def test_no_agent_is_no_preference(folder: object) -> None:
    client = Client(f"{folder}/none.sock")
    with client.transfer("h2", TB, dport=4791) as transfer, client.lanes("h2", 4791) as lanes:
        assert (transfer.path, transfer.source_port, transfer.flow_label) == (None, None, None)
        assert transfer.reason == NO_AGENT
        assert transfer.move(1) is False
        transfer.start()
        assert len(lanes) == 0


FAT_TREE = """kind = "fat-tree"
k = 4
[hash]
function = "crc32"
seed = 7
"""


@pytest.mark.slow
def test_only_paths_to_which_some_port_leads_are_chosen(folder: Path) -> None:
    """All switches hash alike, so whoever took the first way at the edge takes the first one above, too."""
    (folder / "fabric.toml").write_text(FAT_TREE)
    with cohort(folder, 16, more='[policy]\nhold = "0"\nmin_bytes = "1 MB"\n') as made:
        client = made.client("h0")
        held = [client.transfer("h15", TB, dport=4791) for _ in range(8)]
        ways = made.call(lambda: list(made["h0"].service.transfers.values()))
        assert ways[0].ports is not None
        assert len(ways[0].ports.map.missing) == 2
        assert {transfer.path for transfer in held} == set(range(4)) - set(ways[0].ports.map.missing)
        assert all(transfer.source_port for transfer in held)
        assert made["h0"].service.unreachable == 0
