"""Half of ARK: reserve the own leaf's uplinks, and look at nothing beyond the spine.

Each transfer takes the path whose first link between switches has the fewest live transfers of all hosts on
that leaf, seen at once; equal ones by a random number. What meets it on the way down is left to chance.
"""

from ark.sim.schemes.counting import Counting
from ark.sim.schemes.scheme import Transfer


class Uplinks(Counting):
    """The least used uplink."""

    name = "ark-uplinks"

    def choose(self, transfer: Transfer) -> int:
        """The path over the least used uplink."""
        source, target, spread = transfer.source, transfer.target, self._spread[transfer.index]
        usable = self._fabric.up_paths(source.attachment, target.attachment)
        turned = [usable[(place + spread) % len(usable)] for place in range(len(usable))]
        return min(turned, key=lambda path: self._counts.load(self._counts.links(source, target, path)[:1]))
