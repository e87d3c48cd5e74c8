"""``ark reproduce``: the paper's experiment, its figures and table 1, and whether its claims hold."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal

import cyclopts
from cyclopts import Parameter

from ark.cli.flags import SEEDS_MAX, count, fabric_of, names, numbers, output, positive
from ark.cli.output import note
from ark.cli.packets import CcPreset, models_of
from ark.cli.presentation import (
    checked,
    configuration,
    facts,
    gather,
    gather_twin,
    listed,
    present,
    scale_remarks,
    shared_words,
    simulated_by,
)
from ark.errors import ConfigError
from ark.fabric import paper_fabric
from ark.report import paper
from ark.report.microbench import measure
from ark.report.page import Story
from ark.report.write import Folder
from ark.sim.experiment import Experiment, qps_of_load
from ark.sim.schemes.catalogue import SCHEMES, SCHEMES_USUAL, Engine, SchemeOptions
from ark.sim.traffic import PresetWorkload
from ark.workload.paper import REQUESTS_MAX

SCHEMES_QUICK: Final = tuple(name for name in SCHEMES_USUAL if name != "round-robin")
SEEDS: Final = 10
SEEDS_QUICK: Final = 5
SCALE_PACKET: Final = 50.0
"""As the packet engine's reference traces are scaled; the default sweep is then a matter of minutes."""

app: Final = cyclopts.App(
    name="reproduce",
    help="Repeat the paper's experiment: figures 2 to 4, table 1, and whether its claims hold.",
)


@app.default
def reproduce(
    *,
    out: Path,
    quick: Annotated[bool, Parameter(negative=())] = False,
    qps: str | None = None,
    load: str | None = None,
    requests: int = paper.REQUESTS,
    seeds: int | None = None,
    schemes: Annotated[
        str | None,
        Parameter(help=f"What is compared, of {', '.join(SCHEMES)}. Default: {', '.join(SCHEMES_USUAL)}."),
    ] = None,
    fabric: Path | None = None,
    engine: Engine = "flow",
    payload: int | None = None,
    cc_preset: CcPreset | None = None,
    scale: float | None = None,
    release: Literal["owner", "any"] = "owner",
    json: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Repeat the paper's experiment: figures 2 to 4, table 1, and whether its claims hold.

    Writes results.csv, flows/*.csv (of seed 0), fig2_fct.png, fig3_spines.png, fig4_ttft.png, table1.json,
    config.json and report.html into a folder. Other files of that folder stay as they are.

    Parameters
    ----------
    out
        Folder for the results; made where it is not there.
    quick
        5 seeds and no round robin: less than half of the time, rougher intervals.
    qps
        Requests per second of each point, like 1,5,25. Default: 1,5,10,15,20,25,30.
    load
        In place of --qps: offered loads of the fabric, like 0.5,0.85.
    requests
        Requests a run.
    seeds
        Draws of the traffic: seeds 0 to N-1. Default: 10.
    fabric
        Fabric file (TOML). Default: the paper's, 2 leaves x 4 spines x 8 hosts at 100 Gbit/s.
    engine
        flow (transfers share links as fluids) or packet (every packet, with congestion control, ECN and
        pauses; the same traffic at flow level beside it).
    payload
        Payload bytes of a packet, like 9000 or 1000. Default: 9000, or what --cc-preset has.
    cc_preset
        With --engine packet, whose constants of congestion control, ECN and buffers. Default: simai.
    scale
        Divide sizes and times of all transfers by this. Default: 1; with --engine packet 50, because in full
        size each run there takes about 3 minutes of CPU time.
    release
        Who may free a path under ark-paper: its owner, or any transfer's end (Algorithm 1 read literally).
    json
        Print one JSON object in place of the table.
    """
    out = output(out)
    if seeds is None:
        seeds = SEEDS_QUICK if quick else SEEDS
    if scale is None:
        scale = SCALE_PACKET if engine == "packet" else 1.0
    packet, flow_model = models_of(engine, payload, cc_preset)
    default = SCHEMES_QUICK if quick else SCHEMES_USUAL
    experiment = Experiment(
        fabric=fabric_of(fabric),
        workload=PresetWorkload(requests=count("--requests", requests, REQUESTS_MAX)),
        seeds=tuple(range(count("--seeds", seeds, SEEDS_MAX))),
        schemes=default if schemes is None else names(schemes),
        engine=engine,
        options=SchemeOptions(release=release),
        flow_model=flow_model,
        packet=packet,
        scale=positive("--scale", scale),
    )
    experiment = checked(replace(experiment, qps=_points(qps, load, experiment)))
    folder = Folder(out)
    runs = gather(experiment, folder)
    twin = gather_twin(experiment)
    note("Measuring table 1 ...")
    story = Story(
        title="The paper's experiment, repeated",
        subtitle=simulated_by(experiment),
        facts=facts(experiment, runs),
        command=_command(experiment, fabric, out),
        config=configuration(experiment, runs),
        table1=measure(),
        remarks=[*_departures(experiment), *scale_remarks(experiment)],
        twin=twin,
    )
    folder.finish(runs, story)
    present(runs, story, out, as_json=json)


def _points(qps: str | None, load: str | None, experiment: Experiment) -> tuple[float, ...]:
    if qps is not None and load is not None:
        raise ConfigError("--qps and --load say the same in two ways; give one of them")
    if load is not None:
        rates = sorted(qps_of_load(experiment, share) for share in numbers("--load", load))
        return tuple(float(f"{rate:.4g}") for rate in rates)  # as exact as the load, and readable
    return paper.QPS if qps is None else tuple(sorted(numbers("--qps", qps)))


def _departures(experiment: Experiment) -> list[str]:
    """Why the paper's claims are about something else than this run, where they are."""
    others = []
    if experiment.fabric.digest() != paper_fabric().digest():
        others.append("another fabric")
    if experiment.workload != PresetWorkload("paper", paper.REQUESTS):
        others.append("another number of requests")
    if experiment.options.release != "owner":
        others.append("Algorithm 1 read literally")
    return [f"This run has {' and '.join(others)}: the paper's claims are not about it."] if others else []


def _command(experiment: Experiment, fabric: Path | None, out: Path) -> str:
    """The command with every value that matters written out, so that it outlives a change of defaults."""
    words = ["ark", "reproduce"]
    if fabric is not None:
        words += ["--fabric", str(fabric)]
    words += ["--qps", listed(experiment.qps or ()), *shared_words(experiment)]
    if experiment.options.release != "owner":
        words += ["--release", experiment.options.release]
    return shlex.join([*words, "--out", str(out)])
