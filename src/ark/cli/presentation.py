"""What ``reproduce`` and ``simulate`` share: run an experiment with progress, keep it, show it."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from rich.console import Console

from ark import __version__
from ark.cli.output import note, print_json, print_table, progress
from ark.cli.packets import cost
from ark.errors import ConfigError, Fault
from ark.fabric import Fabric
from ark.report.answer import answer
from ark.report.claims import judge
from ark.report.engines import agreement, all_rows, compare, differences
from ark.report.looks import look
from ark.report.page import Story, seed_text, warnings
from ark.report.provenance import provenance
from ark.report.runs import BASE, Point, Runs
from ark.report.statistics import Estimate
from ark.report.style import percent, point_name
from ark.report.tables import headings, metrics_of, table_rows
from ark.report.write import REPORT, Folder
from ark.sim.experiment import Experiment
from ark.sim.results import RunResult
from ark.sim.sweep import run_all, usable_cores
from ark.sim.traffic import FlowWorkload, PresetWorkload, requests_of
from ark.units import NS_PER_S, format_rate, format_size, format_time
from ark.workload.latency import LATENCY_DEFAULT, fitting_preset

WIDE: Final = 110
"""From this width on a value and its difference to ECMP stand on one line."""

TEXT_MAX: Final = 100
"""Longest line of running text."""


_FLAGS: Final = {"lag_ns": "lag", "segment_bytes": "stripes"}
"""Fields of an experiment whose flag has another name."""


def checked(experiment: Experiment) -> Experiment:
    """The experiment itself.

    Raises
    ------
    ConfigError
        If it cannot be run; each fault names the flag.
    """
    try:
        experiment.check()
    except ConfigError as error:
        raise ConfigError(*(_of_flag(fault) for fault in error.faults)) from None
    return experiment


def _of_flag(fault: Fault | str) -> Fault | str:
    return fault if isinstance(fault, str) else Fault(f"--{_FLAGS.get(fault.where, fault.where)}", fault.what)


def gather(experiment: Experiment, folder: Folder) -> Runs:
    """Run all of an experiment, with progress on stderr, and keep what comes."""
    if experiment.engine == "packet":
        note(cost(experiment))
    runs = Runs()
    with progress(len(experiment.runs()), "Simulating", workers=usable_cores()) as advance:
        for result in run_all(experiment):
            runs.add(result)
            folder.take(result)
            advance(_what(result))
    return runs


def gather_twin(experiment: Experiment) -> Runs | None:
    """The same traffic at flow level, beside runs at packet level."""
    if experiment.engine != "packet":
        return None
    twin = replace(experiment, engine="flow")
    runs = Runs()
    with progress(len(twin.runs()), "The same at flow level", workers=usable_cores()) as advance:
        for result in run_all(twin):
            runs.add(result)
            advance(_what(result))
    return runs


def _what(result: RunResult) -> str:
    point = "" if result.qps is None else f" {result.qps:g} requests/s"
    return f"{look(result.scheme).label}{point} seed {result.seed}"


def present(runs: Runs, story: Story, out: Path, *, as_json: bool) -> None:
    """Print what came out: a table and the answer for people, or one JSON object."""
    if as_json:
        print_json(as_object(runs, story, out))
        return
    wide = Console().width >= WIDE
    print_table(
        f"{story.title} ({seed_text(len(runs.seeds))})",
        headings(runs),
        table_rows(runs, joint="  " if wide else "\n"),
        caption=_caption(runs),
    )
    told = answer(runs, runs.main_point)
    _print_text(told.verdict)
    for sentence in told.sentences:
        _print_text(sentence, bullet="- ")
    if story.twin is not None:
        for sentence in agreement(runs, story.twin):
            _print_text(sentence, bullet="- ")
    for warning in (*story.remarks, *warnings(runs)):
        note(f"Note: {warning}")
    print(f"\nReport: {out / REPORT}")


def _caption(runs: Runs) -> str | None:
    if BASE not in runs.schemes or len(runs.schemes) == 1:
        return None
    margin = ", ± half of its 95 % confidence interval" if len(runs.seeds) > 1 else ""
    return f"With each time: by how many % it differs from ECMP on the same traffic{margin}."


def _print_text(text: str, bullet: str = "") -> None:
    width = min(TEXT_MAX, Console().width)
    print(textwrap.fill(text, width, initial_indent=bullet, subsequent_indent=" " * len(bullet)))


def as_object(runs: Runs, story: Story, out: Path) -> dict[str, object]:
    """Everything that a program may want to know, under names that stay."""
    told = answer(runs, runs.main_point)
    claims = [] if story.table1 is None else judge(runs, story.table1)
    result: dict[str, object] = {
        "out": str(out),
        "report": str(out / REPORT),
        "answer": {
            "verdict": told.verdict,
            "sentences": told.sentences,
            "at": point_name(told.point, runs.load(told.point)),
            "saving_max_share": runs.saving_max(BASE, told.point)
            if runs.has_ttft and BASE in runs.schemes
            else None,
        },
        "warnings": [*story.remarks, *warnings(runs)],
        "reductions": _reductions(runs),
        "results": all_rows(runs, story.twin),
        "config": story.config,
    }
    if story.twin is not None:
        result["engines"] = {
            "rows": [asdict(row) for row in compare(runs, story.twin, with_paper=story.table1 is not None)],
            "sentences": differences(runs, story.twin),
        }
    if story.table1 is not None:
        result["claims"] = [
            {"section": c.section, "claim": c.claim, "paper": c.paper, "ours": c.ours, "ark": c.ark}
            | {"verdict": c.verdict, "why": c.why}
            for c in claims
        ]
        result["table1"] = story.table1.as_json()
    return result


def _reductions(runs: Runs) -> list[dict[str, object]]:
    if BASE not in runs.schemes:
        return []
    return [
        _reduction(scheme, point, column, runs.reduction(scheme, point, column))
        for point in runs.points
        for scheme in runs.schemes
        if scheme != BASE
        for column in metrics_of(runs)
    ]


def _reduction(scheme: str, point: Point, column: str, saved: Estimate) -> dict[str, object]:
    return {
        "scheme": scheme,
        "qps": point,
        "metric": column,
        "share": saved.value,
        "low": saved.low,
        "high": saved.high,
        "p10": saved.p10,
        "p50": saved.p50,
        "p90": saved.p90,
        "seeds": saved.seeds,
    }


def simulated_by(experiment: Experiment) -> str:
    """One line under the title: that this is a simulation, and of which kind."""
    kind = "flow level" if experiment.engine == "flow" else "packet level"
    return f"Simulated at {kind} by ARK {__version__}. No switch, GPU or network card was involved."


def facts(experiment: Experiment, runs: Runs) -> list[tuple[str, str]]:
    """What was run, for people who were not there."""
    fabric = experiment.fabric
    told = [
        ("Traffic", _traffic(experiment)),
        ("Load", "; ".join(point_name(point, runs.load(point)) for point in runs.points)),
        ("Fabric", _fabric(fabric)),
        ("Network model", _network_model(experiment)),
        ("Seeds", f"{seed_text(len(runs.seeds))}; all schemes see the same traffic at one load and seed"),
        ("Control plane", _control(experiment)),
    ]
    if runs.has_ttft:
        told[2:2] = [
            (
                "Model",
                f"{experiment.kv.name}, {experiment.kv.bytes_per_token / 1024:g} KiB of KV cache a token",
            ),
            ("TTFT", _ttft(experiment)),
        ]
    if experiment.scale != 1:
        told.append(
            ("Scale", f"sizes and times of transfers divided by {experiment.scale:g}; FCT is in scaled time")
        )
    return told


def _traffic(experiment: Experiment) -> str:
    match experiment.workload:
        case FlowWorkload(flows):
            notes = flows.notes
            text = f"{len(flows)} transfers of a flow table"
        case workload:
            requests = requests_of(workload, qps=experiment.points()[0], seed=experiment.seeds[0])
            size_bytes = experiment.kv.kv_bytes(requests.new_tokens)
            notes = requests.notes
            text = (
                f"{len(requests)} requests a run: {requests.origin}; prompts of "
                f"{requests.prompt_tokens.mean():,.0f} tokens on average, transfers of "
                f"{format_size(size_bytes.mean())}, each from a random prefill NIC to a random decode NIC"
            )
    return "; ".join((text, *notes))


def _fabric(fabric: Fabric) -> str:
    return (
        f"{fabric.name}: {len(fabric.hosts)} hosts, {len(fabric.prefill)} of them prefill and "
        f"{len(fabric.decode)} decode; {len(fabric.switches)} switches; "
        f"{format_rate(fabric.prefill_capacity_bps)} upwards from the prefill leaves (load 1)"
    )


def _network_model(experiment: Experiment) -> str:
    share = percent(experiment.flow_model.goodput_share, 1)
    if experiment.engine == "flow":
        return f"fluids that share links max-min fairly; {share} of a link carries payload"
    packet = experiment.packet
    control = {"none": "no congestion control", "dcqcn": "DCQCN", "hpcc": "HPCC", "swift": "Swift"}
    return (
        f"every packet: {packet.payload_bytes} B of payload and {packet.overhead_bytes} B of headers "
        f"({share} of a link carries payload), {control[packet.control]} with the constants of "
        f"“{packet.preset}”, window: {packet.window}, PFC {'on' if packet.buffer.pfc else 'off'}"
    )


def scale_remarks(experiment: Experiment) -> list[str]:
    """What the scale does to a run, where there is one."""
    scale = experiment.scale
    if scale == 1:
        return []
    text = (
        f"Sizes and times of transfers are divided by {scale:g}, but delays, windows, queues, marking "
        f"thresholds and timers are not: next to a transfer they are {scale:g} times as large as in full "
        "size. FCT is in scaled time, TTFT in full size. --scale 1 runs all in full size."
    )
    return [text]


def latency_remarks(experiment: Experiment) -> list[str]:
    """That the default prefill times are not those of the model, where they are not."""
    model = experiment.kv
    names = (model.name, *model.aliases)
    if (
        isinstance(experiment.workload, FlowWorkload)
        or experiment.latency.name != LATENCY_DEFAULT
        or any(_AS_8B.search(name.lower()) for name in names)
    ):
        return []
    fitting = fitting_preset(names)
    advice = (
        "a --latency that fits, see ark models --latencies" if fitting is None else f"--latency {fitting}"
    )
    text = (
        f"The prefill times ({LATENCY_DEFAULT}) are those of an 8B model, not of {model.name}: the network's "
        "share of TTFT comes out too large for a larger model, and too small for a smaller one. "
        f"Give {advice}."
    )
    return [text]


_AS_8B: Final = re.compile(r"-[78]b$")
"""Names of models that are as large as the one of the default latency."""


def _control(experiment: Experiment) -> str:
    options = experiment.options
    if not set(experiment.schemes) & {"ark", "ark-paper"}:
        return "none"
    lag = f"hosts see each other's reservations after {format_time(options.lag_ns / NS_PER_S)}"
    parts = [lag if options.lag_ns else "hosts see each other's reservations at once"]
    if options.stripes > 1:
        parts.append(f"ARK sends in {options.stripes} stripes")
    if options.moves:
        parts.append("ARK moves transfers at segment ends where that helps")
    if options.release == "any":
        parts.append(
            "under the paper's ARK the end of any transfer frees its path (Algorithm 1 read literally)"
        )
    return "; ".join(parts)


def _ttft(experiment: Experiment) -> str:
    kind = {
        "additive": "prefill + transfer + first decode step, without queues",
        "fifo": "one prefill GPU a NIC takes prompts in order; its queue counts",
    }[experiment.ttft]
    layers = f"; sent in {experiment.layers} parts while later layers are computed" * (experiment.layers > 1)
    return f"{kind}{layers}; latencies: {experiment.latency.name} ({experiment.latency.origin})"


def configuration(experiment: Experiment, runs: Runs) -> dict[str, object]:
    """The object of ``config.json``: all that decided the numbers."""
    return {
        "made_with": provenance(),
        "experiment": experiment.describe(),
        "loads": {point_name(point, runs.load(point)): runs.load(point) for point in runs.points},
        "warnings": warnings(runs),
    }


def shared_words(experiment: Experiment) -> list[str]:
    """The flags that both commands have, with their values."""
    words = ["--schemes", ",".join(experiment.schemes), "--seeds", str(len(experiment.seeds))]
    if isinstance(experiment.workload, PresetWorkload):
        words += ["--requests", str(experiment.workload.requests)]
    words += ["--engine", experiment.engine, "--payload", str(experiment.flow_model.payload_bytes)]
    if experiment.engine == "packet":
        words += ["--cc-preset", experiment.packet.preset]
    return [*words, "--scale", listed([experiment.scale])]


def listed(values: Sequence[float]) -> str:
    """Numbers as a flag takes them, none rounded."""
    return ",".join(f"{value:g}" if float(f"{value:g}") == value else repr(value) for value in values)
