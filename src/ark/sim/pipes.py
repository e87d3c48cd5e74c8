"""A fabric whose spines are pooled: all uplinks of a leaf are one pipe, and all its downlinks another.

Leaves that share hosts with several ports count as one, because each such host may use either; a NIC with
several ports is one pipe as well.
"""

from ark.fabric.parts import Nic
from ark.fabric.topology import Fabric


class Pipes:
    """The pipes of one fabric, numbered: each NIC out, each NIC in, each group of leaves up, each down.

    Attributes
    ----------
    group
        For each attachment the first one that it shares a switch with, directly or through others.
    rates_bps
        Rate of each pipe, the sum of the links that it stands for; 0 where none of them is up. There is a
        place for a group by the number of each attachment, used or not.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._nics = len(fabric.nics)
        self.group = _groups(fabric)
        self.rates_bps = _rates_bps(fabric, self.group)

    def between(self, source: Nic, target: Nic) -> tuple[int, ...]:
        """The pipes from NIC to NIC; none up and down inside a group."""
        first, last = self.group[source.attachment], self.group[target.attachment]
        out, into = source.index, self._nics + target.index
        if first == last:
            return (out, into)
        return (out, 2 * self._nics + first, 2 * self._nics + len(self.group) + last, into)


def _groups(fabric: Fabric) -> list[int]:
    group = list(range(len(fabric.attachments)))
    by_switch: dict[str, int] = {}
    for number, attachment in enumerate(fabric.attachments):
        for switch in attachment.live:
            joined = {group[number], group[by_switch.setdefault(switch, number)]}
            if len(joined) > 1:
                group = [min(joined) if of in joined else of for of in group]
    return group


def _rates_bps(fabric: Fabric, group: list[int]) -> list[int]:
    rates_bps = fabric.link_rates_bps
    out = [sum(rates_bps[link] for link, _ in fabric.ports(nic)) for nic in fabric.nics]
    into = [sum(rates_bps[link] for _, link in fabric.ports(nic)) for nic in fabric.nics]
    leaves = {
        switch: group[number]
        for number, attachment in enumerate(fabric.attachments)
        for switch in attachment.live
    }
    up, down = [0] * len(group), [0] * len(group)
    for link in fabric.links:
        source, target = leaves.get(link.source), leaves.get(link.target)
        if source != target and fabric.is_fabric_link(link.index):
            if source is not None:
                up[source] += rates_bps[link.index]
            if target is not None:
                down[target] += rates_bps[link.index]
    return [*out, *into, *up, *down]
