"""A flow table checked against a fabric: what the engines run."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.control.rows import STRIPES_MAX
from ark.errors import ConfigError, Fault
from ark.fabric.parts import Nic
from ark.fabric.topology import Fabric
from ark.sim.schemes.scheme import Transfer
from ark.units import NS_PER_S, quoted
from ark.workload.flows import Flows

TIME_MAX_NS: Final = 2**56
"""833 days: up to here the floating point of the flow level holds a time to 8 ns, far below any transfer's;
the longest public trace has 121 days."""

TIME_MAX_PACKET_NS: Final = 2**52
"""52 days: the packet level counts picoseconds in 62 bits."""

_NS_PER_DAY: Final = 86_400 * NS_PER_S


@dataclass(frozen=True, slots=True)
class Layers:
    """Bytes that come to be in ``count`` equal parts: one at the flow's start, then one each ``every_ns``."""

    every_ns: NDArray[np.float64]
    count: int


def transfers_of(flows: Flows, fabric: Fabric, *, time_max_ns: int = TIME_MAX_NS) -> list[Transfer]:
    """The transfers of a table whose flows have their source ports, in its order.

    ``time_max_ns`` is the latest start that the engine can hold.

    Raises
    ------
    ConfigError
        With all faults: NICs that the fabric does not have, pairs that no path joins, flows to themselves,
        pins that are no paths, times too far off.
    """
    nics, faults = _known_nics(flows, fabric)
    last_ns = int(flows.start_ns[-1]) if len(flows) else 0
    if last_ns > time_max_ns:
        days, most = last_ns / _NS_PER_DAY, time_max_ns // _NS_PER_DAY
        what = f"{last_ns} ns are {days:.0f} days; this engine runs up to {most} days"
        where = f"flow {quoted(flows.id[-1])}: start_ns"
        faults.append(Fault(where, f"{what}: give fewer requests or a higher rate"))
    transfers = []
    numbers = [column.tolist() for column in (flows.size_bytes, flows.start_ns, flows.sport, flows.dport)]
    columns = zip(flows.src, flows.dst, *numbers, strict=True)
    for index, (src, dst, size_bytes, start_ns, sport, dport) in enumerate(columns):
        source, target = nics.get(src), nics.get(dst)
        if source is None or target is None:
            continue
        pin: tuple[int, ...] = ()
        try:
            usable = _usable(fabric, source, target)
            if flows.path is not None and flows.path[index]:
                pin = _pin(flows.path[index], usable)
        except ConfigError as error:
            faults.append(Fault(f"flow {quoted(flows.id[index])}", str(error)))
        transfers.append(Transfer(index, source, target, size_bytes, start_ns, sport, dport, pin))
    if faults:
        raise ConfigError(*faults)
    return transfers


def _known_nics(flows: Flows, fabric: Fabric) -> tuple[dict[str, Nic], list[Fault | str]]:
    """The NICs by name, and a fault for each name that is none, at the first flow that has it."""
    nics: dict[str, Nic] = {}
    faults: list[Fault | str] = []
    for column, names in (("src", flows.src), ("dst", flows.dst)):
        for name in dict.fromkeys(names):
            try:
                nics[name] = fabric.nic(name)
            except ConfigError as error:
                flow = flows.id[names.index(name)]
                faults.append(Fault(f"flow {quoted(flow)}: {column}", str(error)))
    return nics, faults


def _usable(fabric: Fabric, source: Nic, target: Nic) -> tuple[int, ...]:
    """The numbers of the paths that are up; a ``ConfigError`` where there is none."""
    usable = fabric.up_paths(source.attachment, target.attachment)
    if not usable or source is target:
        fabric.paths(source, target)  # raises, and says why
    return usable


def _pin(text: str, usable: tuple[int, ...]) -> tuple[int, ...]:
    """The paths that a cell of the column ``path`` names, one a stripe."""
    if ">" in text:
        allowed = "a pin holds from start to end; write one path a stripe, like 2 or 0;2"
        raise ConfigError(f"path {quoted(text)} has a move, but {allowed}")
    stripes = text.split(";")
    known = {str(number): number for number in usable}
    paths = tuple(known[stripe] for stripe in stripes if stripe in known)
    if len(paths) != len(stripes):
        raise ConfigError(f"path {quoted(text)} is not up; there are {', '.join(known)}")
    if len(paths) > STRIPES_MAX:
        raise ConfigError(f"path {quoted(text)} has {len(paths)} stripes; allowed are up to {STRIPES_MAX}")
    return paths
