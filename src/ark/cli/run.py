"""``ark run``: start a program unchanged, its connections steered by a library put in front of its calls."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import cyclopts
from cyclopts import Parameter

from ark.cli.output import note, print_json
from ark.client import Client
from ark.client.messages import BYTES_MAX
from ark.client.session import socket_path
from ark.errors import AgentUnavailable, ConfigError, Fault
from ark.integrations.preload import LIBRARY, VERBS_LIBRARY
from ark.units import parse_size, parse_time, quoted

app: Final = cyclopts.App(name="run", usage="Usage: ark run [OPTIONS] -- COMMAND ...")

NS_PER_MS: Final = 1_000_000

WAIT_MAX_NS: Final = 10_000 * NS_PER_MS
"""Longest that a connection may be kept waiting for an answer."""

SOCKET_MAX: Final = 107
"""Bytes of a Unix socket's name. Source: Linux, include/uapi/linux/un.h, less the final zero."""

NOT_BUILT: Final = (
    "the preload library is not built, so nothing is steered; with a C compiler run: "
    "python -m ark.integrations.preload"
)

SEPARATORS: Final = frozenset(": \t\n")
"""What separates the names in LD_PRELOAD. Source: ld.so(8)."""

STEERED: Final = (
    ("connect()", "TCP: the source port"),
    ("ibv_modify_qp()", "RoCE: the flow label, when a queue pair becomes ready to receive"),
    ("mlx5dv_devx_obj_modify()", "RoCE by UCX on NVIDIA NICs: the UDP source port in the firmware command"),
)

ESCAPES: Final = (
    ("NCCL", f"NCCL_IBVERBS_LIB={VERBS_LIBRARY}", "it opens libibverbs itself; this stands in for it"),
    ("UCX, RoCE", "UCX_TLS=rc,tcp", "DC and UD queue pairs choose their port for each message"),
    ("UCX, TCP", "UCX_TCP_EP_BIND_SRC_ADDR=n", "only if your UCX asks for the port before it connects"),
    ("Mooncake, RDMA", "MC_USE_TENT=0", "its engine TENT opens libibverbs itself"),
    ("Mooncake, TCP", "MC_TCP_LANES_PER_PEER=N", "N = number of paths: a connection on each; by default 4"),
)


@app.default
def run(
    *command: Annotated[str, Parameter(show=False)],
    explain: Annotated[
        bool, Parameter(help="Say what would be steered, and start nothing.", negative=())
    ] = False,
    socket: Annotated[
        Path | None, Parameter(help="The agent's socket; by default $ARK_SOCKET or the usual one.")
    ] = None,
    size: Annotated[
        str | None,
        Parameter(help='Take each connection for one transfer of about this size, as "1 GiB"; else a lane.'),
    ] = None,
    wait: Annotated[str, Parameter(help="How long a connection waits for the agent's answer.")] = "20ms",
    log: Annotated[Path | None, Parameter(help="Append one line a connection to this file.")] = None,
    json: Annotated[bool, Parameter(help="Print one JSON object (with --explain).", negative=())] = False,
) -> None:
    """Start COMMAND with its connections over paths that this host's agent chooses: ark run -- COMMAND ...

    It takes the place of this process: signals and exit code are its own. Without an agent it runs as it does
    without ARK. ARK_RUN=off, or a file named as the agent's socket with .off behind, turns steering off.
    """
    settings = _settings(socket, size, wait, log)
    if explain:
        _explain(settings, as_json=json)
        return
    if not command:
        raise ConfigError(Fault("command", "is missing; write: ark run -- COMMAND ..."))
    missing = _missing()
    if not missing:
        before = os.environ.get("LD_PRELOAD", "")
        settings["LD_PRELOAD"] = f"{LIBRARY}:{before}" if before else str(LIBRARY)
    else:
        note(missing)
    try:
        os.execvpe(command[0], command, os.environ | settings)  # noqa: S606 - what the command is for
    except OSError as error:
        raise ConfigError(Fault(command[0], f"cannot be started: {error.strerror}")) from None


def _settings(socket: Path | None, size: str | None, wait: str, log: Path | None) -> dict[str, str]:
    """What the library reads, as environment variables; all faults at once."""
    where = str(Path(socket_path(socket)).absolute())
    found = {"ARK_SOCKET": where}
    faults: list[Fault] = []
    if len(os.fsencode(where)) > SOCKET_MAX:
        faults.append(Fault("--socket", f"{where}: is longer than the {SOCKET_MAX} bytes that Unix allows"))
    if size is not None:
        size_bytes = _read("--size", parse_size, size, (1, BYTES_MAX), "1 B to 1 PiB", faults)
        found["ARK_RUN_SIZE"] = str(size_bytes)
    wait_ns = _read("--wait", parse_time, wait, (NS_PER_MS, WAIT_MAX_NS), "1ms to 10s", faults)
    found["ARK_RUN_WAIT_MS"] = str(wait_ns // NS_PER_MS)
    if log is not None:
        found["ARK_RUN_LOG"] = str(log.absolute())
    if faults:
        raise ConfigError(*faults)
    return found


def _read(
    flag: str,
    parse: Callable[[str], int],
    text: str,
    bounds: tuple[int, int],
    allowed: str,
    faults: list[Fault],
) -> int:
    """A flag's value; what is wrong with it goes to ``faults``."""
    try:
        value = parse(text)
    except ConfigError as error:
        faults.extend(Fault(flag, str(fault)) for fault in error.faults)
        return 0
    if not bounds[0] <= value <= bounds[1]:
        faults.append(Fault(flag, f"{quoted(text)}: allowed are {allowed}"))
    return value


def _explain(settings: dict[str, str], *, as_json: bool) -> None:
    socket = settings["ARK_SOCKET"]
    client = Client(socket)
    try:
        agent = f"answers as {client.status()['host']}"
    except AgentUnavailable:
        agent = "does not answer; programs run as they do without ARK"
    finally:
        client.close()
    state = _switched_off(socket) or _missing() or "on"
    if as_json:
        print_json(
            {
                "library": str(LIBRARY) if LIBRARY.exists() else None,
                "state": state,
                "socket": socket,
                "agent": agent,
                "environment": settings | {"LD_PRELOAD": str(LIBRARY)},
                "steered": [{"call": call, "what": what} for call, what in STEERED],
                "escapes": [{"program": a, "variable": b, "why": c} for a, b, c in ESCAPES],
            }
        )
        return
    print(f"Steering: {state}")
    print(f"Agent at {socket}: {agent}")
    print("\nSteered, where the agent knows the target:")
    for call, what in STEERED:
        print(f"  {call:<26}{what}")
    print("\nNot seen: static programs, Go, io_uring, functions got by dlsym, RTLD_DEEPBIND. What helps:")
    for program, variable, why in ESCAPES:
        print(f"  {program:<16}{variable}\n  {'':<16}{why}")
    print("\nThe program's environment:")
    for name, value in (settings | {"LD_PRELOAD": str(LIBRARY)}).items():
        print(f"  {name}={value}")


def _missing() -> str:
    """Why there is no library that a program could load; empty if there is one."""
    if not LIBRARY.exists():
        return NOT_BUILT
    if set(str(LIBRARY)) & SEPARATORS:
        return (
            f'the preload library is in "{LIBRARY.parent}", which LD_PRELOAD can\'t name for its '
            "spaces or colons, so nothing is steered; install ARK in another folder"
        )
    return ""


def _switched_off(socket: str) -> str:
    """Why steering is switched off; empty if it is not."""
    if os.environ.get("ARK_RUN") == "off":
        return "off, by ARK_RUN=off"
    if Path(f"{socket}.off").exists():
        return f"off, by the file {socket}.off"
    return ""
