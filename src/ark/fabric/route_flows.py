"""The paths of many different flows at once, hop by hop.

At each hop the flows are grouped by the node that they are at: one hash for all flows of a node, one
selection for all of them that choose among the same links.
"""

from typing import TYPE_CHECKING, Any

from ark.fabric.five_tuple import UDP, address_words
from ark.fabric.hashing.header import Header
from ark.fabric.roce import DPORT
from ark.fabric.route import Decision, Router, router
from ark.fabric.topology import Fabric

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.integer[Any]]


def route_flows(
    fabric: Fabric,
    source_nics: "Integers",
    target_nics: "Integers",
    sports: "Integers",
    dports: "Integers | int" = DPORT,
    proto: int = UDP,
    *,
    dest_qps: "Integers | None" = None,
) -> "npt.NDArray[np.int32]":
    """The number of the path that each flow takes.

    Parameters
    ----------
    fabric
        The network.
    source_nics, target_nics
        Indices of NICs, of shape (n,).
    sports, dports
        Ports, 0 to 65535, of shape (n,); one destination port for all will do.
    proto
        IP protocol of all flows.
    dest_qps
        Destination queue pairs, of shape (n,), needed where the fabric hashes them.

    Returns
    -------
    numpy.ndarray
        Path numbers, ``int32`` of shape (n,).

    Raises
    ------
    ConfigError
        If a flow has no path that is up, a switch sprays, or ``dest_qps`` is needed.
    """
    import numpy as np  # noqa: PLC0415 - only path maps and many flows need NumPy

    if not len(source_nics):
        return np.empty(0, dtype=np.int32)
    (same,) = (source_nics == target_nics).nonzero()
    if same.size:
        nic = fabric.nics[source_nics[same[0]]]
        fabric.paths(nic, nic)  # says what is wrong with that
    words = np.array([address_words(nic.address) for nic in fabric.nics], dtype=np.uint32)
    header = Header(
        tuple(words[source_nics].T),
        tuple(words[target_nics].T),
        proto,
        sports.astype(np.uint32),
        dports if isinstance(dports, int) else dports.astype(np.uint32),
        None if dest_qps is None else dest_qps.astype(np.uint32),
    )
    return _Journey(router(fabric), header, source_nics, target_nics).path_numbers()


class _Journey:
    """Many flows under way."""

    def __init__(self, way: Router, header: Header, sources: "Integers", targets: "Integers") -> None:
        import numpy as np  # noqa: PLC0415 - only path maps and many flows need NumPy

        fabric = way.fabric
        self._router = way
        self._header = header
        self._sources = sources
        self._targets = targets
        # Nodes are numbered: the NICs, then the switches.
        self._nodes = [*(nic.name for nic in fabric.nics), *(switch.name for switch in fabric.switches)]
        numbers = {name: number for number, name in enumerate(self._nodes)}
        self._ends = np.array([numbers[link.target] for link in fabric.links])
        self._ports = np.array(way.port_numbers, dtype=np.uint32)
        self._numbers: dict[tuple[int, int], dict[tuple[int, ...], int]] = {}
        self._attachments = np.array([nic.attachment for nic in fabric.nics])
        self._is_last = np.zeros((len(self._nodes), len(fabric.attachments)), dtype=np.bool_)
        for attachment in fabric.attachments:
            self._is_last[[numbers[name] for name in attachment.switches], attachment.index] = True

    def path_numbers(self) -> "npt.NDArray[np.int32]":
        """Send the flows to their ends and name the paths that they took."""
        import numpy as np  # noqa: PLC0415 - only path maps and many flows need NumPy

        hops = []
        flows = np.arange(len(self._sources))
        at = self._sources
        header = self._header
        while flows.size:
            links = self._hop(flows, at, header)
            taken = np.full(len(self._sources), -1)
            taken[flows] = links
            hops.append(taken)
            (going_on,) = (self._ends[links] != self._targets[flows]).nonzero()
            flows, links = flows[going_on], links[going_on]
            at = self._ends[links]
            header = self._header.take(flows)._replace(ingress_port=self._ports[links])
        return self._named(hops)

    def _hop(self, flows: "Integers", at: "Integers", header: Header) -> "Integers":
        """The link that each of some flows takes from the node where it is."""
        import numpy as np  # noqa: PLC0415 - only path maps and many flows need NumPy

        nics = self._router.fabric.nics
        targets = self._targets[flows]
        # Next hops depend on what the target hangs on, and at the last switch on the target itself.
        towards = self._attachments[targets]
        towards = np.where(self._is_last[at, towards], len(nics) + targets, towards)
        _, firsts, groups = np.unique(_joined(at, towards), return_index=True, return_inverse=True)
        steps = [
            self._router.next_hop(self._nodes[node], nics[target])
            for node, target in zip(at[firsts].tolist(), targets[firsts].tolist(), strict=True)
        ]
        links = _taken(steps, groups, header)
        _, firsts, groups = np.unique(_joined(at, links), return_index=True, return_inverse=True)
        bundles = [
            self._router.bundle(self._nodes[node], link)
            for node, link in zip(at[firsts].tolist(), links[firsts].tolist(), strict=True)
        ]
        return _taken(bundles, groups, header)

    def _named(self, hops: "list[Integers]") -> "npt.NDArray[np.int32]":
        """Path numbers: one look-up for all flows that take the same links between the same attachments."""
        import numpy as np  # noqa: PLC0415 - only path maps and many flows need NumPy

        nics = len(self._router.fabric.nics)
        ends = [self._attachments[self._sources], self._attachments[self._targets], self._ends[hops[0]]]
        inner = [np.where(self._ends[links] < nics, -1, links) for links in hops[1:]]
        groups = np.zeros(len(self._sources), dtype=np.int64)
        firsts = groups
        for column in (*ends, *inner):
            _, firsts, groups = np.unique(_joined(groups, column), return_index=True, return_inverse=True)
        numbers = [self._number(first, [int(taken[first]) for taken in hops]) for first in firsts.tolist()]
        return np.array(numbers, dtype=np.int32)[groups]

    def _number(self, flow: int, hops: list[int]) -> int:
        """The number of the path of one flow; ``hops`` are its links, and -1 after its end."""
        fabric = self._router.fabric
        source, target = fabric.nics[self._sources[flow]], fabric.nics[self._targets[flow]]
        links = tuple(link for link in hops if link >= 0)
        if len(links) == 2:  # one switch; with two ToRs it may be either
            return next(path.index for path in fabric.paths(source, target) if path.links == links)
        pair = (source.attachment, target.attachment)
        if pair not in self._numbers:
            self._numbers[pair] = {path: k for k, path in enumerate(fabric.attachment_paths(*pair))}
        return self._numbers[pair][links[1:-1]]


def _taken(steps: "list[Decision | int]", groups: "Integers", header: Header) -> "Integers":
    """The link that each flow takes, where flows of one group make the same step."""
    import numpy as np  # noqa: PLC0415 - only path maps and many flows need NumPy

    decisions = list({id(step): step for step in steps if isinstance(step, Decision)}.values())
    numbers = {id(decision): number for number, decision in enumerate(decisions)}
    links = np.array([step if isinstance(step, int) else -1 for step in steps])[groups]
    if not decisions:
        return links
    which = np.array([numbers.get(id(step), -1) for step in steps])[groups]
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(len(decisions) + 1))
    for decision, start, stop in zip(decisions, bounds[:-1], bounds[1:], strict=True):
        flows = order[start:stop]
        links[flows] = np.array(decision.links)[decision.choose(header.take(flows))]
    return links


def _joined(first: "Integers", second: "Integers") -> "Integers":
    """One number for each pair of numbers, of which the second are -1 or more."""
    return first * (int(second.max()) + 2) + second + 1
