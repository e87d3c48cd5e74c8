"""Source ports for paths: path maps made in a thread of their own, and which of their ports are in use."""

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import MappingProxyType
from typing import Final, NamedTuple

from ark.client.messages import Lane
from ark.fabric import Fabric, Nic, PathMap, path_map
from ark.fabric.pathmap import Influence
from ark.fabric.roce import DPORT, SPORTS, flow_label_of_sport

MAPS_MAX: Final = 4096
"""Path maps kept, about 10 KB each. Full: those that nobody uses are forgotten."""

UDP: Final = 17


class Way(NamedTuple):
    """What a path map is for."""

    source: int
    target: int
    dport: int
    proto: int


class Learned(NamedTuple):
    """A map that was learned on the live fabric, and its epoch."""

    map: PathMap
    epoch: int

    @property
    def is_valid(self) -> bool:
        """Whether it holds now, as far as is known."""
        return self.map.influence is not Influence.IN_DOUBT


class Ports:
    """The source ports of one way, and how many transfers and lanes use each.

    Two transfers at once to one peer get different ports as long as their path has some: connections of equal
    five-tuples would collide, and queue pairs of equal ports share a congestion window in some NICs.

    Attributes
    ----------
    mask
        A set bit for each path to which a port leads; where hashes are alike, some have none.
    """

    def __init__(self, map_: PathMap) -> None:
        self.users = 0
        self._used: Counter[int] = Counter()
        self.change(map_)

    @property
    def steers(self) -> bool:
        """Whether the source port decides the path."""
        return self.map.influence is Influence.PORT

    def change(self, map_: PathMap) -> None:
        """Go by another map from now on; lanes in use keep their ports, which stay counted."""
        self.map = map_
        self.mask = sum(1 << path for path in map_.paths if map_.ports(path))

    def take(self, path: int) -> Lane:
        """The lane over a path, with the port least in use; without a port where none leads there."""
        ports = self.map.ports(path)
        if not ports:
            return self.claim(Lane(path))
        port = min(ports, key=self._used.__getitem__)
        label = flow_label_of_sport(port) if self.map.proto == UDP and port in SPORTS else 0
        return self.claim(Lane(path, port, label))

    def claim(self, lane: Lane) -> Lane:
        """Count a lane that is in use already."""
        self.users += 1
        self._used[lane.source_port] += 1
        return lane

    def give(self, lane: Lane) -> None:
        """A lane is free again."""
        self.users -= 1
        self._used[lane.source_port] -= 1
        if not self._used[lane.source_port]:
            del self._used[lane.source_port]


class PortBook:
    """The ports of every way in use, made by a thread so that nobody else waits.

    Parameters
    ----------
    learned
        Maps that were learned on the live fabric, for ways on which its hash is not known.
    """

    def __init__(self, fabric: Fabric, learned: Mapping[Way, Learned] = MappingProxyType({})) -> None:
        self._fabric = fabric
        self.learned = learned
        self._ways: dict[Way, Ports] = {}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="ark-path-maps")
        self.made = 0

    def __len__(self) -> int:
        return len(self._ways)

    def ready(self, way: Way) -> Ports | None:
        """The ports of a way, if they are there already."""
        return self._ways.get(way)

    def make(self, way: Way, then: Callable[["Future[PathMap]"], None]) -> None:
        """Make a map; ``then`` is called in the worker's thread and hands over to ``made_one``."""
        self._worker.submit(self._map, way).add_done_callback(then)

    def made_one(self, way: Way, map_: PathMap) -> Ports:
        """Keep a new map (in the loop's thread)."""
        found = self._ways.get(way)
        if found is not None:
            return found
        self.made += 1
        if len(self._ways) >= MAPS_MAX:
            self._ways = {known: ports for known, ports in self._ways.items() if ports.users}
        learned = self.learned.get(way)  # perhaps since the map was made
        ports = Ports(map_ if learned is None else learned.map)
        if len(self._ways) < MAPS_MAX:
            self._ways[way] = ports
        return ports

    def relearn(self, learned: Mapping[Way, Learned]) -> None:
        """Go by other learned maps from now on; what is in use stays counted."""
        for way in list(self._ways):
            if way in learned:
                self._ways[way].change(learned[way].map)
            elif way in self.learned:
                del self._ways[way]  # its next transfer has a map made by the hash
        self.learned = learned

    def close(self) -> None:
        """End the thread."""
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _map(self, way: Way) -> PathMap:
        learned = self.learned.get(way)
        if learned is not None:
            return learned.map
        nics = self._fabric.nics
        return path_map(
            self._fabric, nics[way.source], nics[way.target], dport=way.dport, proto=way.proto, ports=SPORTS
        )


def default_way(source: Nic, target: Nic) -> Way:
    """The way of RoCE between two NICs."""
    return Way(source.index, target.index, DPORT, UDP)
