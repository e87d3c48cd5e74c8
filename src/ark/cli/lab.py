"""``ark lab``: a real fabric out of network namespaces, with real agents, on this machine."""

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import cyclopts
from cyclopts import Parameter

from ark.cli.flags import count, fabric_of
from ark.cli.output import note, print_json
from ark.errors import ConfigError, LabError
from ark.fabric.nearest import nearest
from ark.lab.directory import BASE, UP, is_alive, names, read_note
from ark.lab.namespaces import inside, names_with
from ark.lab.sweep import sweep
from ark.units import parse_rate

if TYPE_CHECKING:
    from ark.lab.scaled import Scaled

RATE: Final = "100 Mbit/s"
HASH_SEED_MAX: Final = 2**32 - 1
RATE_MIN_BPS, RATE_MAX_BPS = 10**6, 10**10
DOWN_S: Final = 30.0
POLL_S: Final = 0.1

app: Final = cyclopts.App(
    name="lab", help="Build a real fabric out of network namespaces, with real agents, and measure in it."
)
app.command(
    "ark.cli.lab_run:app", name="run", help="Run the paper's workload with real bytes, and compare schemes."
)

FabricFile = Annotated[
    Path | None, Parameter(help="Fabric file (TOML). Default: the paper's, 2 leaves x 4 spines x 8 hosts.")
]
Rate = Annotated[str, Parameter(help="Rate of the hosts' links; all others and all sizes keep proportion.")]
HashSeed = Annotated[int, Parameter(help="The switches' hash seeds follow from it.")]
Json = Annotated[bool, Parameter(help="Print one JSON object.", negative=())]


@app.command
def up(
    *,
    fabric: FabricFile = None,
    rate: Rate = RATE,
    hash_seed: HashSeed = 1,
    policy: Annotated[
        Literal["ark", "paper", "none"], Parameter(help="What the agents run; none starts no agents.")
    ] = "ark",
) -> None:
    """Build the fabric, start an agent on every host, and keep all of it until Ctrl-C or `ark lab down`.

    Meanwhile `ark lab shell h0` opens a shell on a host, where `ark status` and your own programs work.
    """
    from ark.lab.lab import lab  # noqa: PLC0415 - NumPy and more, which --help does without

    chosen = scaled_fabric(fabric, rate, hash_seed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `ark lab down` ends it in order
    with lab(chosen.lab, name=UP) as built:
        if policy != "none":
            note(f"starting {len(built.agents.hosts)} agents …")
            built.agents.start(policy)
            built.agents.wait()
        print(f"{chosen.lab.name} is up: {len(chosen.lab.hosts)} hosts, {len(chosen.lab.switches)} switches")
        for nic in chosen.lab.nics:
            print(f"  {nic.name:<8}{nic.address:<18}management {built.management.addresses[nic.host]}")
        print(f"Configurations and logs: {built.directory}")
        print("A shell on a host: ark lab shell h0. Ctrl-C or ark lab down ends it.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            note("ending …")


@app.command
def down(*, json: Json = False) -> None:
    """End the lab of `ark lab up`, and remove what labs that were killed have left."""
    ended = []
    for name in dict.fromkeys([UP, *names()]):
        found = read_note(name)
        if found is not None and is_alive(name):
            if name != UP:
                continue  # a run that goes on is its own
            os.kill(found.process, signal.SIGTERM)
            _wait_for_end(name)
        elif not (names_with(f"{name}-") or name in names()):
            continue
        sweep(f"{name}-", BASE / name)
        ended.append(name)
    if json:
        print_json({"ended": ended})
    else:
        print("\n".join(f"{name} is gone" for name in ended) or "no lab is up")


@app.command
def shell(
    node: Annotated[str, Parameter(help="A host or switch, such as h0, leaf1 or spine3.")],
    *command: Annotated[str, Parameter(help="A command in place of a shell.", allow_leading_hyphen=True)],
) -> None:
    """Open a shell (or run a command) in the network of one host or switch of the lab that is up.

    ARK_SOCKET is set: `ark status`, `ark top` and programs that use ARK ask the agent of that host.
    """
    name = _living()
    found = read_note(name)
    nodes = () if found is None else found.nodes
    if node not in nodes:
        raise ConfigError(nearest(node, nodes, "host or switch", f"{name} has"))
    words = list(command) or [os.environ.get("SHELL") or "/bin/sh"]
    with inside(f"{name}-{node}"):
        environment = os.environ | {
            "ARK_SOCKET": str(BASE / name / f"{node}.sock"),
            "PS1": f"{node}# ",
        }
        try:
            os.execvpe(words[0], words, environment)  # noqa: S606 - what the user asked for
        except OSError as error:
            raise LabError(f"cannot run {words[0]}: {error.strerror}") from None


def scaled_fabric(path: Path | None, rate: str, hash_seed: int) -> "Scaled":
    """The fabric of the flags, in full size and as the lab runs it.

    Raises
    ------
    ConfigError
        If a flag is wrong.
    """
    from ark.lab.scaled import scaled  # noqa: PLC0415 - NumPy, which --help does without

    try:
        rate_bps = parse_rate(rate)
    except ConfigError as error:
        raise ConfigError(f"--rate: {error}") from None
    if not RATE_MIN_BPS <= rate_bps <= RATE_MAX_BPS:
        raise ConfigError(f"--rate: {rate} is not allowed; give 1 Mbit/s to 10 Gbit/s")
    return scaled(fabric_of(path), rate_bps, hash_seed=count("--hash-seed", hash_seed, HASH_SEED_MAX))


def _living() -> str:
    """The lab that is meant: that of `ark lab up`, else the only run that goes on."""
    alive = [name for name in names() if is_alive(name)]
    if UP in alive:
        return UP
    if not alive:
        raise LabError("no lab is up; build one with: sudo ark lab up")
    return alive[-1]


def _wait_for_end(name: str) -> None:
    end_s = time.monotonic() + DOWN_S
    while is_alive(name):
        if time.monotonic() > end_s:
            raise LabError(f"{name} does not end; its process is in {BASE / name}/lab.json")
        time.sleep(POLL_S)
