"""The first thing that a report says: is the network the problem, and what would ARK save.

All of it follows from three figures of the same traffic: what TTFT is made of under ECMP, what no network of
the same line rate could beat, and what each scheme reached.
"""

from dataclasses import dataclass, replace

from ark.report.looks import look
from ark.report.runs import BASE, Point, Runs
from ark.report.style import percent, point_name
from ark.report.tables import interval
from ark.units import format_time

NOTHING = 0.005
"""Below this share no choice of paths is worth a word: shares of it would be shares of noise."""

LITTLE = 0.02
"""Below this share of mean TTFT a perfect network would hardly be noticed."""

MUCH = 0.10
"""From this share on the network is worth the work."""

LOADS_NEXT = (0.5, 0.85)
"""Loads that are worth a look where there is nothing to gain: a busy fabric, and a full one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A verdict in one line, and the sentences that bear it out."""

    verdict: str
    sentences: tuple[str, ...]
    point: Point


def answer(runs: Runs, point: Point) -> Answer:
    """The answer at ``point``."""
    if BASE not in runs.schemes:
        labels = ", ".join(look(scheme).label for scheme in runs.schemes)
        return Answer(f"{labels} at {point_name(point, runs.load(point))}.", (_NO_BASE,), point)
    if runs.has_ttft:
        return Answer(_ttft_verdict(runs, point), _ttft_sentences(runs, point), point)
    return Answer(_fct_verdict(runs, point), _fct_sentences(runs, point), point)


_NO_BASE = (
    "Without ECMP among the schemes nothing can be said about savings; add ecmp to --schemes to compare "
    "with what switches do today."
)


def _ttft_verdict(runs: Runs, point: Point) -> str:
    saving_max = runs.saving_max(BASE, point)
    at_most = f"a perfect network would save at most {percent(saving_max, 1)} of mean TTFT"
    if saving_max < NOTHING:
        return f"There is nothing to gain from the network at this load: {at_most}."
    if _in_vain(runs, point, "ttft_mean_s"):
        paths = percent(runs.reduction("ideal", point, "ttft_mean_s").value, 1)
        return f"There is nothing to gain from other paths at this load: {at_most}, the best paths {paths}."
    part = "hardly a part" if saving_max < LITTLE else "a small part" if saving_max < MUCH else "a large part"
    text = f"The network is {part} of the wait for the first token: {at_most}"
    if "ark" in runs.schemes:
        saved = runs.reduction("ark", point, "ttft_mean_s").value
        text += f"; ARK saves {percent(saved, 1)}" if saved >= 0 else f"; ARK adds {percent(-saved, 1)}"
    return f"{text}."


def _in_vain(runs: Runs, point: Point, column: str) -> bool:
    """Whether the best use of this fabric's paths would save next to nothing, as far as the runs tell."""
    if runs.has_ttft and runs.saving_max(BASE, point) < NOTHING:
        return True
    return "ideal" in runs.schemes and runs.reduction("ideal", point, column).value < NOTHING


def _next_step(runs: Runs, point: Point) -> str:
    """At which rates the network would begin to matter, where the load is what is missing."""
    load = runs.load(point)
    loads = [share for share in LOADS_NEXT if share > load > 0]
    if not loads:
        return ""
    aims = " and ".join(f"{share:g}" for share in loads)
    at = f"loads of about {aims}" if len(loads) > 1 else f"a load of about {aims}"
    rate = runs.own_qps if point is None else point
    if rate is None:
        factors = " or ".join(f"{share / load:.3g}" for share in loads)
        return f"With all start_ns divided by {factors} the load would be about {aims}."
    rates = ",".join(f"{float(f'{rate * share / load:.3g}'):g}" for share in loads)
    return f"To see where the network begins to matter, try --qps {rates}: {at}."


def _at(runs: Runs, point: Point) -> str:
    return f"At {point_name(point, runs.load(point))}"


def _ttft_sentences(runs: Runs, point: Point) -> tuple[str, ...]:
    parts = runs.parts_s(BASE, point)
    total_s = sum(parts.values())
    shares = {name: part_s / total_s for name, part_s in parts.items()}
    waiting = f", {percent(shares['queue'])} waiting for a prefill GPU" if shares["queue"] >= 0.005 else ""
    decoding = f", {percent(shares['decode1'])} the first decode step" if shares["decode1"] >= 0.005 else ""
    made_of = (
        f"{_at(runs, point)} under ECMP the first token comes after "
        f"{format_time(total_s)} on average: {percent(shares['prefill'])} of it is prefill{waiting}, "
        f"{percent(shares['alone'])} the bytes of the KV cache at line rate{decoding}, and "
        f"{percent(shares['shared'])} waiting because transfers share links. Only that last part is the "
        "network's to save."
    )
    if _in_vain(runs, point, "ttft_mean_s"):
        return tuple(text for text in (made_of, _next_step(runs, point)) if text)
    ideal = ""
    if "ideal" in runs.schemes:
        ideal = (
            f"Of those {percent(runs.saving_max(BASE, point), 1)}, the best possible use of this fabric's "
            f"paths (the scheme “ideal”) saves {interval(runs.reduction('ideal', point, 'ttft_mean_s'))}; "
            "the rest is waiting on links that all paths share, such as a receiver's own."
        )
    savings = _savings(runs, point, "ttft_mean_s", "mean TTFT")
    return tuple(text for text in (made_of, ideal, *savings, _tail_sentence(runs, point)) if text)


def _savings(runs: Runs, point: Point, column: str, what: str) -> list[str]:
    present = [scheme for scheme in ("ark", "ark-paper") if scheme in runs.schemes]
    return [_saving_sentence(runs, scheme, point, column, what) for scheme in present]


def _saving_sentence(runs: Runs, scheme: str, point: Point, column: str, what: str) -> str:
    saved = runs.reduction(scheme, point, column)
    name = "ARK as built here" if scheme == "ark" else "The paper's ARK"
    if saved.value < 0:
        longer = replace(saved, value=-saved.value, low=-saved.high, high=-saved.low)
        return f"{name} makes {what} longer, by {interval(longer)}."
    text = f"{name} saves {interval(saved)} of {what}"
    if "ideal" in runs.schemes:
        possible = runs.reduction("ideal", point, column).value
        text += f", that is {percent(saved.value / possible)} of what is possible"
    return f"{text}."


def _tail_sentence(runs: Runs, point: Point) -> str:
    if "ark" not in runs.schemes:
        return ""
    ttft, mean, tail = (
        percent(runs.reduction("ark", point, column).value)
        for column in ("ttft_p95_s", "fct_mean_s", "fct_p95_s")
    )
    return (
        f"ARK lowers the P95 of TTFT by {ttft}. The transfers themselves take {mean} less time on average, "
        f"and {tail} less at the P95."
    )


def _fct_verdict(runs: Runs, point: Point) -> str:
    best = max((scheme for scheme in runs.schemes if scheme not in {BASE, "ideal"}), default=None, key=_rank)
    if best is None:
        return f"Mean FCT {format_time(runs.mean(BASE, point, 'fct_mean_s').value)} under ECMP."
    if _in_vain(runs, point, "fct_mean_s"):
        possible = percent(runs.reduction("ideal", point, "fct_mean_s").value, 1)
        at_most = f"no choice of paths would save more than {possible} of mean FCT"
        return f"There is nothing to gain from the network at this load: {at_most}."
    saved = runs.reduction(best, point, "fct_mean_s").value
    return f"{look(best).label} lowers the mean time of a transfer by {percent(saved, 1)} against ECMP."


def _rank(scheme: str) -> int:
    return (
        ("round-robin", "ark-paper", "ark").index(scheme)
        if scheme in {"round-robin", "ark-paper", "ark"}
        else -1
    )


def _fct_sentences(runs: Runs, point: Point) -> tuple[str, ...]:
    mean_s = runs.mean(BASE, point, "fct_mean_s").value
    sentences = [f"{_at(runs, point)} a transfer takes {format_time(mean_s)} under ECMP on average."]
    if _in_vain(runs, point, "fct_mean_s"):
        return tuple(text for text in (*sentences, _next_step(runs, point)) if text)
    if "ideal" in runs.schemes:
        ideal = runs.reduction("ideal", point, "fct_mean_s")
        sentences.append(
            f"No choice of paths on this fabric can save more than {interval(ideal)} of mean FCT."
        )
    sentences += _savings(runs, point, "fct_mean_s", "mean FCT")
    sentences.append(
        "These are transfers only; what share of the time to first token they are, a table of requests "
        "(--trace) would show."
    )
    return tuple(sentences)
