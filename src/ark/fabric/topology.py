"""What a fabric is made of, and which equal-cost paths and next hops lead from one NIC to another.

A ``Fabric`` never changes. ``ark.fabric.generate`` and ``ark.fabric.load`` make one; whoever wants one
link fewer makes another by ``without_links``. Addresses, hashes and next-hop orders are kept here as data;
which path a packet really takes is decided in ``ark.fabric.route``.

Two numberings matter to everybody. A **link** is directed; its index is its position in ``Fabric.links``. A
**path** of a pair of NICs has a number that follows from the order of the switches in the fabric file alone:
with leaves and spines, path k is the one over spine k, and it keeps that number while spine k - 1 is down.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Final

import msgspec

from ark.errors import ConfigError
from ark.fabric.hash_spec import HashSpec
from ark.fabric.nearest import nearest
from ark.fabric.parts import Attachment, Host, Link, Nic, Path, Switch, hash_keys
from ark.fabric.routing import Routing

_PATHS_KEPT: Final = 250_000
"""Paths kept for reuse (about 200 bytes each); when they are more, all are dropped and made again."""


class Fabric:
    """A network of hosts, switches and links, with its routing.

    Parameters
    ----------
    name
        Short label for results.
    hosts, switches, links
        As described at their classes. ``Nic.attachment`` and ``Link.index`` must already be right:
        ``ark.fabric.build`` takes care of it.
    attachments
        The sets of switches that NICs hang on, by number.
    prefill, decode
        Names of the hosts of each role.
    host_hash
        How a NIC with several ports chooses one.
    """

    def __init__(
        self,
        name: str,
        *,
        hosts: Sequence[Host],
        switches: Sequence[Switch],
        links: Sequence[Link],
        attachments: Sequence[Attachment],
        prefill: Sequence[str],
        decode: Sequence[str],
        host_hash: HashSpec,
    ) -> None:
        self.name = name
        self.hosts = tuple(hosts)
        self.nics = tuple(nic for host in self.hosts for nic in host.nics)
        self.switches = tuple(switches)
        self.links = tuple(links)
        self.attachments = tuple(attachments)
        self.prefill = tuple(prefill)
        self.decode = tuple(decode)
        self.host_hash = host_hash
        self._nics = {nic.name: nic for nic in self.nics}
        self._hosts = {host.name: host for host in self.hosts}
        self._positions = {switch.name: position for position, switch in enumerate(self.switches)}
        self._routing = Routing(
            nics=self.nics,
            switches=self.switches,
            links=self.links,
            attachments=self.attachments,
            positions=self._positions,
            spines=self.spines,
        )
        self._paths: dict[int, tuple[Path, ...]] = {}
        self._paths_kept = 0

    def __repr__(self) -> str:
        counts = f"{len(self.nics)} NICs, {len(self.switches)} switches, {len(self.links)} links"
        return f"<Fabric {self.name}: {counts}>"

    # Fabrics like this one

    def changed(
        self,
        *,
        switches: Sequence[Switch] | None = None,
        links: Sequence[Link] | None = None,
        attachments: Sequence[Attachment] | None = None,
        prefill: Sequence[str] | None = None,
        decode: Sequence[str] | None = None,
    ) -> "Fabric":
        """The same network but for the parts that are given, each in the order that it has here."""
        return Fabric(
            self.name,
            hosts=self.hosts,
            switches=self.switches if switches is None else switches,
            links=self.links if links is None else links,
            attachments=self.attachments if attachments is None else attachments,
            prefill=self.prefill if prefill is None else prefill,
            decode=self.decode if decode is None else decode,
            host_hash=self.host_hash,
        )

    def without_links(self, down: Collection[int]) -> "Fabric":
        """The same network with some more links down, by index."""
        return self.changed(
            links=[replace(link, up=link.up and link.index not in down) for link in self.links]
        )

    # What there is

    def nic(self, name: str) -> Nic:
        """The NIC of that name.

        Raises
        ------
        ConfigError
            If there is none; the message names the nearest known one.
        """
        found = self._nics.get(name)
        if found is None:
            host = self._hosts.get(name)
            if host is not None:
                raise ConfigError(
                    f'host "{name}" has {len(host.nics)} NICs; write one of them, like "{name}.0"'
                )
            raise ConfigError(nearest(name, self._nics, "NIC", f"{self.name} has"))
        return found

    def host(self, name: str) -> Host:
        """The host of that name; a ``ConfigError`` with the nearest known name where there is none."""
        found = self._hosts.get(name)
        if found is None:
            raise ConfigError(nearest(name, self._hosts, "host", f"{self.name} has"))
        return found

    def switch(self, name: str) -> Switch:
        """The switch of that name; a ``ConfigError`` with the nearest known name where there is none."""
        found = self._positions.get(name)
        if found is None:
            raise ConfigError(nearest(name, self._positions, "switch", f"{self.name} has"))
        return self.switches[found]

    def node_id(self, name: str) -> int:
        """The number of a NIC or switch: its hash seed where no seed is given (a NIC's is its index)."""
        nic = self._nics.get(name)
        return self.switch(name).node_id if nic is None else nic.index

    def ports(self, nic: Nic) -> tuple[tuple[int, int], ...]:
        """(link out, link in) of each port of a NIC, those down included, in the order of the file."""
        return self._routing.ports[nic.index]

    @cached_property
    def spines(self) -> tuple[str, ...]:
        """The switches of the top tier, in order; none in a fabric of one leaf.

        These are the cores, or else the spines, or else all switches that no host hangs on.
        """
        for kind in ("core", "spine"):
            found = tuple(switch.name for switch in self.switches if switch.kind == kind)
            if found:
                return found
        used = {name for attachment in self.attachments for name in attachment.switches}
        return tuple(switch.name for switch in self.switches if switch.name not in used)

    @cached_property
    def link_rates_bps(self) -> tuple[int, ...]:
        """Rate of each link by its index; 0 where it is down."""
        return tuple(link.rate_bps if link.up else 0 for link in self.links)

    def is_fabric_link(self, index: int) -> bool:
        """Whether a link runs between two switches."""
        link = self.links[index]
        return link.source in self._positions and link.target in self._positions

    @cached_property
    def prefill_capacity_bps(self) -> int:
        """Sum of the rates of all links that are up and lead upwards from the leaves of the prefill hosts.

        This is what a load of 1 fills. It is 0 where all hosts hang on one leaf.
        """
        leaves = {
            name
            for host in self.prefill
            for nic in self._hosts[host].nics
            for name in self.attachments[nic.attachment].switches
        }
        return sum(
            self.links[link].rate_bps
            for leaf in leaves
            for neighbour, link in self._routing.graph.hops(self._positions[leaf], up_only=True)
            if self.switches[neighbour].name not in leaves
        )

    # Where packets may go

    def paths(self, source: Nic, target: Nic) -> tuple[Path, ...]:
        """All equal-cost shortest paths that are up, by ascending number.

        Raises
        ------
        ConfigError
            If the two are the same NIC, or no path between them is up.
        """
        key = source.index * len(self.nics) + target.index
        found = self._paths.get(key)
        if found is not None:
            return found
        if source.index == target.index:
            raise ConfigError(f'"{source.name}" is source and target at once; a path needs two NICs')
        pair = self._routing.pair(source.attachment, target.attachment)
        if not pair.usable:
            raise ConfigError(
                f'{self.name}: no path from "{source.name}" to "{target.name}" is up; '
                "`ark fabric check` lists what is down or missing"
            )
        out = {self.links[link].target: link for link, _ in self.ports(source)}
        into = {self.links[link].source: link for _, link in self.ports(target)}
        made = []
        for number in pair.usable:
            walk = pair.walks[number]
            first, last = self.switches[walk.first].name, self.switches[walk.last].name
            made.append(Path(number, (out[first], *walk.links, into[last]), pair.spines[number]))
        if self._paths_kept + len(made) > _PATHS_KEPT:
            self._paths.clear()
            self._paths_kept = 0
        self._paths_kept += len(made)
        self._paths[key] = found = tuple(made)
        return found

    def path(self, source: Nic, target: Nic, number: int) -> Path:
        """The path of that number.

        Raises
        ------
        ConfigError
            As of ``paths``, or if that path is not up.
        """
        found = self.paths(source, target)
        if 0 <= number < len(found) and found[number].index == number:  # so while all are up
            return found[number]
        for path in found:
            if path.index == number:
                return path
        raise ConfigError(f'{self.name}: path {number} from "{source.name}" to "{target.name}" is not up')

    def attachment_paths(self, source: int, target: int) -> tuple[tuple[int, ...], ...]:
        """The switch-to-switch links of each path between two attachments, by path number.

        An entry is ``()`` where the path stays in one switch. Paths that are down keep their number and their
        links; ``up_paths`` leaves them out. One of their links has the rate 0, or it is a NIC's port to the
        first or last switch that is down.
        """
        return self._routing.pair(source, target).links

    def up_paths(self, source: int, target: int) -> tuple[int, ...]:
        """The numbers of those paths between two attachments that are up; none where there is no way."""
        return self._routing.pair(source, target).usable

    def next_hops(self, node: str, target: Nic) -> tuple[int, ...]:
        """The links over which a switch may forward to a NIC, in the order in which its ECMP counts them.

        A NIC with several ports is a node too. A LAG counts as one next hop and is given by its first
        member that is up; ``lag_members`` has them all. Empty where the node has no way to the NIC.
        """
        nic = self._nics.get(node)
        if nic is not None:
            return self._routing.ports_towards(nic, target)
        position = self._positions.get(node)
        if position is None:
            raise ConfigError(nearest(node, self._positions, "switch", f"{self.name} has"))
        return self._routing.next_hops(position, target)

    def lag_members(self, link: int) -> tuple[int, ...]:
        """The links that are up of the LAG that a link belongs to, in order; just itself outside of a LAG."""
        return self._routing.lag_members(link)

    @cached_property
    def _description(self) -> bytes:
        """All that decides what "path 2" means and how fast it is, in canonical form."""
        return msgspec.msgpack.encode(
            (
                [(nic.name, nic.host, nic.address) for nic in self.nics],
                [
                    (
                        s.name,
                        s.kind,
                        s.node_id,
                        s.up,
                        hash_keys(s.hash),
                        hash_keys(s.lag_hash),
                        s.next_hop_order,
                    )
                    for s in self.switches
                ],
                [(k.source, k.target, k.rate_bps, k.delay_ns, k.up, k.lag) for k in self.links],
                hash_keys(self.host_hash),
            ),
            order="sorted",
        )

    def digest(self) -> bytes:
        """16 bytes (BLAKE2b) that tell this network from any other, whatever the form of its file.

        The name of the fabric and the roles of hosts do not count; the order of hosts, switches and links
        does.
        """
        return blake2b(self._description, digest_size=16).digest()
