"""``ark lab run``: the paper's workload with real bytes, scheme against scheme, or while something breaks."""

import shlex
import shutil
from pathlib import Path
from typing import Annotated, Final, Literal

import cyclopts
from cyclopts import Parameter
from rich.console import Console

from ark import __version__
from ark.cli.flags import count, names, numbers, output
from ark.cli.lab import RATE, FabricFile, HashSeed, Json, Rate, scaled_fabric
from ark.cli.lab_faults import run_faults
from ark.cli.lab_mooncake import run_mooncake
from ark.cli.output import note, print_json, print_table, progress
from ark.cli.presentation import WIDE, listed
from ark.errors import ConfigError
from ark.lab import learning
from ark.lab.clos import require_rights
from ark.lab.directory import name_of_run
from ark.lab.experiment import SCHEMES, LabExperiment
from ark.lab.lab import lab
from ark.lab.run import run_all
from ark.lab.twin import twin_of
from ark.report.beside import beside_sentences
from ark.report.emulated import Emulation, as_object, write
from ark.report.page import Story, seed_text
from ark.report.style import point_name
from ark.report.tables import headings, table_rows
from ark.report.write import REPORT, Folder
from ark.sim.traffic import PresetWorkload
from ark.units import format_rate, format_size

REQUESTS: Final = 300
REQUESTS_LEARN: Final = 900
"""Of a fault run with ports that are learned: to learn anew takes all hosts of one machine seconds."""

WRITES: Final = 30
REQUESTS_MAX: Final = 10_000
SEEDS: Final = 2
SEEDS_MAX: Final = 100
QPS: Final = "20,25"
QPS_FAULT: Final = "25"

app: Final = cyclopts.App(name="run", help="Run the paper's workload with real bytes, and compare schemes.")


@app.default
def run(
    *,
    out: Path | None = None,
    schemes: str | None = None,
    qps: str | None = None,
    requests: int | None = None,
    seeds: int | None = None,
    fault: str | None = None,
    mover: Literal["own", "mooncake"] = "own",
    learn: Annotated[bool, Parameter(negative=())] = False,
    fabric: FabricFile = None,
    rate: Rate = RATE,
    hash_seed: HashSeed = 1,
    json: Json = False,
) -> int:
    """Run the paper's workload in the lab: real bytes over TCP, real agents, the kernel's own ECMP.

    Writes results.csv, checks.csv, link_bytes.csv, flows/*.csv, figures and report.html into a folder, beside
    the flow-level simulation of the same transfers. Ends with 1 if a transfer was wrong, took another path
    than the chosen one, or left a claim. Needs root.

    Parameters
    ----------
    out
        Folder for the results; needed unless --fault is given.
    schemes
        What is compared, of ecmp, ark-paper, ark. Default: all of them.
    qps
        Requests per second, one or several points. Default: 20,25; with --fault 25.
    requests
        Requests of each run. Default: 300; with --fault and --learn 900, with --mover mooncake 30.
    seeds
        Draws of traffic: seeds 0 to N-1. Default: 2.
    fault
        What breaks during a run under ark: spine-down, link-down, agent-killed, management-loss,
        management-cut, late-host, several of them, or all. Nothing is compared then.
    mover
        mooncake: the unmodified engine of PyPI moves the bytes, 16 MiB writes one after the other, and the
        counters say which spine each took. Nothing is compared then.
    learn
        Agents are not told the hash seeds: every sending host learns its ports by `ark discover` first. With
        --fault, `ark discover watch` keeps them right, and lost paths must not be used until they are back.
    """
    if mover == "mooncake":
        if learn:
            raise ConfigError("--learn: under --mover mooncake agents are told the hash seeds; leave it out")
        given = {"--out": out, "--qps": qps, "--seeds": seeds, "--fault": fault, "--schemes": schemes}
        for flag, value in given.items():
            if value is not None:
                raise ConfigError(f"{flag}: --mover mooncake writes one after the other; leave it out")
        wanted = count("--requests", WRITES if requests is None else requests, REQUESTS_MAX)
        return run_mooncake(scaled_fabric(fabric, rate, hash_seed).lab, wanted, as_json=json)
    chosen = scaled_fabric(fabric, rate, hash_seed)
    if requests is None:
        requests = REQUESTS_LEARN if learn and fault is not None else REQUESTS
    points = numbers("--qps", qps or (QPS if fault is None else QPS_FAULT))
    experiment = LabExperiment(
        fabric=chosen,
        workload=PresetWorkload(requests=count("--requests", requests, REQUESTS_MAX)),
        qps=tuple(sorted(points)),
        seeds=tuple(range(count("--seeds", SEEDS if seeds is None else seeds, SEEDS_MAX))),
        schemes=SCHEMES if schemes is None else names(schemes),
    )
    experiment.check()
    if fault is not None:
        if out is not None or seeds is not None or len(points) > 1:
            raise ConfigError(
                "--fault: prints its checks for one QPS and seed 0; leave --out and --seeds out"
            )
        if schemes is not None:
            raise ConfigError("--schemes: --fault runs under ark alone; leave it out")
        return run_faults(experiment, fault, learn=learn, as_json=json)
    if out is None:
        raise ConfigError("--out: name a folder for the results")
    return _compare(experiment, output(out), fabric, rate, learn=learn, as_json=json)


def _compare(
    experiment: LabExperiment, out: Path, fabric: Path | None, rate: str, *, learn: bool, as_json: bool
) -> int:
    require_rights()
    folder = Folder(out)
    emulation = Emulation(experiment.fabric)
    note(f"building {experiment.fabric.lab.name}: {len(experiment.fabric.lab.hosts)} hosts …")
    with (
        lab(experiment.fabric.lab, name=name_of_run()) as built,
        progress(len(experiment.runs()), "Emulating") as advance,
    ):
        emulated = []
        built.crew.start()
        if learn:
            fabric_of_lab = experiment.fabric.lab
            learning.learn(built, dict.fromkeys(fabric_of_lab.prefill, fabric_of_lab.decode))
        for one in run_all(built, experiment):
            emulated.append(one)
            if one.wrongs():
                _keep_logs(built.directory, out / "logs")
            folder.take(one.result)
            advance(f"{one.result.scheme} {one.result.qps:g} requests/s seed {one.result.seed}")
    for one in emulated:
        emulation.add(one, twin_of(experiment, one.result))
    story = Story(
        title="The paper's workload, emulated",
        subtitle=f"Emulated by ARK {__version__}: namespaces, kernel ECMP and TCP of one machine; no switch, "
        "GPU or network card was involved.",
        facts=[*_facts(experiment, emulation, learn=learn), *emulation.facts()],
        command=_command(experiment, fabric, rate, out, learn=learn),
        config=experiment.describe(),
        remarks=emulation.remarks(),
        repeatable="The same seeds give the same traffic; the times are measured, and scatter.",
    )
    write(folder, emulation, story)
    _present(emulation, out, as_json=as_json)
    return 1 if emulation.wrongs else 0


def _keep_logs(directory: Path, logs: Path) -> None:
    """What the agents have said, which would end with the lab."""
    logs.mkdir(exist_ok=True)
    for log in directory.glob("*.log"):
        shutil.copy(log, logs)


def _present(emulation: Emulation, out: Path, *, as_json: bool) -> None:
    runs = emulation.runs
    if as_json:
        print_json(
            {
                "out": str(out),
                "report": str(out / REPORT),
                "engine": "emulated",
                **as_object(emulation),
                "results": [*runs.rows(), *emulation.twin.rows()],
                "config": runs.config,
            }
        )
        return
    print_table(
        f"The paper's workload, emulated ({seed_text(len(runs.seeds))})",
        headings(runs),
        table_rows(runs, joint="  " if Console().width >= WIDE else "\n"),
        caption="With each time: by how many % it differs from ECMP on the same traffic.",
    )
    for sentence in (*beside_sentences(runs, emulation.twin), emulation.verdict(), emulation.cpu()):
        print(f"- {sentence}")
    for remark in emulation.remarks():
        note(f"Note: {remark}")
    print(f"\nReport: {out / REPORT}")


def _facts(experiment: LabExperiment, emulation: Emulation, *, learn: bool) -> list[tuple[str, str]]:
    fabric, runs = experiment.fabric, emulation.runs
    sizes = experiment.traffic(experiment.qps[0], experiment.seeds[0]).flows.size_bytes
    links = sorted({link.rate_bps for link in fabric.lab.links})
    traffic = (
        f"{experiment.workload.requests} requests a run; transfers of {format_size(sizes.mean())} on "
        f"average, sent as {format_size(fabric.sizes(sizes).mean())}, each over a TCP connection of its "
        "own from a random prefill host to a random decode host"
    )
    network = (
        f"{fabric.lab.name}: {len(fabric.lab.hosts)} hosts and {len(fabric.lab.switches)} switches as "
        f"network namespaces, links of {' and '.join(format_rate(rate) for rate in links)} "
        f"(token buckets), rates and sizes divided by {float(fabric.factor):g}"
    )
    knowing = (
        "source ports learned by probes, the hash seeds are not known to agents"
        if learn
        else "source ports by the exact hash of the switches"
    )
    return [
        ("Traffic", traffic),
        ("Load", "; ".join(point_name(point, runs.load(point)) for point in runs.points)),
        ("Fabric", network),
        ("Seeds", f"{seed_text(len(runs.seeds))}; all schemes see the same traffic at one load and seed"),
        ("Control plane", f"one agent a host over a management network of its own; {knowing}"),
    ]


def _command(experiment: LabExperiment, fabric: Path | None, rate: str, out: Path, *, learn: bool) -> str:
    words = ["ark", "lab", "run", "--schemes", ",".join(experiment.schemes), "--qps", listed(experiment.qps)]
    words += ["--requests", str(experiment.workload.requests), "--seeds", str(len(experiment.seeds))]
    words += ["--learn"] if learn else []
    words += [] if fabric is None else ["--fabric", str(fabric)]
    return shlex.join([*words, "--rate", rate, "--out", str(out)])
