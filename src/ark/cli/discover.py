"""``ark discover``: learn on the live fabric which source ports lead to which path."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final

import cyclopts
from cyclopts import Parameter

from ark.cli.flags import count
from ark.cli.flow_batch import protocol
from ark.cli.output import note, print_json, print_table
from ark.cli.port_ranges import port_ranges
from ark.discover.learned import LearnedMap, learned_map, write_learned
from ark.discover.names import canonical, read_names
from ark.discover.numbering import (
    FabricNumbering,
    NameNumbering,
    Numbering,
    OrderNumbering,
    paths_by_switches,
    shown,
)
from ark.discover.probe import HOPS_MAX, Flow
from ark.discover.prober import Prober
from ark.discover.search import Search, Task
from ark.errors import ConfigError, LabError
from ark.fabric import Fabric
from ark.fabric.load import load_fabric
from ark.fabric.roce import DPORT
from ark.units import NS_PER_S, quoted
from ark.workload.text_file import read_text

app: Final = cyclopts.App(
    name="discover", help="Learn on the live fabric which source ports lead to which path."
)

PORTS_SHOWN: Final = 4
RATE_MAX: Final = 10_000
NOTE_EVERY_S: Final = 10.0
SPREAD: Final = 9_973
"""A prime: ports are tried in steps of it, so that the first dozen differ in high and low bits."""

FabricFile = Annotated[Path | None, Parameter(help="Fabric file (TOML): names, path numbers, hop counts.")]
NamesFile = Annotated[Path | None, Parameter(help="Table address,switch (CSV) that names what answers.")]
Out = Annotated[Path | None, Parameter(help="File to write the maps to, for agents and other commands.")]
Json = Annotated[bool, Parameter(help="Print one JSON object.")]


@dataclass(frozen=True, slots=True)
class End:
    """One end of a pair: its name, which is its address where no fabric names it, and its address."""

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known beside the probes: the fabric, the names, and the numbering that follows from them."""

    fabric: Fabric | None
    names: Mapping[str, str]

    @classmethod
    def of(cls, fabric: Path | None, names: Path | None) -> "Surroundings":
        """Read the files."""
        network = None
        if fabric is not None:
            network = load_fabric(read_text(fabric, what="a fabric file"), str(fabric))
        table: dict[str, str] = {}
        if names is not None:
            table = read_names(read_text(names, what="a table of names"), str(names))
        if network is not None and names is None:
            raise ConfigError("--fabric needs --names FILE too: answers have addresses, the fabric has names")
        return cls(network, table)

    @property
    def numbering(self) -> Numbering:
        """How paths are numbered."""
        if self.fabric is not None:
            return FabricNumbering(self.fabric)
        return NameNumbering(self.names) if self.names else OrderNumbering()

    def end(self, text: str) -> End:
        """A peer by its name in the fabric, or by its address."""
        address = canonical(text)
        if self.fabric is None:
            if address is None:
                raise ConfigError(f"{quoted(text)} is no address; without --fabric FILE peers are addresses")
            return End(address, address)
        if address is None:
            nic = self.fabric.nic(text)
            return End(nic.name, canonical(nic.address) or nic.address)
        for nic in self.fabric.nics:
            if canonical(nic.address) == address:
                return End(nic.name, address)
        raise ConfigError(f"{self.fabric.name}: no NIC has the address {address}")

    def peers(self, texts: Sequence[str], source: str | None) -> list[End]:
        """The peers that are named; without any, all other NICs of the fabric."""
        if not texts and self.fabric is None:
            raise ConfigError(
                "name the peers to discover paths to: ark discover ADDRESS …, or give --fabric FILE"
            )
        if not texts and self.fabric is not None:
            if source is None:
                raise ConfigError("say which NIC of the fabric sends: --from NIC, or name the peers")
            sender = self.end(source)
            return [end for nic in self.fabric.nics if (end := self.end(nic.name)) != sender]
        return [self.end(text) for text in dict.fromkeys(texts)]

    def lengths(self, source: End, target: End) -> tuple[int | None, int | None]:
        """How many switches and how many paths are between two NICs, where the fabric tells."""
        if self.fabric is None:
            return None, None
        paths = paths_by_switches(self.fabric, source.name, target.name)
        lengths = {len(switches) for switches, _ in paths}
        return (lengths.pop() if len(lengths) == 1 else None), len(paths)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to learn about each pair, as checked flags say it."""

    proto: int
    dport: int
    dest_qp: int
    ports: Sequence[int]
    per_path: int | None
    switches: int | None

    def task(self, around: Surroundings, sender: End, peer: End) -> Task:
        """The search for one pair."""
        if ip_address(sender.address).version != ip_address(peer.address).version:
            raise ConfigError(f"{sender.address} and {peer.address} are not both IPv4 or both IPv6")
        length, paths = around.lengths(sender, peer)
        flow = Flow(sender.address, peer.address, self.proto, 0, self.dport, self.dest_qp)
        return Task(flow, self.ports, self.per_path, self.switches or length, paths, names=around.names)


Sender = Annotated[str | None, Parameter(name="--from", help="NIC (or its address) that sends.")]
Dport = Annotated[int, Parameter(help="Destination port of the transfers.")]
Proto = Annotated[str, Parameter(help="udp or tcp.")]
DestQp = Annotated[int, Parameter(help="Destination queue pair in RoCE probes.")]
Ports = Annotated[str, Parameter(help='Source ports to try: "roce", "all", or like 50000-50999,60000.')]
PerPath = Annotated[str, Parameter(help='Ports wanted for each path, or "all" to learn every port.')]
Switches = Annotated[int | None, Parameter(help="Switches on the way, if known: saves a traceroute.")]
Rate = Annotated[int, Parameter(help="Most probes a second for switches at one distance.")]
Interface = Annotated[str | None, Parameter(help="Interface to send from.")]
Dscp = Annotated[int, Parameter(help="Traffic class of the transfers, 0 to 63.")]


@app.default
def discover(
    *peers: str,
    source: Sender = None,
    fabric: FabricFile = None,
    names: NamesFile = None,
    dport: Dport = DPORT,
    proto: Proto = "udp",
    dest_qp: DestQp = 0,
    ports: Ports = "roce",
    per_path: PerPath = "4",
    switches: Switches = None,
    rate: Rate = 500,
    interface: Interface = None,
    dscp: Dscp = 0,
    out: Out = None,
    json: Json = False,
) -> None:
    """Learn which source ports lead to which path to each peer, by probes that expire on the way.

    Needs CAP_NET_RAW. No probe to the transfers' port ever reaches a host.

    Parameters
    ----------
    peers
        Names (with --fabric) or addresses; with --fabric and --from, all others by default.
    """
    from ark.discover.live import source_address  # noqa: PLC0415 - raw sockets exist on Linux only

    around = Surroundings.of(fabric, names)
    wanted = Wanted(
        _protocol(proto),
        count("--dport", dport, 0xFFFF),
        _bounded("--dest-qp", dest_qp, 0xFF_FFFF),
        spread(port_ranges("--ports", ports)),
        None if per_path == "all" else _whole("--per-path", per_path, 4096),
        None if switches is None else count("--switches", switches, HOPS_MAX),
    )
    pairs = [
        (around.end(source or source_address(peer.address)), peer) for peer in around.peers(peers, source)
    ]
    tasks = [wanted.task(around, *pair) for pair in pairs]
    prober = Prober(
        [Search(task) for task in tasks],
        nonce=secrets.randbits(24),
        fastest_ns=NS_PER_S // count("--rate", rate, RATE_MAX),
    )
    _probe(prober, pairs, interface, _bounded("--dscp", dscp, 63))
    learned_s = int(time.time())
    numbering = around.numbering
    maps = [
        learned_map(finding, source=a.name, target=b.name, numbering=numbering, learned_s=learned_s)
        for finding, (a, b) in zip(prober.findings(), pairs, strict=True)
    ]
    show(maps, numbering, out=out, json=json)


def _probe(prober: Prober, pairs: Sequence[tuple[End, End]], interface: str | None, dscp: int) -> None:
    """Run the searches, and say how it went."""
    from ark.discover import live  # noqa: PLC0415 - raw sockets exist on Linux only

    versions = {ip_address(peer.address).version for _, peer in pairs}
    if len(versions) > 1:
        raise ConfigError("the peers have IPv4 and IPv6 addresses; discover one family at a time")
    with live.RawSockets(versions.pop(), interface=interface, dscp=dscp) as sockets:
        live.run(prober, sockets, on_progress=_Reporter(prober))
    counters = prober.counters
    if not counters.answers:
        raise LabError(
            "no switch answered any probe: ICMP time-exceeded may be off or filtered, or the probes leave by "
            "another interface; `ark discover import` takes what the switches' own calculator says"
        )
    note(
        f"{counters.sent} probes sent, {counters.repeated} of them again, {counters.answers} answered, "
        f"{counters.given_up} given up"
    )


def show(maps: Sequence[LearnedMap], numbering: Numbering, *, out: Path | None, json: bool) -> None:
    """Write, print and explain maps."""
    if out is not None:
        out.write_text(write_learned(maps, numbering.kind), "utf-8")
    if json:
        print_json({"numbering": numbering.kind, "results": [_row(one) for one in maps]})
        return
    print_table(
        "Source ports by peer and path",
        ["from", "to", "path", "over", "ports", "the first"],
        [
            (one.source, one.target, path.path, shown(path.hops), len(path.ports), _first(path.ports))
            for one in maps
            for path in one.paths
        ],
    )
    for reason in dict.fromkeys(one.reason for one in maps if one.influence != "port"):
        note(f"{', '.join(one.target for one in maps if one.reason == reason)}: {reason}")
    if numbering.kind == "order":
        note("paths are numbered in the order of addresses, for this host only; give --names or --fabric")


def spread(ports: Sequence[int]) -> list[int]:
    """Ports in steps of a prime, so that those tried first differ in many bits."""
    number = len(ports)
    step = SPREAD if number % SPREAD else SPREAD + 2  # coprime to the number of ports, else some are left out
    return [ports[place * step % number] for place in range(number)]


class _Reporter:
    """Says on stderr, now and then, how far the searches are."""

    def __init__(self, prober: Prober) -> None:
        self._prober = prober
        self._started = self._said = time.monotonic()

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._said < NOTE_EVERY_S:
            return
        self._said = now
        done, total = self._prober.progress
        left = f", ETA {(now - self._started) / done * (total - done):.0f} s" if done else ""
        counters = self._prober.counters
        note(f"{done} of {total} peers done; {counters.answers} of {counters.sent} probes answered{left}")


def _row(one: LearnedMap) -> dict[str, object]:
    return {
        "source": one.source,
        "target": one.target,
        "proto": one.proto,
        "dport": one.dport,
        "influence": one.influence,
        "reason": one.reason,
        "epoch": one.epoch,
        "method": one.method,
        "paths": [
            {"path": path.path, "hops": path.hops, "count": len(path.ports), "ports": path.ports}
            for path in one.paths
        ],
    }


def _first(ports: Sequence[int]) -> str:
    return " ".join(map(str, ports[:PORTS_SHOWN])) + (" …" if len(ports) > PORTS_SHOWN else "")


def _protocol(text: str) -> int:
    try:
        number = protocol(text)
    except ConfigError as error:
        raise ConfigError(f"--proto: {error}") from None
    if number not in {6, 17}:
        raise ConfigError(f"--proto: {quoted(text)} cannot be probed; give udp or tcp")
    return number


def _bounded(flag: str, value: int, most: int) -> int:
    if not 0 <= value <= most:
        raise ConfigError(f"{flag}: {value} is not allowed; give 0 to {most}")
    return value


def _whole(flag: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise ConfigError(f'{flag}: {quoted(text)} is no whole number; give 1 to {most}, or "all"')
    return count(flag, int(text), most)
