"""Real agents over real sockets: loss, restarts, silence, strangers."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.agent.agents import SECRET, write_cluster, write_config
from tests.agent.cohort import Cohort, LossyTransport, cohort

from ark.agent import Agent, load_config
from ark.agent.transport import UdpTransport
from ark.control.replica import ReplicaConfig
from ark.control.rows import State
from ark.control.wire import ALL, Beat, Key, Put, encode_message, host_id, seal
from ark.errors import ConfigError

GB = 10**9
NO_HOLD = '[policy]\nhold = "0"\nmin_bytes = "1 MB"\n'


@pytest.mark.slow
def test_tables_agree_in_spite_of_loss(folder: Path) -> None:
    with cohort(folder, 4, loss=0.2, more=NO_HOLD) as four:
        clients = [four.client(name) for name in four.agents]
        held = []
        for turn in range(100):
            client = clients[turn % 4]
            target = "h0" if turn % 4 >= 2 else "h2"
            held.append(client.transfer(target, 100 * GB, dport=4791))
            if turn % 3 == 0:
                held.pop(0).release()
        four.until(lambda: len(four.rows("h0")) == len(held) and four.agree())
        assert all(
            isinstance(agent.transport, LossyTransport) and agent.transport.lost
            for agent in four.agents.values()
        )
        for transfer in held:
            transfer.release()
        four.until(lambda: not any(four.rows(name) for name in four.agents))


@pytest.mark.slow
def test_a_dead_hosts_claims_end_with_its_lease_and_the_others_are_unharmed(folder: Path) -> None:
    with cohort(folder, 3, more=NO_HOLD) as three:
        dead = three.client("h1").transfer("h2", 100 * GB, dport=4791)
        alive = three.client("h0").transfer("h2", 100 * GB, dport=4791)
        assert dead.path is not None
        three.until(lambda: all(len(three.rows(name)) == 2 for name in three.agents))
        three.stop("h1")
        three.until(lambda: all(len(three.rows(name)) == 1 for name in three.agents))
        assert three.call(lambda: {row.paths for row in three.rows("h2")}) == {(alive.path,)}
        assert three.call(lambda: three["h0"].controller.replica.counters.leases_ended) == 1


@pytest.mark.slow
def test_an_epoch_that_cannot_be_stored_stops_nobody(folder: Path) -> None:
    """Its peers know a later life of a host whose disk was lost, and then is full."""
    later = time.time_ns() + 3600 * 10**9
    (folder / "h0.epoch").write_text(str(later))
    with cohort(folder, 3, more=NO_HOLD) as three:
        known = host_id("h0")
        three.until(lambda: known in three["h1"].controller.replica.peers)
        three.stop("h0")
        (folder / "h0.epoch").unlink()
        host, port = three.peers["h0"].split(":")
        transport = UdpTransport((host, int(port)), receive_buffer_bytes=2**20)
        again = Agent(load_config(folder / "h0.toml"), transport)
        (folder / "h0.epoch.new").mkdir()
        three.agents["h0"] = again
        three.run(again.start())
        three.until(lambda: again.controller.replica.epoch > later)
        with three.client("h0").transfer("h2", GB, dport=4791):
            three.until(lambda: three.agree() and len(three.rows("h1")) == 1)
        assert int((folder / "h0.epoch").read_text()) < later


@pytest.mark.slow
def test_after_a_restart_running_transfers_are_registered_again_on_the_same_paths(folder: Path) -> None:
    with cohort(folder, 3, more=NO_HOLD) as three:
        client = three.client("h0")
        held = [client.transfer("h2", 100 * GB, dport=4791) for _ in range(6)]
        ahead = client.transfer("h2", 100 * GB, dport=4791, ahead=True)
        lanes = client.lanes("h2", 4791)
        held[0].move(50 * GB)
        three.until(lambda: len(three.rows("h1")) == 7)
        first = three.call(lambda: three["h0"].controller.replica.epoch)
        three.stop("h0")
        with client.transfer("h2", 100 * GB, dport=4791) as meanwhile:
            assert meanwhile.path is None
        three.boot("h0")
        three.until(lambda: len(three.rows("h0")) == 7 and three.agree())
        assert three.call(lambda: three["h0"].controller.replica.epoch) > first
        table = three["h0"].controller.view.table
        rows = three.call(lambda: [row for row in table if row.state is State.ACTIVE])
        assert sorted(row.paths for row in rows) == sorted((transfer.path,) for transfer in held)
        assert sorted(row.size_bytes for row in rows) == [50 * GB] + [100 * GB] * 5
        served = three.call(lambda: [one.lanes for one in three["h0"].service.transfers.values()])
        assert all(transfer.lanes in served for transfer in held)
        assert three.call(lambda: three["h0"].service.lane_sets) == 1
        held[0].move(25 * GB)
        ahead.start()
        three.until(lambda: min(row.size_bytes for row in three.rows("h1")) == 25 * GB)
        for one in [*held, ahead]:
            one.release()
        lanes.release()
        three.until(lambda: not any(three.rows(name) for name in three.agents))


def own_datagram(config: ReplicaConfig, key: Key, *, fabric: bytes | None = None, host: str = "h1") -> bytes:
    put = Put(99, 1, (0,), 0, 1, GB, 1, fallback=False, moves=0)
    parts = [encode_message(put), encode_message(Beat(1, 0))]
    return seal(key, fabric or config.fabric, host_id(host), 2**62, ALL, 1, 1, parts)


def test_strangers_change_nothing_and_are_counted(four: Cohort) -> None:
    agent = four["h0"]
    config = agent.controller.replica.config
    key = Key(1, bytes.fromhex(SECRET))
    counters = agent.controller.replica.counters
    before = four.call(lambda: (four.rows("h0"), dict(counters.refused), dict(counters.ignored)))
    datagrams = [
        own_datagram(config, Key(1, bytes(16))),
        own_datagram(config, key)[:-1] + b"?",
        b"garbage",
        bytes(1300),
        own_datagram(config, key, fabric=bytes(16)),
        own_datagram(config, key, host="h9"),
        own_datagram(config, key),
    ]
    host, port = agent.transport.address.split(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for data in datagrams:
            stranger.sendto(data, (host, int(port)))

    def counted() -> dict[str, int]:
        refused = {str(name): count - before[1][name] for name, count in counters.refused.items()}
        ignored = {str(name): count - before[2][name] for name, count in counters.ignored.items()}
        return {name: count for name, count in (refused | ignored).items() if count}

    expected = {"forged": 2, "size": 2, "other-fabric": 1, "unknown-host": 1, "wrong-address": 1}
    four.until(lambda: counted() == expected)
    assert four.call(lambda: four.rows("h0")) == before[0]


def test_replayed_datagrams_are_counted(four: Cohort) -> None:
    """What a peer really sent, once more and from its own address."""
    agent, peer = four["h0"], four["h1"]
    counters = agent.controller.replica.counters
    before = four.call(lambda: counters.ignored["replayed"])  # type: ignore[index]
    heard: list[bytes] = []
    receive = agent.engine._receive

    def listen(data: bytes, address: str) -> None:
        if address == peer.transport.address:
            heard.append(data)
        receive(data, address)

    transport = agent.transport
    assert isinstance(transport, UdpTransport)
    four.call(lambda: transport.start(listen))
    four.until(lambda: heard)
    four.call(lambda: [receive(heard[0], peer.transport.address) for _ in range(3)])
    four.call(lambda: transport.start(receive))
    four.until(lambda: counters.ignored["replayed"] >= before + 3)  # type: ignore[index]


@pytest.mark.slow
def test_a_cluster_of_another_key_is_another_world(folder: Path) -> None:
    foreign = folder / "foreign"
    foreign.mkdir()
    write_cluster(foreign)
    (foreign / "cluster.key").write_text("1 " + SECRET[::-1] + "\n")
    with cohort(folder, 2, more=NO_HOLD) as here, cohort(foreign, 2, more=NO_HOLD) as there:
        config = there["h0"].config
        peers = {**config.peers, "h2": ("127.0.0.1", port_of(here))}
        there.call(lambda: there["h0"]._set_peers(peers, config.keys))
        counters = here["h0"].controller.replica.counters
        here.until(lambda: counters.refused["forged"] > 5)  # type: ignore[index]
        assert here.call(lambda: len(here["h0"].controller.replica.peers)) == 1


def port_of(cohort: Cohort) -> int:
    return int(cohort["h0"].transport.address.split(":")[1])


def test_a_second_agent_on_one_socket_is_refused(four: Cohort) -> None:
    config = load_config(write_config(four.folder, "h0", peers={}))
    second = four.call(lambda: Agent(config))
    with pytest.raises(ConfigError, match="another agent listens there"):
        four.run(second.start())


@pytest.mark.slow
def test_long_transfers_are_held_and_simultaneous_ones_end_apart(folder: Path) -> None:
    """Each chooses without knowing of the other; in the hold one learns of it and moves."""
    with cohort(folder, 3, more='[policy]\nhold = "200ms"\nmin_bytes = "1 MB"\n') as three:
        clients = [three.client("h0"), three.client("h1")]
        with ThreadPoolExecutor(2) as pool:
            for _ in range(3):
                held = list(pool.map(lambda one: one.transfer("h2", 1000 * GB, dport=4791), clients))
                assert {transfer.kind for transfer in held} == {"steered"}
                assert len({transfer.path for transfer in held}) == 2
                rows = three.call(lambda: list(three["h0"].controller.view.table))
                assert all(row.state is State.ACTIVE for row in rows if row.host == host_id("h0"))
                for transfer in held:
                    transfer.release()
                three.until(lambda: not any(three.rows(name) for name in three.agents))
