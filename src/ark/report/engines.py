"""Packet level beside flow level beside the paper: a row a scheme and load, and where and why they differ.

Both levels ran the same traffic, so every difference is one of the models. A reason is given only where a
number of these runs shows its effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ark.report import paper
from ark.report.looks import look
from ark.report.runs import BASE, Point, Runs
from ark.report.style import percent
from ark.report.tables import point_cell
from ark.sim.results import Cell
from ark.units import format_time

CLOSE: Final = 0.005
"""Mean FCTs of the two levels that differ by less than this share are called equal."""

SPREAD: Final = (5.0, 95.0)
"""Percentiles between which nine in ten lie."""


@dataclass(frozen=True, slots=True)
class Beside:
    """One scheme at one load at both levels; shares are of ECMP at the same level, None without ECMP."""

    qps: Point
    scheme: str
    fct_mean_packet_s: float
    fct_mean_flow_s: float
    longer_share: float
    """By which share the mean FCT at packet level is longer."""
    mean_packet: float | None
    mean_flow: float | None
    mean_paper: float | None
    p95_packet: float | None
    p95_flow: float | None
    p95_paper: float | None


def all_rows(runs: Runs, twin: Runs | None) -> list[dict[str, Cell]]:
    """The rows of ``results.csv``: of both levels where there are two; the column ``engine`` names them."""
    return [*runs.rows(), *([] if twin is None else twin.rows())]


def compare(runs: Runs, twin: Runs, *, with_paper: bool) -> list[Beside]:
    """All schemes and loads of packet-level ``runs`` beside the flow-level ``twin``."""
    return [
        _beside(runs, twin, scheme, point, with_paper=with_paper)
        for point in runs.points
        for scheme in runs.schemes
    ]


def _beside(runs: Runs, twin: Runs, scheme: str, point: Point, *, with_paper: bool) -> Beside:
    packet_s, flow_s = (level.mean(scheme, point, "fct_mean_s").value for level in (runs, twin))
    shares = [
        share
        for column in ("fct_mean_s", "fct_p95_s")
        for share in (
            _reduction(runs, scheme, point, column),
            _reduction(twin, scheme, point, column),
            _quoted(scheme, point, column) if with_paper else None,
        )
    ]
    return Beside(point, scheme, packet_s, flow_s, packet_s / flow_s - 1, *shares)


def _reduction(runs: Runs, scheme: str, point: Point, column: str) -> float | None:
    if scheme == BASE or BASE not in runs.schemes:
        return None
    return runs.reduction(scheme, point, column).value


def _quoted(scheme: str, point: Point, column: str) -> float | None:
    if scheme != "ark-paper" or point is None:
        return None
    return paper.REDUCTIONS[column].get(point)


def engine_cells(rows: Sequence[Beside]) -> list[list[str]]:
    """The rows as cells of a table; an empty cell where there is no number."""
    cells = []
    before: object = None
    for index, row in enumerate(rows):
        shares = (
            row.mean_packet, row.mean_flow, row.mean_paper, row.p95_packet, row.p95_flow, row.p95_paper
        )  # fmt: skip
        cells.append(
            [
                point_cell(row.qps) if index == 0 or row.qps != before else "",
                look(row.scheme).label,
                format_time(row.fct_mean_packet_s),
                format_time(row.fct_mean_flow_s),
                _signed(row.longer_share),
                *("" if share is None else percent(share, 1) for share in shares),
            ]
        )
        before = row.qps
    return cells


def differences(runs: Runs, twin: Runs) -> list[str]:
    """Where the two levels differ, and why as far as the runs show it."""
    found = [_singles(runs, twin), _choices(runs, twin), _marks(runs), _headers(runs)]
    return [*agreement(runs, twin), *(text for text in found if text)]


def agreement(runs: Runs, twin: Runs) -> list[str]:
    """How well the two levels agree, without reasons."""
    rows = compare(runs, twin, with_paper=False)
    return [text for text in (_means(rows), _order(runs, twin), _points(rows)) if text]


def _means(rows: Sequence[Beside]) -> str:
    worst = max(rows, key=lambda row: abs(row.longer_share))
    if abs(worst.longer_share) < CLOSE:
        return f"Mean FCT is the same at both levels within {percent(CLOSE, 1)} for every scheme and load."
    shares = [row.longer_share for row in rows]
    return (
        f"Mean FCT at packet level differs from that at flow level by {_signed(min(shares))} to "
        f"{_signed(max(shares))}; most for {look(worst.scheme).label}{_at(worst.qps)}."
    )


def _order(runs: Runs, twin: Runs) -> str:
    """Whether one would choose another scheme at the other level."""
    differing = [
        (point, *orders)
        for point in runs.points
        if (orders := (_ranked(runs, point), _ranked(twin, point)))[0] != orders[1]
    ]
    if len(runs.schemes) == 1:
        return ""
    if not differing:
        return "The order of the schemes by mean FCT is the same at both levels, at every load."
    point, packet, flow = differing[-1]
    return (
        f"The order of the schemes by mean FCT differs at {len(differing)} of {len(runs.points)} loads; "
        f"the last of them{_at(point)}: {_listed(packet)} at packet level, {_listed(flow)} at flow level."
    )


def _ranked(runs: Runs, point: Point) -> list[str]:
    return sorted(runs.schemes, key=lambda scheme: runs.mean(scheme, point, "fct_mean_s").value)


def _listed(schemes: Sequence[str]) -> str:
    return " < ".join(look(scheme).label for scheme in schemes)


def _points(rows: Sequence[Beside]) -> str:
    """By how many points reductions differ."""
    gaps = [
        (packet - flow, what, row)
        for row in rows
        for packet, flow, what in (
            (row.mean_packet, row.mean_flow, "mean"),
            (row.p95_packet, row.p95_flow, "P95"),
        )
        if packet is not None and flow is not None
    ]
    if not gaps:
        return ""
    gap, what, row = max(gaps, key=lambda entry: abs(entry[0]))
    side = "more" if gap > 0 else "less"
    return (
        f"Reductions against ECMP differ by at most {100 * abs(gap):.1f} points ({what} FCT under "
        f"{look(row.scheme).label}{_at(row.qps)}: {side} at packet level)."
    )


def _singles(runs: Runs, twin: Runs) -> str:
    """How single transfers that take the same path at both levels fare: the physics of sharing alone."""
    scheme = BASE if BASE in runs.schemes else runs.schemes[0]
    point = runs.points[-1]
    packet, flow = runs.transfers[scheme, point], twin.transfers[scheme, point]
    same = np.array([one == other for one, other in zip(packet.path, flow.path, strict=True)])
    if not same.any():
        return ""
    longer = packet.fct_ns / flow.fct_ns - 1
    total = float(packet.fct_ns[same].sum() / flow.fct_ns[same].sum()) - 1
    text = (
        f"Single transfers scatter more than their mean: {look(scheme).label}{_at(point)}, first seed, "
        f"{int(same.sum()):,} transfers that take the same path at both levels: nine in ten differ by "
        f"{_spread(longer[same])}, their mean by {_signed(total)}."
    )
    low, high = np.percentile(longer[same], SPREAD)
    if high - low < 2 * CLOSE:
        return (
            f"Single transfers take the same time at both levels, nine in ten within {_spread(longer[same])}."
        )
    marked, unmarked = longer[same & packet.marked], longer[same & ~packet.marked]
    if marked.size and unmarked.size:
        parts = f"{_spread(marked)}; without: {_spread(unmarked)}"
        text += f" With marked packets ({marked.size:,} transfers): {parts}."
        reacts = _packet(runs).get("control") != "none"
        if reacts and np.median(marked) > np.median(unmarked) + CLOSE:
            text += (
                " So marks are one reason: who is marked slows down and recovers in steps, and who is not "
                "has what that leaves, while fluids on one link all slow down alike."
            )
    return f"{text} {_sharing(runs)}"


def _spread(longer: NDArray[np.float64]) -> str:
    low, high = np.percentile(longer, SPREAD)
    return f"{_signed(low)} to {_signed(high)}"


def _sharing(runs: Runs) -> str:
    """How senders come to their shares, which fluids have at once."""
    if _packet(runs).get("window") == "none":
        return (
            "Nothing but the rate limits these senders: a collision cuts rates below the fair share, and "
            "they recover in steps, where fluids have theirs at once."
        )
    return (
        "A fluid has its max-min share at once. A sender with a window has a share of each queue in "
        "proportion to its packets there: one that crosses two busy queues has less than its max-min share "
        "of both, and the others on these links have what it leaves."
    )


def _choices(runs: Runs, twin: Runs) -> str:
    """Schemes look at what is under way, so one completion in another order changes the choices after it."""
    point = runs.points[-1]
    told = []
    for scheme in runs.schemes:
        packet, flow = runs.transfers[scheme, point].path, twin.transfers[scheme, point].path
        differing = sum(one != other for one, other in zip(packet, flow, strict=True)) / max(1, len(packet))
        if differing > 0:
            told.append(f"{percent(differing)} of transfers under {look(scheme).label}")
    if not told:
        return "Every transfer takes the same path at both levels."
    return (
        f"Choices follow completions: one transfer that ends before another instead of after it changes the "
        f"choices behind it. Another path at packet level{_at(point)}, first seed: {', '.join(told)}."
    )


def _marks(runs: Runs) -> str:
    """What ECN and losses did, which no fluid knows."""
    shares = {(scheme, point): float(kept.marked.mean()) for (scheme, point), kept in runs.transfers.items()}
    again = sum(kept.retransmits for kept in runs.transfers.values())
    lost = f" {again:,} packets were sent again." if again else " No packet was sent again."
    (scheme, point), most = max(shares.items(), key=lambda item: item[1])
    if most == 0:
        return f"No packet was marked by ECN in the runs of the first seed.{lost}"
    least_scheme, least_point = min(shares, key=lambda key: shares[key])
    least = shares[least_scheme, least_point]
    text = (
        f"ECN marked packets of {percent(least)} ({look(least_scheme).label}{_at(least_point)}) to "
        f"{percent(most)} ({look(scheme).label}{_at(point)}) of transfers in the runs of the first seed."
    )
    if _packet(runs).get("control") == "none":
        return f"{text} Nobody reacts to the marks here: there is no congestion control.{lost}"
    return (
        f"{text} Marks begin when the packets of enough transfers stand in one queue, and fall at random: "
        f"equal transfers end at different times, which they do not as fluids.{lost}"
    )


def _headers(runs: Runs) -> str:
    packet = _packet(runs)
    payload, header, ack = (packet.get(name) for name in ("payload_bytes", "overhead_bytes", "ack_bytes"))
    if not isinstance(payload, int) or not isinstance(header, int) or not isinstance(ack, int):
        return ""
    wire = payload + header
    return (
        f"Headers make no difference, both levels count them ({percent(header / wire, 1)} of the wire). "
        "Acknowledgements are packets at packet level only: they take up to "
        f"{percent(ack / wire, 1)} of the other direction of each link, and delay data only where data goes "
        "that way too."
    )


def _packet(runs: Runs) -> dict[str, object]:
    """The constants of the packet engine, as the runs echo them."""
    packet = runs.config.get("packet")
    return packet if isinstance(packet, dict) else {}


def _at(point: Point) -> str:
    return "" if point is None else f" at {point:g} requests/s"


def _signed(share: float) -> str:
    """A share in % with its sign, and none on zero."""
    text = percent(share, 1)
    if text in {"0.0 %", "−0.0 %"}:
        return "0.0 %"
    return text if text.startswith("−") else f"+{text}"
