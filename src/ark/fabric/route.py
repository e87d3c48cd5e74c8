"""Which path a flow takes: every ECMP decision on its way, in a row.

A packet meets a decision wherever several next hops lead on: at the host (which of its ports), at each
switch, and at each bundle of parallel links (LAG). Each decision has a hash of its own. One walk serves a
single flow and a flow under many source ports; ``ark.fabric.route_flows`` does many different flows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from ark.errors import ConfigError
from ark.fabric.five_tuple import UDP, FiveTuple, header_of
from ark.fabric.hash_spec import HashSpec
from ark.fabric.hashing import Hasher, hasher
from ark.fabric.hashing.header import Header, Lanes
from ark.fabric.parts import Nic, Path, Switch
from ark.fabric.roce import DPORT
from ark.fabric.selection import Selector, selector
from ark.fabric.topology import Fabric

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_ROUTERS_KEPT: Final = 16
"""Fabrics whose compiled hashes are kept; a process works with one or a few."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice among several links, at ``node``."""

    node: str
    spec: HashSpec
    links: tuple[int, ...]
    hasher: Hasher
    selector: Selector

    def choose(self, header: Header) -> Lanes:
        """Position in ``links`` of the link that is taken, for one header or for each of many.

        Raises
        ------
        ConfigError
            If the header does not decide it, or lacks what is hashed.
        """
        try:
            return self.selector.select(self.hasher.hash(header))
        except ConfigError as error:
            raise ConfigError(f"{self.node}: {error}") from None


class Router:
    """The forwarding decisions of one fabric, compiled as they are met."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self._decisions: dict[tuple[str, bool, tuple[int, ...], tuple[int, ...]], Decision] = {}
        self._hashers: dict[tuple[str, bool], Hasher] = {}

    def follow(self, header: Header, source: Nic, target: Nic) -> Path:
        """The path of one packet.

        Raises
        ------
        ConfigError
            If no path is up, or the header does not decide the path.
        """
        paths = self.fabric.paths(source, target)
        taken: tuple[int, ...] = ()
        node = source.name
        while node != target.name:
            link = _chosen(self.next_hop(node, target), header)
            taken = (*taken, _chosen(self.bundle(node, link), header))
            node = self.fabric.links[taken[-1]].target
            header = header._replace(ingress_port=self.port_numbers[taken[-1]])
        return next(path for path in paths if path.links == taken)

    def spread(
        self, header: Header, source: Nic, target: Nic, lanes: "npt.NDArray[np.intp]"
    ) -> "Iterator[tuple[Path, npt.NDArray[np.intp]]]":
        """Each path that some of many packets between two NICs take, with the lanes that take it.

        Parameters
        ----------
        header
            The headers, in lanes.
        source, target
            Where the packets start and where they go.
        lanes
            Numbers of the lanes, of shape (n,).

        Raises
        ------
        ConfigError
            As ``follow`` does.
        """
        by_links = {path.links: path for path in self.fabric.paths(source, target)}
        waiting: list[tuple[str, tuple[int, ...], Header, npt.NDArray[np.intp]]] = [
            (source.name, (), header, lanes)
        ]
        while waiting:
            node, taken, here, of_here = waiting.pop()
            if node == target.name:
                yield by_links[taken], of_here
                continue
            for link, of_link, link_lanes in _split(self.next_hop(node, target), here, of_here):
                for member, of_member, member_lanes in _split(self.bundle(node, link), of_link, link_lanes):
                    arrived = of_member._replace(ingress_port=self.port_numbers[member])
                    end = self.fabric.links[member].target
                    waiting.append((end, (*taken, member), arrived, member_lanes))

    def decisions(self, source: Nic, target: Nic) -> list[Decision]:
        """Every decision that some packet from ``source`` to ``target`` can meet."""
        found: list[Decision] = []
        reached = [source.name]
        for node in reached:
            steps = [self.next_hop(node, target)]
            steps += [self.bundle(node, link) for link in _links_of(steps[0])]
            for step in steps:
                if isinstance(step, Decision):
                    found.append(step)
                ends = (self.fabric.links[link].target for link in _links_of(step))
                reached += [end for end in ends if end != target.name and end not in reached]
        return found

    def next_hop(self, node: str, target: Nic) -> Decision | int:
        """The decision that ``node`` makes about packets for ``target``, or its only link."""
        links = self.fabric.next_hops(node, target)
        if len(links) == 1:
            return links[0]
        if not links:
            raise ConfigError(f'{self.fabric.name}: no path from "{node}" to "{target.name}" is up')
        if self._spec(node, is_bundle=False).selection != "resilient":
            return self._decision(node, links, (True,) * len(links), links, is_bundle=False)
        whole = self._whole.next_hops(node, target)
        # A LAG is named by its first member, which may be down now.
        names = [self._whole.lag_members(link)[0] for link in links]
        if not set(names) <= set(whole):
            whole = tuple(names)  # a detour is a new group
        return self._decision(node, whole, tuple(name in names for name in whole), links, is_bundle=False)

    def bundle(self, node: str, link: int) -> Decision | int:
        """The decision among the members of the LAG of a link, or the link itself."""
        links = self.fabric.lag_members(link)
        if len(links) == 1:
            return links[0]
        whole = self._whole.lag_members(link)
        return self._decision(node, whole, tuple(member in links for member in whole), links, is_bundle=True)

    @cached_property
    def port_numbers(self) -> tuple[int, ...]:
        """The port at which each link arrives: its position among the links into its target."""
        arrived: dict[str, int] = {}
        numbers = []
        for link in self.fabric.links:
            numbers.append(arrived.get(link.target, 0))
            arrived[link.target] = numbers[-1] + 1
        return tuple(numbers)

    @cached_property
    def _whole(self) -> Fabric:
        """The same fabric with nothing down: a resilient group keeps the table that it had then."""
        fabric = self.fabric
        return fabric.changed(
            switches=[replace(switch, up=True) for switch in fabric.switches],
            links=[replace(link, up=True) for link in fabric.links],
            attachments=[replace(of_nics, live=of_nics.switches) for of_nics in fabric.attachments],
        )

    def _spec(self, node: str, *, is_bundle: bool) -> HashSpec:
        switch = self._switches.get(node)
        if switch is None:
            return self.fabric.host_hash
        return switch.lag_hash if is_bundle else switch.hash

    @cached_property
    def _switches(self) -> dict[str, Switch]:
        return {switch.name: switch for switch in self.fabric.switches}

    def _decision(
        self,
        node: str,
        whole: tuple[int, ...],
        alive: tuple[bool, ...],
        links: tuple[int, ...],
        *,
        is_bundle: bool,
    ) -> Decision:
        key = (node, is_bundle, whole, links)
        found = self._decisions.get(key)
        if found is None:
            spec = self._spec(node, is_bundle=is_bundle)
            of_node = self._hasher(node, spec, is_bundle=is_bundle)
            weights = [1 if is_bundle else spec.weights.get(self.fabric.links[k].target, 1) for k in whole]
            chooser = selector(spec, bits=of_node.bits, weights=weights, alive=alive)
            found = self._decisions[key] = Decision(node, spec, links, of_node, chooser)
        return found

    def _hasher(self, node: str, spec: HashSpec, *, is_bundle: bool) -> Hasher:
        key = (node, is_bundle)
        found = self._hashers.get(key)
        if found is None:
            found = self._hashers[key] = hasher(spec, node=self.fabric.node_id(node))
        return found


def _links_of(step: Decision | int) -> Sequence[int]:
    return (step,) if isinstance(step, int) else step.links


def _chosen(step: Decision | int, header: Header) -> int:
    """The link that one packet takes."""
    if isinstance(step, int):
        return step
    choice = step.choose(header)
    assert isinstance(choice, int), "one header gives one number"
    return step.links[choice]


def _split(
    step: Decision | int, header: Header, lanes: "npt.NDArray[np.intp]"
) -> "list[tuple[int, Header, npt.NDArray[np.intp]]]":
    """Each link that is taken, with the headers and lanes that take it."""
    if isinstance(step, int):
        return [(step, header, lanes)]
    choice = step.choose(header)
    if isinstance(choice, int):
        return [(step.links[choice], header, lanes)]
    parts = []
    for position, link in enumerate(step.links):
        (taking,) = (choice == position).nonzero()
        if taking.size:
            parts.append((link, header.take(taking), lanes[taking]))
    return parts


@lru_cache(maxsize=_ROUTERS_KEPT)
def router(fabric: Fabric) -> Router:
    """The router of a fabric, made once."""
    return Router(fabric)


def route(fabric: Fabric, flow: FiveTuple, source: Nic, target: Nic) -> Path:
    """The path of one flow.

    Raises
    ------
    ConfigError
        If an address is none, no path is up, a switch sprays, or what is hashed is not known.
    """
    return router(fabric).follow(header_of(flow), source, target)


def route_ports(
    fabric: Fabric,
    source: Nic,
    target: Nic,
    ports: "npt.NDArray[np.integer[Any]]",
    *,
    dport: int = DPORT,
    proto: int = UDP,
    dest_qp: int | None = None,
    flow_label: int = 0,
) -> "npt.NDArray[np.int32]":
    """The number of the path that each source port leads to.

    Parameters
    ----------
    fabric, source, target
        Where the packets start and go; their addresses are hashed.
    ports
        Source ports, 0 to 65535, of shape (n,).
    dport, proto, dest_qp, flow_label
        The rest of what may be hashed, the same for all ports (``FiveTuple``).

    Returns
    -------
    numpy.ndarray
        Path numbers, ``int32`` of shape (n,).

    Raises
    ------
    ConfigError
        As ``route`` does.
    """
    import numpy as np  # noqa: PLC0415 - only arrays need NumPy

    flow = FiveTuple(source.address, target.address, 0, dport, proto, dest_qp, flow_label)
    header = header_of(flow)._replace(sport=ports.astype(np.uint32))
    found = np.empty(len(ports), dtype=np.int32)
    for path, lanes in router(fabric).spread(header, source, target, np.arange(len(ports))):
        found[lanes] = path.index
    return found
