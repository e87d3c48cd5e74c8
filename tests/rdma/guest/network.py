"""A leaf-spine Clos in the guest: two RoCE hosts, two leaves and the spines, with the kernel's own ECMP.

Leaves and spines are namespaces. The hosts stay in the initial one, since the UDP socket of rdma_rxe lives
there only before Linux 7; policy rules force what they send each other onto the wire.
"""

import subprocess
from typing import Final, NamedTuple

from ark.discover.probe import Flow
from ark.discover.route_get import questions

SPINES: Final = 4
HASH_FIELDS: Final = 0x37
"""Addresses, protocol and ports. Policy 1 would honour the socket's hash, which veth carries to the leaf."""


class Host(NamedTuple):
    """One RoCE host: its place, its interface and its device."""

    name: str
    number: int
    address: str
    interface: str
    device: str

    @property
    def leaf(self) -> str:
        """Namespace of its switch."""
        return f"leaf{self.number}"

    @property
    def gateway(self) -> str:
        """Its leaf's address."""
        return f"10.{self.number + 1}.0.1"

    @property
    def port_of_leaf(self) -> str:
        """The leaf's interface to it."""
        return f"to-{self.name}"


HOSTS: Final = tuple(Host(f"h{n}", n, f"10.{n + 1}.0.2", f"eth{n}", f"rxe{n}") for n in range(2))


def build() -> None:
    """Make all of it; the guest's end removes it."""
    for name in ("rdma_rxe", "veth", "sch_tbf"):
        _run("modprobe", name)
    switches = [host.leaf for host in HOSTS] + [f"spine{spine}" for spine in range(SPINES)]
    _ip("", ["link set lo up", *(f"netns add {name}" for name in switches)])
    for name in switches:
        _sysctl(
            name,
            {
                "net.ipv4.ip_forward": 1,
                "net.ipv4.conf.all.rp_filter": 0,
                "net.ipv4.conf.default.rp_filter": 0,
                "net.ipv4.fib_multipath_hash_policy": 3,
                "net.ipv4.fib_multipath_hash_fields": HASH_FIELDS,
            },
        )
    _sysctl("", {"net.ipv4.conf.all.rp_filter": 0, "net.ipv4.conf.default.rp_filter": 0})
    for host in HOSTS:
        _attach(host)
    for host, other in (HOSTS, HOSTS[::-1]):
        for spine in range(SPINES):
            _join(host, spine)
        hops = " ".join(f"nexthop via {_spine_address(host, spine)}" for spine in range(SPINES))
        _ip(host.leaf, [f"route add {_subnet(other)} {hops}"])
    # Packets that come in over the wire are for us; all else goes onto it.
    _ip(
        "",
        [
            *(f"rule add pref {host.number + 1} iif {host.interface} lookup local" for host in HOSTS),
            *(f"rule add pref 10 oif {host.interface} lookup {_table(host)}" for host in HOSTS),
            *(f"rule add pref 10 from {host.address} lookup {_table(host)}" for host in HOSTS),
            "rule add pref 32000 lookup local",
            "rule del pref 0",
        ],
    )
    for host in HOSTS:
        _run("rdma", "link", "add", host.device, "type", "rxe", "netdev", host.interface)


def leaf_answers(source: Host, target: Host, dport: int, ports: range) -> str:
    """What the source's leaf says about the next hop of each port, as ``ip route get`` prints it."""
    flow = Flow(source.address, target.address, 17, 0, dport)
    asked = questions(flow, ports, interface=source.port_of_leaf)
    return _run("ip", "-n", source.leaf, "-batch", "-", stdin=asked)


def spine_names(source: Host) -> dict[str, str]:
    """The spine that a next hop's address belongs to, as the source's leaf sees it."""
    return {_spine_address(source, spine): f"spine{spine}" for spine in range(SPINES)}


def throttle(source: Host, spine: int, rate: str) -> None:
    """Let the link from a host's leaf to a spine carry no more than ``rate``, in the words of tc."""
    _run(
        *("tc", "-n", source.leaf, "qdisc", "replace", "dev", f"spine{spine}", "root"),
        *("tbf", "rate", rate, "burst", "16kb", "limit", "400kb"),  # more than a queue pair has in flight
    )


def _attach(host: Host) -> None:
    _ip(
        "",
        [
            f"link add {host.interface} type veth peer name {host.port_of_leaf} netns {host.leaf}",
            f"address add {host.address}/24 dev {host.interface}",
            f"link set {host.interface} up",
            f"route add {_subnet(host)} dev {host.interface} table {_table(host)}",
            f"route add default via {host.gateway} table {_table(host)}",
        ],
    )
    _ip(
        host.leaf,
        [
            f"address add {host.gateway}/24 dev {host.port_of_leaf}",
            f"link set {host.port_of_leaf} up",
        ],
    )
    _sysctl(
        "",
        {
            f"net.ipv4.conf.{host.interface}.accept_local": 1,
            f"net.ipv4.conf.{host.interface}.arp_ignore": 1,
        },
    )


def _join(host: Host, spine: int) -> None:
    """A cable between a host's leaf and a spine, and the spine's route to the host."""
    _ip(
        host.leaf,
        [
            f"link add spine{spine} type veth peer name {host.leaf} netns spine{spine}",
            f"address add 10.{10 + host.number}.{spine}.1/24 dev spine{spine}",
            f"link set spine{spine} up",
        ],
    )
    _ip(
        f"spine{spine}",
        [
            f"address add {_spine_address(host, spine)}/24 dev {host.leaf}",
            f"link set {host.leaf} up",
            f"route add {_subnet(host)} via 10.{10 + host.number}.{spine}.1",
        ],
    )


def _subnet(host: Host) -> str:
    return f"10.{host.number + 1}.0.0/24"


def _spine_address(host: Host, spine: int) -> str:
    return f"10.{10 + host.number}.{spine}.2"


def _table(host: Host) -> int:
    return 100 + host.number


def _sysctl(namespace: str, values: dict[str, int]) -> None:
    inside = ["ip", "netns", "exec", namespace] if namespace else []
    _run(*inside, "sysctl", "-qw", *(f"{name}={value}" for name, value in values.items()))


def _ip(namespace: str, lines: list[str]) -> None:
    inside = ["-n", namespace] if namespace else []
    _run("ip", *inside, "-batch", "-", stdin="".join(f"{line}\n" for line in lines))


def _run(*command: str, stdin: str = "") -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}\n{stdin}")
    return done.stdout
