"""How many live transfers are on each link of a fabric: what schemes go by that know no more."""

from ark.fabric.parts import Nic
from ark.fabric.topology import Fabric


class LinkCounts:
    """Live transfers, each on one path, counted on every link between switches and on every NIC."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._rates_bps = fabric.link_rates_bps
        self._on_link = [0] * len(fabric.links)
        self._links: dict[int, tuple[int, ...]] = {}

    def links(self, source: Nic, target: Nic, path: int) -> tuple[int, ...]:
        """The links between switches on a path."""
        return self._fabric.attachment_paths(source.attachment, target.attachment)[path]

    def put(self, index: int, links: tuple[int, ...]) -> None:
        """A transfer is on these links from now on, and no longer on those that it was on."""
        self.drop(index)
        self._links[index] = links
        for link in links:
            self._on_link[link] += 1

    def drop(self, index: int) -> None:
        """A transfer is on no links any more."""
        for link in self._links.pop(index, ()):
            self._on_link[link] -= 1

    def on(self, link: int) -> int:
        """Live transfers on a link."""
        return self._on_link[link]

    def of(self, index: int) -> tuple[int, ...]:
        """The links of a live transfer."""
        return self._links[index]

    def load(self, links: tuple[int, ...]) -> tuple[float, float]:
        """Most transfers per bit/s on any of some links, and the sum over them."""
        loads = [self._on_link[link] / self._rates_bps[link] for link in links]
        return max(loads, default=0.0), sum(loads)
