"""``ark lab``: a real fabric out of network namespaces, with real agents, on this machine."""

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import cyclopts
from cyclopts import Parameter

from ark import __version__
from ark.cli.flags import count, fabric_of
from ark.cli.output import note, print_json
from ark.errors import ConfigError, LabError
from ark.fabric.nearest import nearest
from ark.lab.directory import BASE, PREFIX, UP, is_alive, names, read_note
from ark.lab.namespaces import inside, names_with
from ark.lab.sweep import sweep
from ark.units import parse_rate, quoted

if TYPE_CHECKING:
    from ark.lab.scaled import Scaled

RATE: Final = "100 Mbit/s"
HASH_SEED_MAX: Final = 2**32 - 1
RATE_MIN_BPS, RATE_MAX_BPS = 10**6, 10**10
_NAME: Final = re.compile(r"[A-Za-z0-9]{1,20}")
DOWN_S: Final = 30.0
POLL_S: Final = 0.1

app: Final = cyclopts.App(
    name="lab",
    help="Build a real fabric out of network namespaces, with real agents, and measure in it.",
    version=__version__,
)
app.command(
    "ark.cli.lab_run:app", name="run", help="Run the paper's workload with real bytes, and compare schemes."
)

FabricFile = Annotated[
    Path | None, Parameter(help="Fabric file (TOML). Default: the paper's, 2 leaves x 4 spines x 8 hosts.")
]
Rate = Annotated[str, Parameter(help="Rate of the hosts' links; all others and all sizes keep proportion.")]
HashSeed = Annotated[int, Parameter(help="The switches' hash seeds follow from it.")]
Name = Annotated[str, Parameter(help="Name of the lab: one machine can hold several.")]
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
    name: Name = UP,
) -> None:
    """Build the fabric, start an agent on every host, and keep all of it until Ctrl-C or `ark lab down`.

    Meanwhile `ark lab shell h0` opens a shell on a host, where `ark status` and your own programs work.
    """
    from ark.lab.lab import lab  # noqa: PLC0415 - NumPy and more, which --help does without

    chosen = scaled_fabric(fabric, rate, hash_seed)
    with lab(chosen.lab, name=_full(name)) as built:
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
            # `ark lab down` ends it in order. Not earlier: pyroute2 ends processes that it forks by SIGTERM.
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            signal.pause()
        except KeyboardInterrupt:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            note("ending …")


@app.command
def down(*, name: Name = UP, json: Json = False) -> None:
    """End the lab of `ark lab up`, and remove what labs that were killed have left."""
    ended = []
    for one in dict.fromkeys([_full(name), *names()]):
        found = read_note(one)
        if found is not None and is_alive(one):
            if one != _full(name):
                continue  # somebody else's
            os.kill(found.process, signal.SIGTERM)
            _wait_for_end(one)
        elif not (names_with(f"{one}-") or one in names()):
            continue
        sweep(f"{one}-", BASE / one)
        ended.append(one)
    if json:
        print_json({"ended": ended})
    else:
        print("\n".join(f"{one} is gone" for one in ended) or "no lab is up")


@app.command(version_flags=())
def shell(
    node: Annotated[str, Parameter(help="A host or switch, such as h0, leaf1 or spine3.")],
    *command: Annotated[str, Parameter(help="A command in place of a shell.", allow_leading_hyphen=True)],
    name: Name = UP,
) -> None:
    """Open a shell (or run a command) in the network of one host or switch of the lab that is up.

    ARK_SOCKET is set: `ark status`, `ark top` and programs that use ARK ask the agent of that host. `ark` and
    `python` are those that run this command. Write -- before a command that has --help or -- in itself.
    """
    one = _full(name)
    found = read_note(one)
    if found is None or not is_alive(one):
        raise LabError(f"no lab called {quoted(name)} is up; build one with: sudo ark lab up")
    if node not in found.nodes:
        raise ConfigError(nearest(node, found.nodes, "host or switch", f"{one} has"))
    words = list(command) or [os.environ.get("SHELL") or "/bin/sh"]
    with inside(f"{one}-{node}"):
        environment = os.environ | {
            "ARK_SOCKET": str(BASE / one / f"{node}.sock"),
            "PS1": f"{node}# ",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
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


def _full(name: str) -> str:
    """The name of a lab with what all have in front.

    Raises
    ------
    ConfigError
        If it could not stand in the name of a namespace.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"--name: {quoted(name)} is not allowed; give up to 20 letters and digits")
    return PREFIX + name


def _wait_for_end(name: str) -> None:
    end_s = time.monotonic() + DOWN_S
    while is_alive(name):
        if time.monotonic() > end_s:
            raise LabError(f"{name} does not end; its process is in {BASE / name}/lab.json")
        time.sleep(POLL_S)
