"""Path → source ports: the inverse of a fabric's hashes for two NICs, a destination port and a protocol."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from ark.errors import ConfigError
from ark.fabric.five_tuple import UDP, FiveTuple, header_of
from ark.fabric.parts import Nic
from ark.fabric.roce import DPORT, SPORTS, flow_label_of_sport
from ark.fabric.route import Decision, router
from ark.fabric.topology import Fabric

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PORTS_KEPT: Final = 16
"""Source ports kept a path: more than the connections that a host holds to one peer over one path."""

ALL_PORTS: Final = range(0x1_0000)
"""All UDP and TCP ports."""


class Influence(StrEnum):
    """Whether the source port of a flow decides its path."""

    PORT = "port"
    """It does, at one decision on the way at least."""
    ONE_PATH = "one-path"
    """There is only one path."""
    NOT_HASHED = "not-hashed"
    """No decision on the way reads the source port."""
    SPRAYED = "sprayed"
    """A switch on the way sends each packet of a flow elsewhere."""
    IN_DOUBT = "in-doubt"
    """It did when that was learned on the live fabric; whether it still does is being looked at."""


@dataclass(frozen=True, slots=True)
class PathMap:
    """Which source ports lead to which path.

    Attributes
    ----------
    source, target
        Names of the two NICs.
    dport, proto
        What the map holds for, beside the two NICs.
    influence, reason
        Whether the port decides the path, and that in a sentence for people.
    paths
        Numbers of the paths that are up, ascending.
    counts
        How many of the ports lead to each path, in the order of ``paths``; all 0 where the path is not known.
    kept
        The least ``PORTS_KEPT`` of those ports, in the order of ``paths``.
    """

    source: str
    target: str
    dport: int
    proto: int
    influence: Influence
    reason: str
    paths: tuple[int, ...]
    counts: tuple[int, ...]
    kept: tuple[tuple[int, ...], ...]

    def ports(self, path: int) -> tuple[int, ...]:
        """At most ``PORTS_KEPT`` source ports that lead to a path, ascending; none where it is not up."""
        return self.kept[self.paths.index(path)] if path in self.paths else ()

    def count(self, path: int) -> int:
        """How many source ports lead to a path."""
        return self.counts[self.paths.index(path)] if path in self.paths else 0

    @property
    def missing(self) -> tuple[int, ...]:
        """The paths that are up but that none of the ports leads to."""
        return tuple(path for path, count in zip(self.paths, self.counts, strict=True) if count == 0)

    @property
    def coverage(self) -> float:
        """Share of the paths that are up to which some port leads, 0 to 1."""
        return 1 - len(self.missing) / len(self.paths)

    def smallest_set(self) -> tuple[int, ...]:
        """The least port of each path that has one, by path: the fewest ports that reach all those paths."""
        return tuple(ports[0] for ports in self.kept if ports)


def path_map(
    fabric: Fabric,
    source: Nic,
    target: Nic,
    *,
    dport: int = DPORT,
    proto: int = UDP,
    ports: Iterable[int] = SPORTS,
    dest_qp: int | None = None,
    labelled: bool = False,
) -> PathMap:
    """The map of the source ports that an application may use.

    Parameters
    ----------
    fabric, source, target
        Where the packets start and go.
    dport, proto
        Destination port and protocol.
    ports
        The source ports that are allowed: ``SPORTS`` (those of RoCE), ``ALL_PORTS``, or any others.
    dest_qp
        The destination queue pair, needed where the fabric hashes it beside the source port.
    labelled
        The sender sets its port by an IPv6 flow label (``flow_label_of_sport``), so that packets carry that
        label; else it is 0.

    Raises
    ------
    ConfigError
        If no path is up, a port is out of range, or ``dest_qp`` is needed.
    """
    import numpy as np  # noqa: PLC0415 - only path maps and many flows need NumPy

    sports = _checked(ports, SPORTS if labelled else ALL_PORTS)
    header = header_of(FiveTuple(source.address, target.address, 0, dport, proto, dest_qp))
    header = header._replace(sport=sports)
    carries_label = labelled and len(header.src) > 1
    if carries_label:
        header = header._replace(flow_label=np.asarray(flow_label_of_sport(sports), dtype=np.uint32))
    decisions = router(fabric).decisions(source, target)
    paths = tuple(path.index for path in fabric.paths(source, target))
    influence, reason = _influence(decisions, len(paths), carries_label=carries_label)
    counts: dict[int, int] = dict.fromkeys(paths, 0)
    kept: dict[int, tuple[int, ...]] = dict.fromkeys(paths, ())
    is_known = dest_qp is not None or not any("dest-qp" in decision.spec.fields for decision in decisions)
    if influence is Influence.PORT or (influence is not Influence.SPRAYED and is_known):
        for path, lanes in router(fabric).spread(header, source, target, np.arange(len(sports))):
            counts[path.index] = len(lanes)
            kept[path.index] = tuple(sports[lanes[:PORTS_KEPT]].tolist())
    return PathMap(
        source.name,
        target.name,
        dport,
        proto,
        influence,
        reason,
        paths,
        tuple(counts.values()),
        tuple(kept.values()),
    )


def _checked(ports: Iterable[int], allowed: range) -> "npt.NDArray[np.uint32]":
    """The ports once each, ascending."""
    import numpy as np  # noqa: PLC0415 - only path maps and many flows need NumPy

    if isinstance(ports, range) and ports.step == 1:
        found = np.arange(ports.start, ports.stop)  # sorting 65,536 ports takes as long as hashing them
    else:
        found = np.unique(np.array(list(ports), dtype=np.int64))
    if not found.size:
        raise ConfigError("a path map needs at least one source port")
    for port in (int(found[0]), int(found[-1])):
        if port not in allowed:
            raise ConfigError(f"source ports must be {allowed.start} to {allowed.stop - 1}, not {port}")
    return found.astype(np.uint32)


def _influence(decisions: list[Decision], paths: int, *, carries_label: bool) -> tuple[Influence, str]:
    if paths == 1:
        return Influence.ONE_PATH, "there is only one path, so the source port does not matter"
    for decision in decisions:
        if decision.spec.function == "spray":
            return Influence.SPRAYED, (
                f"{decision.node} sprays the packets of a flow, so the source port does not matter"
            )
    fields = {field for decision in decisions for field in decision.spec.fields}
    if "sport" in fields or (carries_label and "flow-label" in fields):
        return Influence.PORT, "the source port decides the path"
    return Influence.NOT_HASHED, (
        f"no switch on the way hashes the source port, only {', '.join(sorted(fields))}"
    )
