"""What ``ark lab run --mover mooncake`` does and prints."""

from dataclasses import asdict

from ark.cli.output import note, print_json, print_table, progress
from ark.fabric import Fabric
from ark.lab.directory import name_of_run
from ark.lab.lab import lab
from ark.lab.mooncake import CHOSEN_SHARE_MIN, Moved, move, require
from ark.lab.settle import settled


def run_mooncake(fabric: Fabric, writes: int, *, as_json: bool) -> int:
    """Write with Mooncake's engine, and say whether every write took the spine that was chosen."""
    require()
    moved: list[Moved] = []
    note(f"building {fabric.name}: {len(fabric.hosts)} hosts …")
    with lab(fabric, name=name_of_run()) as built, progress(writes, "Writing") as advance:
        built.agents.start("ark")
        built.agents.wait()
        for one in move(built, writes, seed=0):
            moved.append(one)
            advance(f"{one.source} to {one.target}")
        left = settled(built.agents)
    held = sum(one.held for one in moved)
    if as_json:
        results = [{**asdict(one), "held": one.held} for one in moved]
        print_json({"engine": "emulated", "held": held, "left": left, "results": results})
    else:
        _show(moved, held, left)
    return 0 if held == writes and not left else 1


def _show(moved: list[Moved], held: int, left: str) -> None:
    paths = sorted({one.path for one in moved if one.path is not None})
    rows = [
        [path, len(its), f"{100 * min(one.share for one in its):.3f} %"]
        for path in paths
        if (its := [one for one in moved if one.path == path])
    ]
    print_table("Mooncake's engine, emulated", ["path", "writes", "least share of bytes on it"], rows)
    for one in moved:
        if not one.held:
            note(
                f"write {one.transfer}, {one.source} to {one.target}: path {one.path}, {one.share:.1%} of "
                f"bytes there, bytes {'right' if one.right else 'WRONG'}"
            )
    if left:
        note(left)
    print(
        f"{held} of {len(moved)} writes were right and had {CHOSEN_SHARE_MIN:.0%} of their bytes on the path "
        f"that ARK chose; {left or 'no claim is left'}."
    )
