"""``ark discover watch``: verify learned maps while transfers run, and learn anew what has changed."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from ark.cli.discover_ends import FabricFile, NamesFile, Surroundings
from ark.cli.output import note
from ark.discover.learned import LearnedFile, LearnedMap, learned_map, read_learned
from ark.discover.numbering import Numbering
from ark.discover.paths_file import write_paths
from ark.discover.probe import Flow
from ark.discover.prober import Prober
from ark.discover.search import Finding, Search, Task
from ark.discover.watch import Watch
from ark.errors import ConfigError
from ark.fabric.roce import SPORTS
from ark.units import NS_PER_S, parse_time
from ark.workload.text_file import read_text

WRITE_EVERY_S: Final = 0.1
"""Least time between two writings of the file: all maps of a host may change at once."""

WRITE_AGAIN_S: Final = 10.0
"""When to try again where it could not be written."""


class Kept:
    """The file of the maps, as they are now."""

    def __init__(self, path: Path, learned: LearnedFile, watches: Sequence[Watch]) -> None:
        self._path = path
        self._learned = learned
        self._watches = {_key(one.learned): one for one in watches}
        self._has_changed = False
        self._due_s = 0.0

    def changed(self) -> None:
        """Some map is not what the file says."""
        self._has_changed = True

    def write_if_due(self) -> None:
        """Bring the file up to date, unless that was done just now; where that fails, say so."""
        if not self._has_changed or time.monotonic() < self._due_s:
            return
        try:
            self.write()
            self._due_s = time.monotonic() + WRITE_EVERY_S
        except ConfigError as error:
            note(f"{error}; agents go on with what they know")
            self._due_s = time.monotonic() + WRITE_AGAIN_S

    def write(self) -> None:
        """Bring the file up to date now.

        Raises
        ------
        ConfigError
            If it cannot be written.
        """
        if self._has_changed:
            write_paths(
                self._path, [self._current(one) for one in self._learned.maps], self._learned.numbering
            )
            self._has_changed = False

    def _current(self, one: LearnedMap) -> LearnedMap:
        found = self._watches.get(_key(one))
        return one if found is None else found.current


def _key(one: LearnedMap) -> tuple[str, str, int, int]:
    return one.source, one.target, one.proto, one.dport


def watch(
    file: Path,
    *,
    fabric: FabricFile = None,
    names: NamesFile = None,
    interval: Annotated[str, Parameter(help="Time between two probes of a pair.")] = "10s",
    duration: Annotated[
        str | None, Parameter(name="--for", help="How long; without it, until Ctrl-C.")
    ] = None,
    interface: Annotated[str | None, Parameter(help="Interface to send from.")] = None,
) -> None:
    """Verify learned maps by repeated probes; what has changed is in doubt until it is learned anew.

    At each change the file is replaced, whole: it says which maps are valid now, in which epoch, and which
    paths have no port any more. Agents that use it follow. Needs CAP_NET_RAW. Prints a line for each change.

    Parameters
    ----------
    file
        What `ark discover --out FILE` wrote.
    """
    from ark.discover import live  # noqa: PLC0415 - raw sockets exist on Linux only

    around = Surroundings.of(fabric, names)
    learned = read_learned(read_text(file, what="a file of learned paths"), str(file))
    if learned.numbering != around.numbering.kind:
        raise ConfigError(
            f"{file}: its paths are numbered by {learned.numbering}; give the same --fabric and --names"
        )
    watches = watches_of(
        learned.maps,
        around.names,
        around.numbering,
        now=time.monotonic_ns(),
        interval_ns=parse_time(interval),
    )
    versions = {ip_address(one.learned.source_address).version for one in watches}
    if len(versions) != 1:
        raise ConfigError(f"{file}: holds no map that probes can verify, or IPv4 and IPv6 maps mixed")
    kept = Kept(file, learned, watches)

    def told(one: Watch, what: str) -> None:
        print(f"{one.learned.source} to {one.learned.target}: {what}", flush=True)
        kept.changed()

    prober = Prober([], nonce=secrets.randbits(24))
    note(f"watching {len(watches)} of {len(learned.maps)} maps; Ctrl-C ends it")
    with live.RawSockets(versions.pop(), interface=interface) as sockets:
        try:
            live.keep_watch(
                watches, prober, sockets, until=_until(duration), on_news=told, on_turn=kept.write_if_due
            )
        finally:
            kept.write()


def watches_of(
    maps: Sequence[LearnedMap],
    names: Mapping[str, str],
    numbering: Numbering,
    *,
    now: int,
    interval_ns: int,
) -> list[Watch]:
    """A watch for each map that says where its ports differ, their first checks spread over one interval."""
    watched = [one for one in maps if one.varying and any(path.ports for path in one.paths)]
    return [
        Watch(
            one,
            names=names,
            search=_searcher(one, names),
            number=_numberer(one, numbering),
            now=now - interval_ns * place // len(watched),
            interval_ns=interval_ns,
            turn=place,
        )
        for place, one in enumerate(watched)
    ]


def _searcher(one: LearnedMap, names: Mapping[str, str]) -> Callable[[], Search]:
    """Makes the search that learns a map anew: the ports that were known first, then others."""
    known = sorted(port for path in one.paths for port in path.ports)
    others = SPORTS if known and known[0] in SPORTS else range(1024, 0x1_0000)
    ports = list(dict.fromkeys([*known, *others]))
    wanted = min(len(path.ports) for path in one.paths if path.ports)
    length = len(one.paths[0].hops) if one.paths else None
    flow = Flow(one.source_address, one.target_address, one.proto, 0, one.dport, one.dest_qp)
    return lambda: Search(Task(flow, ports, min(wanted, 16), length, names=names))


def _numberer(one: LearnedMap, numbering: Numbering) -> Callable[[Finding, int], LearnedMap]:
    def number(finding: Finding, epoch: int) -> LearnedMap:
        return learned_map(
            finding,
            source=one.source,
            target=one.target,
            numbering=numbering,
            epoch=epoch,
            learned_s=int(time.time()),
        )

    return number


def _until(duration: str | None) -> Callable[[], bool]:
    if duration is None:
        return lambda: False
    end = time.monotonic() + parse_time(duration) / NS_PER_S
    return lambda: time.monotonic() >= end
