"""Agents that hear each other by multicast on loopback."""

import socket
from pathlib import Path

import pytest
from tests.agent.agents import write_config
from tests.agent.cohort import Cohort

from ark.agent import Agent, load_config
from ark.agent.multicast import MulticastTransport

TB = 10**12


@pytest.mark.slow
def test_agents_agree_by_multicast(folder: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        group = ("239.192.74.71", probe.getsockname()[1])
    made = Cohort(folder, 0)
    transports = {
        name: MulticastTransport(("127.0.0.1", 0), group, receive_buffer_bytes=2**20)
        for name in ("h0", "h1", "h2")
    }
    made.peers = {name: transport.address for name, transport in transports.items()}
    more = (
        '[policy]\nhold = "0"\nmin_bytes = "1 MB"\n[control]\ntransport = "multicast"\nheartbeat = "20ms"\n'
    )
    for name, transport in transports.items():
        agent = Agent(load_config(write_config(folder, name, peers=made.peers, more=more)), transport)
        made.run(agent.start())
        made.agents[name] = agent
    made.until_heard()
    with made.client("h0").transfer("h2", TB, dport=4791) as transfer:
        assert transfer.path is not None
        made.until(lambda: len(made.rows("h2")) == 1 and made.agree())
    made.until(lambda: not made.rows("h2"))
    counters = made["h0"].controller.replica.counters
    assert made.call(lambda: counters.ignored["own-echo"]) > 0  # type: ignore[index]
    made.close()
