"""The map of one pair from that of another and a few probes, where the hash is linear (``offsets``)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from ark.discover.learned import LearnedMap, LearnedPath
from ark.discover.offsets import fit_offsets
from ark.errors import ConfigError

BASE_PORTS: Final = 3
"""Ports probed of a new pair: one is the base, the others must confirm what follows from it."""


def by_offsets(whole: LearnedMap, probed: LearnedMap, ports: Sequence[int]) -> LearnedMap:
    """All ports of the pair of which ``probed`` has a few, from the classes of ports that ``whole`` shows.

    The two pairs must be joined by the same switches, and their paths numbered alike. The switches of paths
    that were not probed are not known.

    Raises
    ------
    ConfigError
        If the hash is not affine in the port, or the probes contradict it.
    """
    offsets = fit_offsets({port: path.path for path in whole.paths for port in path.ports})
    pair = f"{probed.source} to {probed.target}"
    if offsets is None:
        raise ConfigError(
            f"the hash between {whole.source} and {whole.target} is not linear in the port, or too few ports "
            f"were learned to tell; discover {pair} without --like"
        )
    known = [(port, path.path) for path in probed.paths for port in path.ports]
    if not known:
        raise ConfigError(f"{pair}: no probe was answered")
    base_port, base_path = known[0]
    found: dict[int, list[int]] = {path.path: [] for path in whole.paths}
    for port in ports:
        path = offsets.path_of(port, base_port=base_port, base_path=base_path)
        if path is not None:
            found[path].append(port)
    for port, path in known:
        if port not in found.get(path, ()):
            raise ConfigError(
                f"{pair}: port {port} takes path {path}, which does not follow from {whole.source} to "
                f"{whole.target}; discover it without --like"
            )
    hops = {path.path: path.hops for path in probed.paths}
    return msgspec.structs.replace(
        probed,
        influence="port",
        reason="the source port decides the path",
        paths=tuple(LearnedPath(path, hops.get(path, ()), tuple(found[path])) for path in sorted(found)),
        varying=whole.varying,
        method="offsets",
    )
