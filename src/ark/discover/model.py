"""Learned maps beside models: all ports by inferred hashes, and whether a fabric file's hash is right."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ark.discover.infer import Inferred
from ark.discover.learned import LearnedMap
from ark.discover.observations import header_of_ports
from ark.errors import ConfigError
from ark.fabric import Fabric, route_ports

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def agreement(one: LearnedMap, fabric: Fabric) -> tuple[int, int]:
    """How many of the learned ports take the path that the fabric's own hashes say, and of how many.

    Raises
    ------
    ConfigError
        If the fabric does not know the NICs, or its hashes say nothing (packets are sprayed).
    """
    import numpy as np  # noqa: PLC0415 - only models need NumPy

    ports = np.array([port for path in one.paths for port in path.ports], dtype=np.uint32)
    truth = np.array([path.path for path in one.paths for _ in path.ports])
    source, target = fabric.nic(one.source), fabric.nic(one.target)
    said = route_ports(fabric, source, target, ports, dport=one.dport, proto=one.proto, dest_qp=one.dest_qp)
    return int((said == truth).sum()), len(ports)


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
