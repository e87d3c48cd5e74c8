"""The management network: a bridge that joins all hosts, apart from the fabric, for the agents' own talk.

It has addresses of its own (198.18.0.0/16, set aside for tests by RFC 2544). It can lose a share of its
packets or be cut, for all hosts or for some.
"""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from ark.lab.buildable import MANAGEMENT
from ark.lab.clos import Clos
from ark.lab.random_drop import set_loss

if TYPE_CHECKING:
    from pyroute2 import IPRoute

_FIRST: Final = ip_address("198.18.0.1")
_PREFIX_LENGTH: Final = 16


class Management:
    """The network; it ends with the namespaces of the fabric that it belongs to.

    Attributes
    ----------
    addresses
        Of each host, by name.
    """

    def __init__(self, made: Clos) -> None:
        self._made = made
        self._routes: IPRoute | None = None
        self._ports: dict[str, int] = {}
        self.addresses = {host.name: str(_FIRST + place) for place, host in enumerate(made.fabric.hosts)}

    def build(self) -> None:
        """Make the bridge and plug all hosts into it."""
        from pyroute2 import IPRoute, netns  # noqa: PLC0415 - takes most of a second to import

        name = self._made.namespace(MANAGEMENT)
        netns.create(name)
        self._routes = routes = IPRoute(netns=name)
        routes.link("add", ifname="bridge", kind="bridge")
        bridge = routes.link_lookup(ifname="bridge")[0]
        routes.link("set", index=bridge, state="up")
        for place, (host, address) in enumerate(self.addresses.items()):
            port = f"port{place}"
            routes.link(
                "add",
                ifname=port,
                kind="veth",
                peer={"ifname": MANAGEMENT, "net_ns_fd": self._made.namespace(host)},
            )
            self._ports[host] = index = routes.link_lookup(ifname=port)[0]
            routes.link("set", index=index, master=bridge, state="up")
            inner = self._made.routes(host)
            there = inner.link_lookup(ifname=MANAGEMENT)[0]
            inner.addr("add", index=there, address=address, prefixlen=_PREFIX_LENGTH)
            inner.link("set", index=there, state="up")

    def close(self) -> None:
        """Close the connection to the kernel."""
        if self._routes is not None:
            self._routes.close()
            self._routes = None

    def lose(self, share: float, hosts: Iterable[str] | None = None) -> None:
        """Lose a share of the packets to each of these hosts (all by default); 0 ends it."""
        for host in self._ports if hosts is None else hosts:
            set_loss(self._kernel(), self._ports[host], share)

    def cut(self, hosts: Iterable[str] | None = None) -> None:
        """Unplug these hosts (all by default)."""
        self._plug("down", hosts)

    def mend(self, hosts: Iterable[str] | None = None) -> None:
        """Plug these hosts in again (all by default)."""
        self._plug("up", hosts)

    def _plug(self, state: str, hosts: Iterable[str] | None) -> None:
        for host in self._ports if hosts is None else hosts:
            self._kernel().link("set", index=self._ports[host], state=state)

    def _kernel(self) -> "IPRoute":
        assert self._routes is not None, "the network is built"
        return self._routes
