"""The lab's networks on a real kernel: rates, counters, the management network with loss and cuts."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ark.errors import LabError
from ark.fabric import leaf_spine
from ark.lab import directory
from ark.lab.clos import Clos
from ark.lab.counters import Counters
from ark.lab.lab import Lab, lab
from ark.lab.namespaces import end_with, names_with, processes_with
from ark.lab.needs import needs
from ark.lab.scaled import scaled

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root and network namespaces"),
    pytest.mark.slow,
]

FABRIC = scaled(leaf_spine(2, 2, 1), 10**8, hash_seed=5).lab
DATAGRAMS = 400


@pytest.fixture(scope="module")
def built() -> Iterator[Lab]:
    with lab(FABRIC, name=f"ark-lab.network{os.getpid()}") as made:
        yield made


def udp(made: Clos, node: str, address: str) -> socket.socket:
    with made.inside(node):
        found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.bind((address, 0))
    found.settimeout(0.5)
    return found


def arrived(built: Lab, count: int = DATAGRAMS) -> int:
    """How many datagrams reach h1 from h0 over the management network."""
    sender, receiver = (udp(built.made, host, built.management.addresses[host]) for host in ("h0", "h1"))
    with sender, receiver:
        sent = came = 0
        for sent in range(1, count + 1):
            try:
                sender.sendto(b"x", receiver.getsockname())
            except OSError:
                break  # a cut cable may be seen at once
            if sent % 50 == 0 or sent == count:
                receiver.settimeout(0.5 if sent == count else 0.02)
                try:
                    while True:
                        receiver.recv(1)
                        came += 1
                except TimeoutError:
                    pass
        return came


def test_links_have_their_rate_and_hosts_their_window(built: Lab) -> None:
    for link in FABRIC.links:
        index = built.made.interface_index(link.index)
        (root,) = [
            one for one in built.made.routes(link.source).get_qdiscs(index=index) if one["index"] == index
        ]
        assert root.get_attr("TCA_KIND") == "tbf"
        parameters = root.get_attr("TCA_OPTIONS").get_attr("TCA_TBF_PARMS")
        assert parameters["rate"] == link.rate_bps // 8
        assert parameters["limit"] == built.constants.queue_bytes
    with built.made.inside("h0"):
        assert Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text("ascii").strip() == "reno"


def test_counters_count_what_a_link_carries(built: Lab) -> None:
    (uplink,) = [link.index for link in FABRIC.links if link.source == "h0"]
    counters = Counters(built.made, [uplink])
    with ExitStack() as stack:
        sender, receiver = (
            stack.enter_context(udp(built.made, nic.name, nic.address)) for nic in FABRIC.nics
        )
        counters.read(0.0)
        for _ in range(10):
            sender.sendto(b"x" * 1000, receiver.getsockname())
        for _ in range(10):
            assert receiver.recv(2000) == b"x" * 1000
        counters.read(1.0)
    counters.close()
    time_s, sent = counters.series()
    assert time_s.tolist() == [0.0, 1.0]
    assert sent[0, 0] == 0
    assert 10_000 <= sent[1, 0] <= 12_000  # an ARP or router solicitation may join


def test_the_management_network_loses_what_it_is_told_to(built: Lab) -> None:
    assert any(arrived(built, 1) for _ in range(20))
    assert arrived(built) == DATAGRAMS
    built.management.lose(1.0)
    assert arrived(built) == 0
    built.management.lose(0.5)
    assert 0.3 * DATAGRAMS < arrived(built) < 0.7 * DATAGRAMS  # 8 standard deviations
    built.management.lose(0.0)
    assert arrived(built) == DATAGRAMS


def test_a_cut_is_mended(built: Lab) -> None:
    built.management.cut(["h1"])
    assert arrived(built) == 0
    built.management.mend(["h1"])
    assert any(arrived(built, 1) for _ in range(20))  # the first ones wait for an address, or are lost
    assert arrived(built) == DATAGRAMS


def test_a_link_that_is_lost_carries_nothing_and_comes_back_with_its_rate(built: Lab) -> None:
    spine0 = [link.index for link in FABRIC.links if "spine0" in {link.source, link.target}]
    for fabric in (FABRIC.without_links(spine0), FABRIC):
        built.made.apply(fabric)
        with ExitStack() as stack:
            ends = [stack.enter_context(udp(built.made, nic.name, nic.address)) for nic in FABRIC.nics]
            for _ in range(20):
                with built.made.inside("h0"):
                    sender = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                sender.sendto(b"x", ends[1].getsockname())
            for _ in range(20):
                assert ends[1].recv(1) == b"x"
    qdiscs = built.made.routes("leaf0").get_qdiscs()
    assert sum(one.get_attr("TCA_KIND") == "tbf" for one in qdiscs) == 3


def test_switches_near_a_host_get_their_route_to_it_first(
    built: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a spine that comes back would be sent what it has no route for yet."""
    order: list[tuple[str, str]] = []
    monkeypatch.setattr(built.made, "_set_route", lambda switch, nic: order.append((nic.name, switch.name)))
    built.made.apply(FABRIC)
    assert [switch for nic, switch in order if nic == "h1"] == ["leaf1", "spine0", "spine1", "leaf0"]
    assert [switch for nic, switch in order if nic == "h0"] == ["leaf0", "spine0", "spine1", "leaf1"]


def test_processes_in_namespaces_are_found_and_ended(built: Lab) -> None:
    prefix = f"{built.name}-h0"
    with built.made.inside("h0"):
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert processes_with(prefix) == [process.pid]
    assert end_with(prefix) == [process.pid]
    assert process.wait() == -9
    assert processes_with(prefix) == []


def test_what_the_kernel_lacks_is_named(built: Lab) -> None:
    index = built.made.interface_index(0)
    routes = built.made.routes(FABRIC.links[0].source)
    with (
        pytest.raises(
            LabError, match=r"this kernel refuses odd queues: .*; the lab needs a kernel with CONFIG_X"
        ),
        needs("odd queues", "CONFIG_X"),
    ):
        routes.tc("add", "tbf", index, handle=0x20000, parent=0x7FFF_0001, rate=1000, burst=2000, limit=9000)


def test_the_directory_says_whose_the_lab_is(built: Lab) -> None:
    found = directory.read_note(built.name)
    assert found is not None
    assert found.process == os.getpid()
    assert set(found.nodes) == {"h0", "h1", "leaf0", "leaf1", "spine0", "spine1", "mgmt"}
    assert directory.is_alive(built.name)
    assert built.name in directory.names()
    with pytest.raises(LabError, match="is up already"):
        directory.make(built.name, ())


def test_nothing_is_left_of_a_lab() -> None:
    name = f"ark-lab.gone{os.getpid()}"
    with lab(FABRIC, name=name) as made:
        assert made.directory.is_dir()
        assert len(names_with(f"{name}-")) == 7
    assert not made.directory.exists()
    assert names_with(f"{name}-") == []
