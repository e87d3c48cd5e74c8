"""What a host says and hears where each leaf's links have subjects of their own, as over NATS (rule 10)."""

from collections.abc import Collection
from typing import Final

from ark.control.wire import down, up
from ark.fabric import Fabric, Host

LEAVES_HEARD: Final = 64
"""Leaves up to which a host hears what is sent to each of them from its start; beyond, from its own first
transfer there."""


def home(host: Host) -> tuple[str, ...]:
    """The subjects of the links from a host's own leaves up."""
    return tuple(map(up, sorted(_own_leaves(host))))


def heard(fabric: Fabric, host: Host) -> frozenset[str]:
    """What a host hears from the start: who sends from its leaves too, and to all leaves if few."""
    leaves = len(fabric.attachments)
    downs = map(down, range(leaves if leaves <= LEAVES_HEARD else 0))
    return frozenset((*map(up, beside(fabric, _own_leaves(host))), *downs))


def neighbours(fabric: Fabric, host: Host, peers: Collection[str]) -> int:
    """How many peers send from a host's leaves: it must hear these to know the load of its uplinks."""
    near = set(beside(fabric, _own_leaves(host)))
    return sum(
        not near.isdisjoint(nic.attachment for nic in other.nics)
        for other in fabric.hosts
        if other.name in peers
    )


def beside(fabric: Fabric, leaves: Collection[int]) -> list[int]:
    """The attachments that share links with some: those at the same switches.

    A NIC of two ports of which one is dead hangs on an attachment of its own.
    """
    switches = {name for leaf in leaves for name in fabric.attachments[leaf].switches}
    return [leaf.index for leaf in fabric.attachments if not switches.isdisjoint(leaf.switches)]


def _own_leaves(host: Host) -> set[int]:
    return {nic.attachment for nic in host.nics}
