"""Agents over a real NATS server (rules 10 and 18): subjects by leaf, restarts, permissions."""

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.agent.agents import SECRET, write_cluster, write_config
from tests.agent.cohort import PATIENCE_S, Cohort
from tests.agent.nats_server import nats_server

from ark.agent import Agent, load_config
from ark.agent.nats_settings import NatsSettings
from ark.agent.nats_transport import NatsTransport
from ark.control.outbox import Send
from ark.control.wire import Key, Put, down, encode_message, host_id, seal, up

TB = 10**12
FAST = 'heartbeat = "20ms"\nlease = "2s"\n'
QUICK = '[policy]\nhold = "0"\nmin_bytes = "1 MB"\n'


@contextmanager
def agents(folder: Path, port: int, *hosts: str, users: bool = False) -> Iterator[Cohort]:
    """Agents of a fabric of three leaves, two hosts each, that talk over NATS."""
    write_cluster(folder, leaves=3)
    made = Cohort(folder, 0)
    try:
        for name in hosts:
            nats = f'[control.nats]\nservers = ["nats://127.0.0.1:{port}"]\n'
            if users:
                nats += f'user = "{name}"\npassword_file = "{name}.password"\n'
                (folder / f"{name}.password").write_text(f"pass {name}\n")
                (folder / f"{name}.password").chmod(0o600)
            peers = {f"h{index}": f"127.0.0.1:{index + 1}" for index in range(6)}
            more = f'{QUICK}[control]\ntransport = "nats"\n{FAST}{nats}'
            agent = Agent(load_config(write_config(folder, name, peers=peers, more=more)))
            made.run(agent.start())
            made.agents[name] = agent
        yield made
    finally:
        made.close()


def flows(made: Cohort, name: str) -> dict[tuple[str, str], float]:
    """Transfers on each link, as an agent knows them."""
    links = made.client(name).status("links")["results"]
    assert isinstance(links, list)
    return {(link["source"], link["target"]): link["flows"] for link in links if link["flows"]}


@pytest.mark.slow
def test_each_host_counts_a_transfer_on_the_links_that_its_own_may_take(tmp_path: Path) -> None:
    """h1 sends from the same leaf as h0; h2 does not, but may send to the same leaf."""
    with nats_server(tmp_path) as port, agents(tmp_path, port, "h0", "h1", "h2") as made:
        made.until(lambda: made["h0"].controller.replica.is_live(host_id("h1")))
        made.until(lambda: made["h1"].controller.replica.is_live(host_id("h0")))
        with made.client("h0").transfer("h4", TB, dport=4791) as transfer:
            spine = f"spine{transfer.path}"
            made.until(lambda: len(made.rows("h1")) == 2)
            made.until(lambda: len(made.rows("h2")) == 1)
            assert flows(made, "h0") == flows(made, "h1") == {("leaf0", spine): 1, (spine, "leaf2"): 1}
            assert flows(made, "h2") == {(spine, "leaf2"): 1}
            with made.client("h1").transfer("h5", TB, dport=4791) as second:
                assert second.path not in {None, transfer.path}
                with made.client("h2").transfer("h4", TB, dport=4791) as third:
                    made.until(lambda: len(made.rows("h2")) == 3)
                    assert third.path is not None
        for name in ("h0", "h1", "h2"):
            made.until(lambda name=name: not made.rows(name))  # type: ignore[misc]


@pytest.mark.slow
def test_agents_find_each_other_again_when_the_server_has_restarted(tmp_path: Path) -> None:
    with nats_server(tmp_path) as port, agents(tmp_path, port, "h0", "h1") as made:
        pass
    with agents(tmp_path, port, "h0", "h1") as made:
        client = made.client("h0")
        with client.transfer("h4", TB, dport=4791) as alone:
            assert (alone.kind, alone.path is None) == ("blind", False)
            with nats_server(tmp_path, port=port):
                made.until(lambda: len(made.rows("h1")) == 2)
            with client.transfer("h5", TB, dport=4791) as missed:
                assert missed.path is not None
                made.until(lambda: made["h0"].transport.counters.send_failed)
                with nats_server(tmp_path, port=port):
                    made.until(lambda: len(made.rows("h1")) == 4)
            made.until(lambda: not made["h1"].controller.replica.heard)


def permissions(*hosts: str) -> str:
    """Users who may say what they want, under their own id only."""
    users = [
        f'{{user: {name}, password: "pass {name}", permissions: {{'
        f'publish: ["ark.*.*.{host_id(name):016x}"], '
        f'subscribe: ["ark.up.>", "ark.down.>", "ark.to.{host_id(name):016x}.*"]}}}}'
        for name in hosts
    ]
    return f"authorization: {{users: [{', '.join(users)}]}}\n"


@pytest.mark.slow
def test_the_permissions_of_the_server_bind_a_host_to_its_id(tmp_path: Path) -> None:
    """h2 has the cluster's key and speaks for h1: under its own id that is noticed, under h1's not sent."""
    put = Put(7, 1, (2,), 0, 2, TB, 8, fallback=False, moves=0)
    key = Key(1, bytes.fromhex(SECRET))
    with (
        nats_server(tmp_path, more=permissions("h0", "h1", "h2")) as port,
        agents(tmp_path, port, "h0", "h1", users=True) as made,
    ):
        made.until(lambda: all(made[name].controller.replica.heard for name in ("h0", "h1")))
        one = made["h0"].controller.replica
        fabric = made["h0"].config.fabric.digest()
        forged = seal(key, fabric, host_id("h1"), 2**62, up(0), 10**6, 1, [encode_message(put)])
        settings = NatsSettings((f"nats://127.0.0.1:{port}",), "ark", "h2", "pass h2")

        async def speak(as_host: str) -> NatsTransport:
            liar = NatsTransport(settings, host_id(as_host), [])
            liar.start(lambda *_: None)
            while not liar.counters.sent:
                liar.send([Send(up(0), None, "", forged)])
                await asyncio.sleep(0.002)
            return liar

        liars = [made.run(speak("h2"))]
        made.until(lambda: one.counters.ignored["wrong-address"])  # type: ignore[index]
        liars.append(made.run(speak("h1")))
        heard = one.counters.received
        made.until(lambda: one.counters.received > heard + 10)
        assert not made.rows("h0")
        assert one.peers[host_id("h1")].epoch < 2**62
        for liar in liars:
            made.call(liar.close)
            made.run(liar.wait_closed())


INFO = b'INFO {"server_id":"x","version":"2.10","max_payload":1048576,"proto":1}\r\n'


def talk_to(parts: Sequence[bytes], connections: int) -> None:
    """Let a transport talk to a server that says these things, each after hearing something, then listens on;
    return when it has come so often. The server closes nothing."""

    async def work() -> None:
        came = asyncio.Semaphore(0)
        writers = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            came.release()
            writers.append(writer)
            for part in parts:
                writer.write(part)
                await reader.read(4096)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = NatsTransport(NatsSettings((f"nats://127.0.0.1:{port}",), "ark"), 5, [up(0)])
        transport.start(lambda *_: None)
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(connections):
                await came.acquire()
        transport.close()
        await transport.wait_closed()
        for writer in writers:
            writer.close()
        server.close()

    asyncio.run(work())


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [
        [b"INFO []\r\n"],
        [b"INFO null\r\n"],
        [b"INFO {garbage\r\n"],
        [b"SSH-2.0-OpenSSH_9\r\n"],
        [bytes(10**6)],
    ],
)
def test_what_is_no_nats_server_is_tried_again_and_named_once(
    parts: Sequence[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "ark.agent"):
        talk_to(parts, 4)
    assert len([record for record in caplog.records if record.name == "ark.agent"]) == 1


@pytest.mark.slow
def test_a_server_that_falls_silent_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when its machine dies: no connection ends."""
    monkeypatch.setattr("ark.agent.nats_transport.PING_S", 0.05)
    talk_to([INFO, b"PONG\r\n"], 3)


def test_a_host_hears_all_leaves_where_they_are_few_and_otherwise_those_it_sends_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with agents(tmp_path, 1, "h0") as made:
        assert made["h0"].controller.replica.config.listens == {up(0), down(0), down(1), down(2)}
        assert made["h0"].controller.replica.config.home == (up(0),)
    monkeypatch.setattr("ark.agent.subjects.LEAVES_HEARD", 2)
    with agents(tmp_path, 1, "h0") as made:
        assert made["h0"].controller.replica.config.listens == {up(0)}
        with made.client("h0").transfer("h4", TB, dport=4791) as transfer:
            assert transfer.path is not None
        assert made["h0"].controller.replica.config.listens == {up(0), down(2)}


DUAL_PLANE = """kind = "dual-plane"
segments = 2
spines_per_plane = 2
hosts_per_segment = 2
[[link]]
between = ["h1", "tor1"]
up = false
"""


def test_a_nic_with_a_dead_port_is_heard_by_those_that_share_its_other_leaf(tmp_path: Path) -> None:
    """h1 hangs on an attachment of its own, but its way up is that of h0 in one plane."""
    write_cluster(tmp_path)
    (tmp_path / "fabric.toml").write_text(DUAL_PLANE)
    more = f'{QUICK}[control]\ntransport = "nats"\n{FAST}'
    config = load_config(
        write_config(tmp_path, "h0", peers={"h1": "127.0.0.1:1", "h2": "127.0.0.1:2"}, more=more)
    )
    own, beside = (config.fabric.host(name).nics[0].attachment for name in ("h0", "h1"))
    assert own != beside
    agent = Agent(config)
    replica = agent.controller.replica.config
    assert replica.home == (up(own),)
    assert {up(own), up(beside)} == {subject for subject in replica.listens if subject.startswith("up")}
    assert agent.controller.peers_expected == 1
    agent.transport.close()
