"""What ``ark lab run --fault`` does and prints."""

from ark.cli.flags import names
from ark.cli.output import note, print_json, print_table, progress
from ark.errors import ConfigError
from ark.fabric.nearest import nearest
from ark.lab import learning
from ark.lab.directory import name_of_run
from ark.lab.experiment import LabExperiment
from ark.lab.faults import FaultRun, fault_runs
from ark.lab.lab import lab
from ark.lab.outcome import Emulated
from ark.lab.run import run_fault
from ark.units import format_time

ALL = "all"


def run_faults(experiment: LabExperiment, text: str, *, learn: bool, as_json: bool) -> int:
    """Run under ark while something breaks, once a fault, and say what held.

    With ``learn`` ports are learned by probes, and watched by them while something breaks.

    Raises
    ------
    ConfigError
        If there is no such fault.
    """
    chosen = _chosen(experiment, text)
    rows: list[dict[str, object]] = []
    fabric = experiment.fabric.lab
    note(f"building {experiment.fabric.lab.name}: {len(experiment.fabric.lab.hosts)} hosts …")
    with (
        lab(experiment.fabric.lab, name=name_of_run()) as built,
        progress(len(chosen), "Fault runs") as advance,
    ):
        built.crew.start()
        if learn:
            learning.learn(built, dict.fromkeys(fabric.prefill, fabric.decode))
        with learning.watching(built, fabric.prefill if learn else ()):
            for fault in chosen:
                rows.append(_row(fault, run_fault(built, experiment, fault, learned=learn)))
                advance(fault.name)
    held = all(row["held"] for row in rows)
    if as_json:
        print_json({"engine": "emulated", "held": held, "results": rows})
    else:
        _show(rows, held=held)
    return 0 if held else 1


def _chosen(experiment: LabExperiment, text: str) -> list[FaultRun]:
    known = fault_runs(experiment.fabric.lab)
    wanted = list(known) if text == ALL else list(names(text))
    for name in wanted:
        if name not in known:
            raise ConfigError(f"--fault: {nearest(name, known, 'fault', 'there are')}, or {ALL}")
    return [known[name] for name in wanted]


def _row(fault: FaultRun, one: Emulated) -> dict[str, object]:
    """What must hold: bytes and claims always; paths unless the fault takes links away."""
    wrongs = [*one.failed, *([one.unsettled] if one.unsettled else [])]
    if not fault.lost:
        wrongs = one.wrongs()
    if one.relearned is not None:
        wrongs += one.relearned.wrongs()
    row = one.result.row()
    return {
        "fault": fault.name,
        "what": fault.what,
        "held": not wrongs,
        "wrongs": wrongs,
        "transfers": one.result.requests,
        "failed": len(one.failed),
        "kinds": one.kinds,
        "elsewhere_share": one.elsewhere_share,
        "retransmits": one.retransmits,
        "fct_mean_s": row["fct_mean_s"],
        "fct_p95_s": row["fct_p95_s"],
        "busy_share": one.busy.busy_share,
        "spoiled": one.spoiled,
        "relearned": None if one.relearned is None else one.relearned.row(),
        "remark": "" if one.relearned is None else one.relearned.sentence(),
    }


def _show(rows: list[dict[str, object]], *, held: bool) -> None:
    cells = [
        [
            row["fault"],
            f"{row['transfers']} of {row['transfers']}"
            if not row["failed"]
            else f"{row['failed']} of {row['transfers']} failed",
            _kinds(row["kinds"]),
            format_time(_number(row["fct_mean_s"])),
            f"{_number(row['busy_share']):.0%}",
            "held" if row["held"] else "NOT HELD",
        ]
        for row in rows
    ]
    print_table(
        "Fault runs under ark, emulated",
        ["fault", "right", "answers", "mean FCT", "CPU", "verdict"],
        cells,
        caption="Held: every transfer whole and right, all agents' tables equal, no claim left.",
    )
    for row in rows:
        if row["remark"]:
            print(f"- {row['fault']}: {row['remark']}.")
        wrongs = row["wrongs"]
        assert isinstance(wrongs, list)
        for wrong in wrongs:
            note(f"{row['fault']}: {wrong}")
    print("All held." if held else "Not all held.")


def _kinds(kinds: object) -> str:
    assert isinstance(kinds, dict)
    return ", ".join(f"{count} {kind.partition(':')[0]}" for kind, count in kinds.items())


def _number(cell: object) -> float:
    assert isinstance(cell, int | float)
    return float(cell)
