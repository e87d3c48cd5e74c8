"""A fabric out of network namespaces: one for each host and switch, the kernel's ECMP in between.

``Clos`` builds what a ``Fabric`` describes, with its next-hop order, weights, hash fields and seeds. It also
plays the routing protocol: ``apply`` brings the namespaces to another state of the same fabric (links down,
other weights, other seeds). Every namespace carries one prefix; interfaces live inside of them, so nothing
else on the machine is touched. They are removed at the end, also after a crash (``ark.lab.sweep``).

Not built: NICs with several ports, several NICs a host, and LAGs.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from ark.errors import ConfigError, LabError
from ark.fabric import Fabric, Link, Nic, Switch
from ark.fabric.hash_spec import HashField
from ark.lab import sweep
from ark.lab.buildable import refuse_unbuildable
from ark.lab.namespaces import inside, remove_with
from ark.lab.needs import needs

if TYPE_CHECKING:
    from pyroute2 import IPRoute

HASH_FIELD_BITS: Final[Mapping[HashField, int]] = MappingProxyType(
    {"src": 0x1, "dst": 0x2, "proto": 0x4, "flow-label": 0x8, "sport": 0x10, "dport": 0x20}
)
"""``FIB_MULTIPATH_HASH_FIELD_*`` of the outer header. Source: Linux, include/net/ip_fib.h."""

_FIRST4: Final = ip_address("172.16.0.0")
_FIRST6: Final = ip_address("fd00:172:16::")
_INTERFACE_MAX: Final = 15
"""Characters of the name of an interface (IFNAMSIZ less the final zero)."""


_built: Final = count()


class Clos:
    """A fabric that runs; made by ``clos``.

    Attributes
    ----------
    fabric
        What it is now.
    prefix
        What the names of all its namespaces start with.
    addresses
        The switch that each address of a switch belongs to, as ICMP answers name it.
    """

    def __init__(self, fabric: Fabric, prefix: str) -> None:
        refuse_unbuildable(fabric)
        self.fabric = fabric
        self.prefix = prefix
        self.version = ip_address(fabric.nics[0].address).version
        self.addresses: dict[str, str] = {}
        self._nodes = [nic.name for nic in fabric.nics] + [switch.name for switch in fabric.switches]
        self._routes: dict[str, IPRoute] = {}
        self._interfaces: dict[int, str] = {}
        self._oif: dict[int, int] = {}
        self._back: dict[int, int] = {}
        self._link_addresses: dict[int, str] = {}
        self.route_metrics: dict[str, int] = {}
        """Metrics of the hosts' routes, such as ``initcwnd``; used from the next ``apply`` on."""

    def namespace(self, node: str) -> str:
        """The namespace of a NIC or switch."""
        return f"{self.prefix}-{node}"

    def interface(self, link: int) -> str:
        """The interface, in the namespace of the link's source, over which a link leaves."""
        return self._interfaces[link]

    def routes(self, node: str) -> "IPRoute":
        """The connection to the kernel in the namespace of a node."""
        return self._routes[node]

    def interface_index(self, link: int) -> int:
        """The number of the interface over which a link leaves, in the namespace of the link's source."""
        return self._oif[link]

    @contextmanager
    def inside(self, node: str) -> Iterator[None]:
        """Put the calling thread into the namespace of a node."""
        with inside(self.namespace(node)):
            yield

    def read_sysctl(self, node: str, name: str) -> int:
        """A number under net, such as ``ipv4/icmp_ratelimit``, in the namespace of a node."""
        with self.inside(node):
            return int(Path("/proc/sys/net", name).read_text("ascii"))

    def write_sysctl(self, node: str, **values: int) -> None:
        """Set numbers under net in the namespace of a node; two underscores stand for a slash."""
        for name, value in values.items():
            self.write_text(node, name.replace("__", "/"), str(value))

    def write_text(self, node: str, name: str, value: str) -> None:
        """Set one entry under net, such as ``ipv4/tcp_congestion_control``, in the namespace of a node."""
        path = Path("/proc/sys/net", name)
        with self.inside(node):
            try:
                path.write_text(f"{value}\n", "ascii")
            except OSError as error:
                raise LabError(
                    f"{node}: cannot set {path} to {value}: {error.strerror}; "
                    "the lab needs root and Linux 6.11 or later"
                ) from None

    def as_running(self) -> Fabric:
        """The fabric with the hash seeds that the kernel has now: the exact model of what runs."""
        return self.fabric.changed(
            switches=[
                replace(switch, hash=msgspec.structs.replace(switch.hash, seed=self._seed(switch.name)))
                for switch in self.fabric.switches
            ]
        )

    def _seed(self, node: str) -> int:
        return self.read_sysctl(node, "ipv4/fib_multipath_hash_seed")

    def build(self) -> None:
        """Make the namespaces, cables, addresses and routes."""
        from pyroute2 import IPRoute, netns  # noqa: PLC0415 - takes most of a second to import

        for node in self._nodes:
            netns.create(self.namespace(node))
            # Duplicate address detection would keep IPv6 addresses unusable for more than a second.
            self.write_sysctl(node, ipv6__conf__default__accept_dad=0, ipv6__conf__all__accept_dad=0)
            self._routes[node] = IPRoute(netns=self.namespace(node))
            self._routes[node].link("set", index=1, state="up")
        for switch in self.fabric.switches:
            self.write_sysctl(switch.name, ipv4__ip_forward=1, ipv6__conf__all__forwarding=1)
        self._name_interfaces()
        for number, (there, back) in enumerate(_cables(self.fabric)):
            self._back |= {there: back, back: there}
            self._plug(number, there, back)
        self.apply(self.fabric)

    def close(self) -> None:
        """Close the connections to the kernel and remove the namespaces, with all that is in them."""
        for route in self._routes.values():
            route.close()
        self._routes.clear()
        remove_with(f"{self.prefix}-")

    def apply(self, fabric: Fabric) -> None:
        """Bring links, hashes and routes to another state of the same fabric, as its routing protocol would.

        Switches near a host get their route to it first: none forwards to one that has no route yet.

        Raises
        ------
        ConfigError
            If the nodes or cables are not the same.
        """
        if [(k.source, k.target) for k in fabric.links] != [(k.source, k.target) for k in self.fabric.links]:
            raise ConfigError(f"{fabric.name}: has other links than {self.fabric.name}, which runs")
        self.fabric = fabric
        for link in fabric.links:
            state = "up" if link.up else "down"
            self._routes[link.source].link("set", index=self._oif[link.index], state=state)
        for link in fabric.links:
            self._set_neighbour(link)
        for switch in fabric.switches:
            self._set_hash(switch)
        for nic in fabric.nics:
            for switch in sorted(fabric.switches, key=lambda one: _distance(fabric, one.name, nic)):
                self._set_route(switch, nic)
        for nic in fabric.nics:
            out, back = fabric.ports(nic)[0]
            self._routes[nic.name].route(
                "replace",
                dst="default",
                gateway=self._link_addresses[back],
                oif=self._oif[out],
                family=self._family,
                flags=["onlink"],
                **({"metrics": self.route_metrics} if self.route_metrics else {}),
            )

    @property
    def _family(self) -> int:
        return 2 if self.version == 4 else 10  # AF_INET, AF_INET6

    def _name_interfaces(self) -> None:
        """After the neighbour where that fits, so that ``ip route`` in a namespace reads well."""
        taken: set[tuple[str, str]] = set()
        for link in self.fabric.links:
            name = link.target
            if (link.source, name) in taken or len(name) > _INTERFACE_MAX or name == "lo":
                name = f"link{link.index}"
            taken.add((link.source, name))
            self._interfaces[link.index] = name

    def _plug(self, number: int, there: int, back: int) -> None:
        """Make a cable out of the two links ``there`` and ``back``."""
        link = self.fabric.links[there]
        self._routes[link.source].link(
            "add",
            ifname=self._interfaces[there],
            kind="veth",
            address=_mac(there),
            peer={
                "ifname": self._interfaces[back],
                "net_ns_fd": self.namespace(link.target),
                "address": _mac(back),
            },
        )
        first = _FIRST4 if self.version == 4 else _FIRST6
        nics = {nic.name: nic.address for nic in self.fabric.nics}
        for end, address in ((there, first + 2 * number), (back, first + 2 * number + 1)):
            node = self.fabric.links[end].source
            routes = self._routes[node]
            self._oif[end] = index = routes.link_lookup(ifname=self._interfaces[end])[0]
            self._link_addresses[end] = text = nics.get(node, str(address))
            if node not in nics:
                self.addresses[text] = node
            spare = node not in nics  # the address of a NIC is the only one on its wire
            routes.addr("add", index=index, address=text, prefixlen=address.max_prefixlen - spare)
            routes.link("set", index=index, state="up")

    def _set_neighbour(self, link: Link) -> None:
        """Tell who is at the other end: asking would delay first packets, for IPv6 by a second and more."""
        if link.up:
            self._routes[link.source].neigh(
                "replace",
                dst=self._link_addresses[self._back[link.index]],
                lladdr=_mac(self._back[link.index]),
                ifindex=self._oif[link.index],
                state="permanent",
            )

    def _set_hash(self, switch: Switch) -> None:
        values = sysctls(switch)
        if values:
            self.write_sysctl(switch.name, **values)

    def _set_route(self, switch: Switch, nic: Nic) -> None:
        routes = self._routes[switch.name]
        length = 32 if self.version == 4 else 128
        hops = []
        for link in self.fabric.next_hops(switch.name, nic):
            target = self.fabric.links[link].target
            hop: dict[str, int | str] = {"oif": self._oif[link]}
            if target == nic.name:
                routes.route("replace", dst=f"{nic.address}/{length}", oif=self._oif[link])
                return
            hop["gateway"] = self._link_addresses[self._back[link]]
            hop["hops"] = switch.hash.weights.get(target, 1) - 1
            hops.append(hop)
        if hops:
            routes.route("replace", dst=f"{nic.address}/{length}", multipath=hops)


def sysctls(switch: Switch) -> dict[str, int]:
    """What makes a Linux switch hash as a fabric says; nothing where the fabric means another hash."""
    spec = switch.hash
    if spec.function != "linux":
        return {}
    bits = sum(HASH_FIELD_BITS[field] for field in spec.fields)
    return {
        "ipv4__fib_multipath_hash_policy": spec.policy,
        "ipv6__fib_multipath_hash_policy": spec.policy,
        "ipv4__fib_multipath_hash_fields": bits,
        "ipv6__fib_multipath_hash_fields": bits,
        "ipv4__fib_multipath_hash_seed": switch.node_id if spec.seed is None else spec.seed,
    }


@contextmanager
def clos(fabric: Fabric, *, prefix: str | None = None, directory: Path | None = None) -> Iterator[Clos]:
    """Build a fabric, and remove it at the end of the block, also after Ctrl-C, an exception or SIGKILL.

    Parameters
    ----------
    fabric
        What to build.
    prefix
        What the names of all namespaces start with; by default ``ark-``, the number of this process
        and a count.
    directory
        A directory that is removed at the end too.

    Raises
    ------
    LabError
        If pyroute2, root or a feature of the kernel is missing.
    ConfigError
        If the lab cannot build such a fabric.
    """
    made = Clos(fabric, prefix or f"ark-{os.getpid()}-{next(_built)}")
    require_rights()
    sweeper = sweep.started(f"{made.prefix}-", directory)
    try:
        try:
            with needs("virtual cables", "CONFIG_VETH and CONFIG_IP_ROUTE_MULTIPATH"):
                made.build()
        except PermissionError as error:
            raise LabError(
                f"cannot make network namespaces: {error}; the lab needs root: sudo ark …"
            ) from None
        yield made
    finally:
        try:
            made.close()
        finally:
            sweeper.communicate()


def require_rights() -> None:
    """Refuse to go on without root or pyroute2.

    Raises
    ------
    LabError
        Which of them is missing, and what to do.
    """
    if os.geteuid() != 0:
        raise LabError("network namespaces need root; run it as: sudo ark …")
    try:
        import pyroute2  # noqa: F401, PLC0415 - whether it is there
    except ImportError:
        raise LabError(
            'the lab needs pyroute2, which is not installed; run: pip install "ark-kv[lab]"'
        ) from None


def _distance(fabric: Fabric, node: str, nic: Nic) -> int:
    """Links from a switch to a NIC; more than any way has where there is none."""
    for links in range(len(fabric.switches) + 1):
        if node == nic.name:
            return links
        hops = fabric.next_hops(node, nic)
        if not hops:
            break
        node = fabric.links[hops[0]].target
    return len(fabric.links)


def _mac(link: int) -> str:
    """The address of the port over which a link leaves: locally administered, counted by link."""
    return "02:00:00:" + link.to_bytes(3).hex(":")


def _cables(fabric: Fabric) -> list[tuple[int, int]]:
    """The two links of each cable: of equal ends, the n-th there belongs to the n-th back."""
    waiting: dict[tuple[str, str], list[int]] = {}
    found = []
    for link in fabric.links:
        partners = waiting.get((link.target, link.source))
        if partners:
            found.append((partners.pop(0), link.index))
        else:
            waiting.setdefault((link.source, link.target), []).append(link.index)
    return found
