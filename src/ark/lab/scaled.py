"""The fabric as the lab runs it: the same network with all rates divided, hashed as Linux does."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ark.errors import ConfigError
from ark.fabric import Fabric, HashSpec
from ark.units import format_rate


@dataclass(frozen=True)
class Scaled:
    """A fabric in full size and as the lab runs it.

    Rates and sizes are divided by the same factor, so that times stay what they are.

    Attributes
    ----------
    full, lab
        The same but for the rates of the links.
    factor
        By what rates and sizes are divided.
    """

    full: Fabric
    lab: Fabric
    factor: Fraction

    def sizes(self, size_bytes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The sizes of transfers in the lab, at least one byte each."""
        return np.maximum(np.rint(size_bytes / float(self.factor)), 1).astype(np.int64)


def scaled(fabric: Fabric, host_rate_bps: int, *, hash_seed: int) -> Scaled:
    """The fabric whose fastest host link has ``host_rate_bps``; the others keep their proportion.

    Switches that do not hash as Linux get that hash, each with a seed that follows from ``hash_seed`` and its
    node number; such as do, keep theirs.

    Raises
    ------
    ConfigError
        If a link would be slower than 1 Mbit/s.
    """
    fastest = max(fabric.links[fabric.ports(nic)[0][0]].rate_bps for nic in fabric.nics)
    factor = Fraction(fastest, host_rate_bps)
    switches = [
        switch
        if switch.hash.function == "linux"
        else replace(
            switch,
            hash=HashSpec(
                function="linux", selection="thresholds", seed=_seed(hash_seed, switch.node_id),
                weights=switch.hash.weights,
            ),
        )
        for switch in fabric.switches
    ]  # fmt: skip
    slowest = min(link.rate_bps for link in fabric.links) / factor
    if slowest < 1_000_000:
        raise ConfigError(
            f"{fabric.name}: its slowest link would have {format_rate(float(slowest))}; "
            "give a higher --rate (at least 1 Mbit/s each)"
        )
    links = [replace(link, rate_bps=round(link.rate_bps / factor)) for link in fabric.links]
    full = fabric.changed(switches=switches)
    return Scaled(full, full.changed(links=links), factor)


def _seed(hash_seed: int, node_id: int) -> int:
    """A seed of 32 bits for one switch, never 0 (which means random to Linux). Source: Knuth's constant."""
    return (hash_seed * 0x9E37_79B1 + node_id * 0x85EB_CA6B) % 2**32 or 1
