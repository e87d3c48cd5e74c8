"""``ark discover import``, ``route-get`` and ``infer``: paths from what switches say, or by a known hash."""

import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from ark.cli.discover_ends import FabricFile, Json, NamesFile, Out, Surroundings, probed_protocol, show
from ark.cli.flags import count
from ark.cli.output import note, print_json, print_table
from ark.cli.port_ranges import port_ranges
from ark.discover.calculator import read_calculator
from ark.discover.infer import Inferred
from ark.discover.learned import LearnedMap, Method, learned_map, read_learned
from ark.discover.offsets import fit_offsets
from ark.discover.paths_file import write_paths
from ark.discover.probe import Flow
from ark.discover.route_get import questions, read_answers
from ark.discover.search import Finding
from ark.errors import ConfigError, LabError
from ark.fabric.roce import DPORT, SPORTS
from ark.units import quoted
from ark.workload.text_file import read_text

SEEDS_MAX: Final = 100_000
"""Seeds tried; each takes some 10 ms a switch."""

_POLICY6: Final = Path("/proc/sys/net/ipv6/fib_multipath_hash_policy")


def import_(
    file: Path, *, fabric: FabricFile = None, names: NamesFile = None, out: Out = None, json: Json = False
) -> None:
    """Make a map of what a switch's own calculator says.

    Parameters
    ----------
    file
        Table src,dst,sport,dport,next_hop[,proto,switch] (CSV).
    """
    around = Surroundings.of(fabric, names, has_names=True)
    text = read_text(file, what="a table of a switch's calculator")
    findings = read_calculator(text, str(file), names=around.names)
    show(_maps(findings, around, "calculator"), around.numbering, out=out, json=json)


def route_get(
    source: str,
    target: str,
    *,
    iif: Annotated[str, Parameter(help="Interface of this switch at which the packets come in.")],
    switch: Annotated[str | None, Parameter(help="Name of this switch.")] = None,
    fabric: FabricFile = None,
    names: NamesFile = None,
    dport: Annotated[int, Parameter(help="Destination port of the transfers.")] = DPORT,
    proto: Annotated[str, Parameter(help="udp or tcp.")] = "udp",
    ports: Annotated[str, Parameter(help='Source ports: "roce", or like 50000-50999.')] = "50000-50999",
    out: Out = None,
    json: Json = False,
) -> None:
    """Ask the kernel of this Linux switch; to be run on it, without root.

    Parameters
    ----------
    source
        Name (with --fabric) or address of the NIC that sends.
    target
        Name or address of the NIC that receives.
    """
    around = Surroundings.of(fabric, names)
    ends = around.end(source), around.end(target)
    asked = port_ranges("--ports", ports)
    number = probed_protocol(proto)
    flow = Flow(ends[0].address, ends[1].address, number, 0, count("--dport", dport, 0xFFFF))
    if ":" in flow.dst and _POLICY6.read_text("ascii").strip() == "3":
        raise ConfigError(
            "for IPv6 and hash policy 3 Linux answers other than it forwards (it leaves out the last step of "
            "the hash); discover by probes instead: ark discover"
        )
    printed = _ask(questions(flow, asked, interface=iif))
    finding = read_answers(printed, flow, asked, switch=switch, names=around.names)
    show(_maps([finding], around, "route-get"), around.numbering, out=out, json=json)


def infer(
    file: Path,
    *,
    seeds: Annotated[str, Parameter(help="Seeds to try, like 0-63,1000.")] = "0-63",
    out: Out = None,
    json: Json = False,
) -> None:
    """Tell which known hash functions fit a file of learned maps; write the maps with all RoCE ports.

    Parameters
    ----------
    file
        What `ark discover --out FILE` wrote, with some hundred ports a pair (--per-path all).
    """
    from ark.discover import infer as inference  # noqa: PLC0415 - needs NumPy
    from ark.discover.observations import observations  # noqa: PLC0415 - needs NumPy

    learned = read_learned(read_text(file, what="a file of learned paths"), str(file))
    best: dict[str, inference.Inferred] = {}
    rows = []
    for seen in observations(learned.maps):
        found = inference.infer(seen, seeds=_seeds(seeds))
        if found:
            best[seen.switch] = found[0]
        rows.append(
            {
                "switch": seen.switch,
                "ports": len(seen),
                "next_hops": len(seen.neighbours),
                "hash": found[0].describe() if found else None,
                "evidence_bits": round(found[0].evidence_bits) if found else 0,
                "others_that_fit": max(0, len(found) - 1),
            }
        )
    offsets = [_offsets_row(one) for one in learned.maps]
    if json:
        print_json({"results": rows, "offsets": offsets})
    else:
        _print_inferred(rows, offsets)
    if out is not None:
        write_paths(out, _predicted(learned.maps, best), learned.numbering)


def _maps(findings: Sequence[Finding], around: Surroundings, method: Method) -> list[LearnedMap]:
    learned_s = int(time.time())
    return [
        learned_map(
            finding,
            source=around.end(finding.flow.src).name,
            target=around.end(finding.flow.dst).name,
            numbering=around.numbering,
            method=method,
            learned_s=learned_s,
        )
        for finding in findings
    ]


def _ask(lines: str) -> str:
    command = shutil.which("ip")
    if command is None:
        raise LabError("this needs the command ip; install it, for example: apt install iproute2")
    done = subprocess.run(  # noqa: S603 - an absolute path, and no shell
        [command, "-batch", "-"], input=lines, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise LabError(f"ip route get failed: {said[0] if said else 'without a word'}")
    return done.stdout


def _predicted(maps: Sequence[LearnedMap], best: "dict[str, Inferred]") -> list[LearnedMap]:
    import numpy as np  # noqa: PLC0415 - only inference needs NumPy

    from ark.discover.model import predicted  # noqa: PLC0415 - needs NumPy

    ports = np.arange(SPORTS.start, SPORTS.stop, dtype=np.uint32)
    return [predicted(one, best, ports) if one.influence == "port" else one for one in maps]


def _offsets_row(one: LearnedMap) -> dict[str, object]:
    found = fit_offsets({port: path.path for path in one.paths for port in path.ports})
    return {
        "source": one.source,
        "target": one.target,
        "is_affine": found is not None,
        "evidence_bits": 0 if found is None else round(found.evidence_bits),
    }


def _print_inferred(rows: Sequence[dict[str, object]], offsets: Sequence[dict[str, object]]) -> None:
    if not rows:
        note("no switch in this file decides by the source port; nothing is to be inferred")
        return
    print_table(
        "Hashes that fit",
        ["switch", "ports seen", "next hops", "hash", "evidence (bits)", "others that fit"],
        [tuple(row[key] if row[key] is not None else "none known" for key in row) for row in rows],
    )
    affine = [row for row in offsets if row["is_affine"]]
    if affine:
        note(
            f"{len(affine)} of {len(offsets)} pairs are affine in the port: one base probe tells all ports "
            "of another pair of the same switches"
        )
    if any(row["hash"] is None for row in rows):
        note(
            "where none is known the seed may not be among those tried; a random seed of 32 bits (the "
            "default of Linux) cannot be guessed, so that ports there must be learned one by one"
        )


def _seeds(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        texts = [end for end in (first, last or first) if end.isascii() and end.isdecimal() and len(end) < 11]
        ends = [int(end) for end in texts]
        if len(ends) < 2 or not ends[0] <= ends[1] < 2**32:
            raise ConfigError(
                f"--seeds: {quoted(part.strip())} is no number or range; write a list like 0-63,1000"
            )
        if len(found) + ends[1] - ends[0] >= SEEDS_MAX:
            raise ConfigError(f"--seeds: more than {SEEDS_MAX:,} seeds; give fewer")
        found.extend(range(ends[0], ends[1] + 1))
    return found
