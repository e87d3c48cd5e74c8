"""``ark simulate``: what ARK would gain on requests, transfers and a fabric of the user's own."""

import shlex
from pathlib import Path
from typing import Annotated, Final

import cyclopts
from cyclopts import Parameter

from ark.cli.flags import SEEDS_MAX, count, fabric_of, names, output, positive
from ark.cli.output import note, print_json
from ark.cli.packets import CcPreset, models_of
from ark.cli.presentation import (
    checked,
    configuration,
    facts,
    gather,
    gather_twin,
    latency_remarks,
    listed,
    present,
    scale_remarks,
    shared_words,
    simulated_by,
)
from ark.cli.roles import with_roles
from ark.cli.traffic import Asked, points_of, workload_of
from ark.errors import ConfigError
from ark.report.page import Story
from ark.report.tables import write_flows
from ark.report.write import Folder
from ark.sim.experiment import Experiment, run_point
from ark.sim.schemes.catalogue import SCHEMES, SCHEMES_USUAL, Engine, SchemeOptions
from ark.sim.serving import TtftModel
from ark.sim.traffic import FlowWorkload
from ark.units import parse_time, quoted
from ark.workload.kv import kv_model
from ark.workload.latency import LATENCY_DEFAULT, latency_model

SEEDS: Final = 10
SEEDS_FLOWS: Final = 1

app: Final = cyclopts.App(
    name="simulate", help="Say what ARK would gain on your own requests, transfers and fabric."
)

Switch = Annotated[bool, Parameter(negative=())]


@app.default
def simulate(
    *,
    out: Path,
    trace: str | None = None,
    flows: Path | None = None,
    fabric: Path | None = None,
    prefill: str | None = None,
    decode: str | None = None,
    schemes: Annotated[str, Parameter(help=f"What is compared, of {', '.join(SCHEMES)}.")] = ",".join(
        SCHEMES_USUAL
    ),
    qps: str | None = None,
    time_scale: float | None = None,
    requests: int | None = None,
    arrivals: str | None = None,
    trace_format: Annotated[str | None, Parameter(name="--format")] = None,
    jitter: Switch = False,
    prefix_reuse: Switch = False,
    model: str = "llama-3-8b",
    models: Path | None = None,
    latency: str = LATENCY_DEFAULT,
    ttft: TtftModel = "additive",
    layers: int = 1,
    lag: str = "0",
    stripes: int = 1,
    moves: Switch = False,
    engine: Engine = "flow",
    payload: int | None = None,
    cc_preset: CcPreset | None = None,
    scale: float = 1.0,
    seeds: int | None = None,
    json: Switch = False,
) -> None:
    """Say what ARK would gain on your own requests, transfers and fabric.

    Writes results.csv, flows/*.csv (of seed 0), figures, config.json and report.html into a folder; other
    files of that folder stay as they are. With --flows, one scheme and an --out that ends in .csv, it writes
    just the flow table.

    Parameters
    ----------
    out
        Folder for the results; made where it is not there.
    trace
        Requests: a trace file (Mooncake JSONL, Azure, Vidur, BurstGPT or ARK's own CSV) or the name of a
        workload: paper, mooncake-conversation, azure-code, azure-conv.
    flows
        In place of requests: a table of transfers (id,src,dst,size_bytes,start_ns and more).
    fabric
        Fabric file (TOML). Default: the paper's, 2 leaves x 4 spines x 8 hosts at 100 Gbit/s.
    prefill
        Hosts that prefill, like h0-h7. Default: those of the fabric file, else of half of the leaves.
    decode
        Hosts that decode, like h8-h15. Default: those of the fabric file, else all others.
    qps
        Requests per second, one or several points, like 5,10. Default: the times that the trace has.
    time_scale
        Multiply the times of the trace instead; 0.5 doubles the rate.
    requests
        Requests of a named workload (1000), or take only the first so many of a trace file.
    arrivals
        How the requests of a named workload arrive: poisson, constant, or gamma:2.5 (gaps with that
        coefficient of variation; above 1 in bursts). Default: the paper's Poisson, else as in the trace.
    trace_format
        Form of the trace file: mooncake, ark, azure, vidur, burstgpt. Default: found from its content.
    jitter
        Spread requests that the trace stamps with one time over the time to the next.
    prefix_reuse
        Leading blocks that earlier requests had are not computed and not sent (Mooncake traces).
    model
        Model whose KV cache is sent, like llama-3-8b, qwen3-32b, deepseek-v3; ark models lists all.
    models
        A file of your own models (TOML or JSON), which go before those of the same name.
    latency
        Latency of prefill and first decode step: a preset (ark models --latencies lists all), or
        constant:840ms:10ms. The default is an 8B model's, whatever --model is.
    ttft
        additive (the paper's sum) or fifo (prompts queue for prefill GPUs).
    layers
        Send the KV cache in so many parts, each as soon as its layers are computed.
    lag
        How much later than its owner all other hosts see a reservation, like 100us.
    stripes
        Paths a transfer takes at once under ark.
    moves
        Under ark, transfers may move to a better path at the end of a segment.
    engine
        flow (transfers share links as fluids) or packet (every packet, with congestion control, ECN and
        pauses; the same traffic at flow level beside it).
    payload
        Payload bytes of a packet, like 9000 or 1000. Default: 9000, or what --cc-preset has.
    cc_preset
        With --engine packet, whose constants of congestion control, ECN and buffers. Default: simai.
    scale
        Divide sizes and times of all transfers by this, for a packet-level run in less time.
    seeds
        Draws of pairs and ports (and of a named workload): seeds 0 to N-1. Default: 10; with --flows 1.
    json
        Print one JSON object in place of the table.
    """
    out = output(out)
    chosen = with_roles(fabric_of(fabric), prefill, decode)
    asked = Asked(
        trace,
        flows,
        qps,
        time_scale,
        requests,
        trace_format,
        arrivals,
        jitter=jitter,
        prefix_reuse=prefix_reuse,
    )
    if seeds is None:
        seeds = SEEDS if flows is None else SEEDS_FLOWS
    workload = workload_of(asked, chosen)
    packet, flow_model = models_of(engine, payload, cc_preset)
    experiment = checked(
        Experiment(
            fabric=chosen,
            workload=workload,
            qps=points_of(asked, workload),
            seeds=tuple(range(count("--seeds", seeds, SEEDS_MAX))),
            schemes=names(schemes),
            engine=engine,
            options=SchemeOptions(lag_ns=_lag_ns(lag), stripes=stripes, moves=moves),
            kv=kv_model(model, file=models),
            latency=latency_model(latency),
            ttft=ttft,
            layers=layers,
            flow_model=flow_model,
            packet=packet,
            scale=positive("--scale", scale),
        )
    )
    table = _table_path(out, experiment, flows)
    if table is not None:
        _write_table(experiment, table, as_json=json)
        return
    folder = Folder(out)
    runs = gather(experiment, folder)
    twin = gather_twin(experiment)
    story = Story(
        title=f"What ARK would gain on {asked.name}",
        subtitle=simulated_by(experiment),
        facts=facts(experiment, runs),
        command=_command(experiment, asked, fabric, models, out),
        config=configuration(experiment, runs),
        remarks=[*latency_remarks(experiment), *scale_remarks(experiment)],
        twin=twin,
    )
    folder.finish(runs, story)
    present(runs, story, out, as_json=json)


def _lag_ns(text: str) -> int:
    try:
        return parse_time(text)
    except ConfigError as error:
        raise ConfigError(f"--lag: {error}") from None


def _table_path(out: Path, experiment: Experiment, flows: Path | None) -> Path | None:
    """Where just the flow table goes, if that is what the flags ask for."""
    if out.suffix != ".csv":
        return None
    if flows is None or len(experiment.schemes) > 1 or len(experiment.seeds) > 1:
        raise ConfigError(
            f"--out: {quoted(str(out))} ends in .csv, which is for --flows with one scheme and one seed; "
            "name a folder"
        )
    if out.is_dir() or not out.resolve().parent.is_dir():
        raise ConfigError(
            f"--out: {quoted(str(out))} can't be written; name a file in a folder that is there"
        )
    if out.exists() and out.samefile(flows):
        raise ConfigError("--out: that is the file of --flows; name another one")
    return out


def _write_table(experiment: Experiment, path: Path, *, as_json: bool) -> None:
    [(scheme, qps, seed)] = experiment.runs()
    result = run_point(experiment, scheme, qps, seed)
    write_flows(result, path)
    for warning in result.warnings:
        note(f"Note: {warning}")
    if as_json:
        print_json({"out": str(path), "results": [result.row()], "config": result.config})
    else:
        print(f"{len(result.flows)} transfers under {scheme}, load {result.load:.2f}: {path}")


def _command(
    experiment: Experiment, asked: Asked, fabric: Path | None, models: Path | None, out: Path
) -> str:
    """The command with every value that matters written out, so that it outlives a change of defaults."""
    words = ["ark", "simulate", *asked.words()]
    if fabric is not None:
        words += ["--fabric", str(fabric)]
    words += [
        "--prefill",
        ",".join(experiment.fabric.prefill),
        "--decode",
        ",".join(experiment.fabric.decode),
    ]
    if experiment.qps is not None:
        words += ["--qps", listed(experiment.qps)]
    words += shared_words(experiment)
    if not isinstance(experiment.workload, FlowWorkload):
        words += ["--model", experiment.kv.name]
        words += [] if models is None else ["--models", str(models)]
        words += ["--latency", experiment.latency.name]
        words += ["--ttft", experiment.ttft, "--layers", str(experiment.layers)]
    options = experiment.options
    words += ["--lag", f"{options.lag_ns}ns", "--stripes", str(options.stripes)]
    words += ["--moves"] if options.moves else []
    return shlex.join([*words, "--out", str(out)])
