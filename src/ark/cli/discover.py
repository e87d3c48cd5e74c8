"""``ark discover``: learn on the live fabric which source ports lead to which path."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final

import cyclopts
from cyclopts import Parameter

from ark.cli.discover_ends import End, FabricFile, Json, NamesFile, Out, Surroundings, probed_protocol, show
from ark.cli.flags import count
from ark.cli.output import note
from ark.cli.port_ranges import port_ranges
from ark.discover.learned import LearnedMap, learned_map, read_learned
from ark.discover.numbering import Numbering
from ark.discover.probe import HOPS_MAX, Flow
from ark.discover.prober import Prober
from ark.discover.relative import BASE_PORTS, by_offsets
from ark.discover.search import Search, Task
from ark.errors import ConfigError, LabError
from ark.fabric.roce import DPORT
from ark.units import NS_PER_S, quoted
from ark.workload.text_file import read_text

app: Final = cyclopts.App(
    name="discover", help="Learn on the live fabric which source ports lead to which path."
)

RATE_MAX: Final = 10_000
NOTE_EVERY_S: Final = 10.0
STRIDES: Final = (9_973, 9_967)
"""Primes: ports are tried in steps of one, so that the first dozen differ in high and low bits."""


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
Like = Annotated[
    Path | None,
    Parameter(help="Learned maps (JSON): where the hash is linear, 3 ports of a peer tell the others."),
]

app.command(
    "ark.cli.discover_sources:import_",
    name="import",
    help="Make a map of what a switch's own calculator says.",
)
app.command(
    "ark.cli.discover_sources:route_get", name="route-get", help="Ask the kernel of this Linux switch."
)
app.command(
    "ark.cli.discover_sources:infer", name="infer", help="Tell which known hash functions fit learned maps."
)
app.command(
    "ark.cli.discover_watch:watch", name="watch", help="Verify learned maps; learn anew what has changed."
)


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
    like: Like = None,
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
    whole = None if like is None else _learned_like(like, around.numbering)
    tried = spread(port_ranges("--ports", ports))
    wanted = Wanted(
        probed_protocol(proto),
        count("--dport", dport, 0xFFFF),
        _bounded("--dest-qp", dest_qp, 0xFF_FFFF),
        tried[:BASE_PORTS] if like is not None else tried,
        None if per_path == "all" else _whole("--per-path", per_path, 4096),
        None if switches is None else count("--switches", switches, HOPS_MAX),
    )
    pairs = [
        (around.end(source or source_address(peer.address)), peer) for peer in around.peers(peers, source)
    ]
    searches = [Search(wanted.task(around, *pair)) for pair in pairs]
    prober = Prober(
        searches,
        nonce=secrets.randbits(24),
        fastest_ns=NS_PER_S // count("--rate", rate, RATE_MAX),
    )
    _probe(prober, pairs, interface, _bounded("--dscp", dscp, 63))
    learned_s = int(time.time())
    numbering = around.numbering
    maps = [
        learned_map(one.finding(), source=a.name, target=b.name, numbering=numbering, learned_s=learned_s)
        for one, (a, b) in zip(searches, pairs, strict=True)
    ]
    if whole is not None:
        maps = [by_offsets(whole, one, sorted(tried)) for one in maps]
    _compare(maps, around)
    show(maps, numbering, out=out, json=json)


def _learned_like(file: Path, numbering: Numbering) -> LearnedMap:
    """The first map of a file that the port decides, if its paths are numbered as those to come."""
    learned = read_learned(read_text(file, what="a file of learned paths"), str(file))
    if learned.numbering != numbering.kind or numbering.kind == "order":
        raise ConfigError(
            f"--like: the paths of {file} are numbered by {learned.numbering}; paths of several pairs are "
            "only comparable with the --fabric or --names of then"
        )
    for one in learned.maps:
        if one.influence == "port":
            return one
    raise ConfigError(f"--like: {file} has no map that the source port decides")


def _compare(maps: Sequence[LearnedMap], around: Surroundings) -> None:
    """Say whether the hash in the fabric file is the one that the switches have."""
    steered = [one for one in maps if one.influence == "port"]
    if around.fabric is None or not steered:
        return
    from ark.discover.model import agreement  # noqa: PLC0415 - needs NumPy

    try:
        found = [agreement(one, around.fabric) for one in steered]
    except ConfigError as error:
        note(f"the hash in the fabric file says nothing about these ports: {error}")
        return
    right, asked = sum(pair[0] for pair in found), sum(pair[1] for pair in found)
    verdict = "is right for" if right == asked else "is NOT that of the switches: right for"
    note(f"the hash in the fabric file {verdict} {right} of {asked} learned ports")


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


def spread(ports: Sequence[int]) -> list[int]:
    """Ports in steps of a prime, so that those tried first differ in many bits."""
    number = len(ports)
    step = next(stride for stride in STRIDES if number % stride)  # one that divides would leave ports out
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


def _bounded(flag: str, value: int, most: int) -> int:
    if not 0 <= value <= most:
        raise ConfigError(f"{flag}: {value} is not allowed; give 0 to {most}")
    return value


def _whole(flag: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise ConfigError(f'{flag}: {quoted(text)} is no whole number; give 1 to {most}, or "all"')
    return count(flag, int(text), most)
