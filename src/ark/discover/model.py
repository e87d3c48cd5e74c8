"""All ports of a pair by inferred hashes, where only some were learned."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ark.discover.infer import Inferred
from ark.discover.learned import LearnedMap
from ark.discover.observations import header_of_ports
from ark.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def predicted(one: LearnedMap, hashes: Mapping[str, Inferred], ports: "npt.NDArray[np.uint32]") -> LearnedMap:
    """A learned map with the path of every port that the hashes decide.

    Parameters
    ----------
    one
        What was learned about the pair: which paths there are.
    hashes
        The inferred hash of each switch that decides, by its name.
    ports
        Source ports, ``uint32`` of shape (n,).

    Raises
    ------
    ConfigError
        If a switch decides whose hash is not known.
    """
    found: dict[tuple[str, ...], npt.NDArray[np.uint32]] = {}
    sequences = [path.hops for path in one.paths]
    waiting: list[tuple[tuple[str, ...], npt.NDArray[np.uint32]]] = [((), ports)]
    while waiting:
        taken, lanes = waiting.pop()
        following = dict.fromkeys(
            hops[len(taken)] for hops in sequences if hops[: len(taken)] == taken and len(hops) > len(taken)
        )
        if not following:
            found[taken] = lanes
        elif len(following) == 1:
            waiting.append(((*taken, next(iter(following))), lanes))
        else:
            hash_ = hashes.get(taken[-1]) if taken else None
            if hash_ is None:
                where = taken[-1] if taken else "the first switch"
                raise ConfigError(f"{one.source} to {one.target}: the hash of {where} is not known")
            choices = hash_.choose(header_of_ports(one, lanes))
            for place, neighbour in enumerate(hash_.neighbours):
                if neighbour in following:
                    waiting.append(((*taken, neighbour), lanes[choices == place]))
    paths = tuple(
        msgspec.structs.replace(path, ports=tuple(sorted(found[path.hops].tolist()))) for path in one.paths
    )
    return msgspec.structs.replace(one, paths=paths, method="model")
