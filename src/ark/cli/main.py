"""The ``ark`` command itself: its subcommands by name, and the one place where errors become exit codes.

Exit codes: 0 ok, 1 the work failed, 2 bad input or usage (one clear line on stderr, never a traceback). Each
subcommand is a module of its own and is imported when it is called: ``ark --help`` loads no NumPy.
"""

import os
import sys
from difflib import get_close_matches
from io import TextIOWrapper
from typing import Final

import cyclopts

from ark import __version__
from ark.errors import ArkError, ConfigError

COMMANDS: Final = {
    "reproduce": "Repeat the paper's experiment: figures 2 to 4, table 1, and whether its claims hold.",
    "simulate": "Say what ARK would gain on your own requests, transfers and fabric.",
    "models": "List the models whose KV cache is known, or the latency presets.",
    "path": "Predict, pick and map the paths that source ports lead to.",
    "discover": "Learn on the live fabric which source ports lead to which path.",
    "fabric": "Check a fabric file, show what it means, or print its schema.",
    "lab": "Build a real fabric out of network namespaces, with real agents, and measure in it.",
    "agent": "Run this host's agent, or check its configuration.",
    "run": "Start a program unchanged, with its connections steered.",
    "status": "Show what this host's agent knows: peers, transfers, reservations, links.",
    "top": "Show switches, links and transfers of this host's agent live.",
    "bench": "Measure what ARK costs here; a running agent is asked for 2,000 reservations.",
}
"""Every subcommand with the line that ``ark --help`` shows; the module ``ark.cli.NAME`` has its ``app``."""

RUN: Final = ("run",)
"""The command that starts a program, whose options could be taken for its own."""

SIM_MODULES: Final = frozenset({"jinja2", "matplotlib", "numba", "polars"})
"""What the extra ``sim`` brings; a GPU host does without it."""

app: Final = cyclopts.App(
    name="ark",
    help="Keep KV-cache transfers of disaggregated LLM inference off each other's links.",
    version=__version__,
    result_action="return_value",  # the default ends the process, inside of whoever calls run()
)
for _name, _help in COMMANDS.items():
    app.command(f"ark.cli.{_name}:app", name=_name, help=_help)


def main() -> None:
    """Run the ``ark`` command and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Tables and JSON are UTF-8 wherever they go, and no locale or odd file name may stop a print.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; errors of ours become one clear line on stderr."""
    try:
        result = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone; stdout must not complain once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ArkError, cyclopts.CycloptsError, ImportError, KeyboardInterrupt, OSError) as error:
        code, what = _explain(error)
        print(f"ark: {what}", file=sys.stderr)
        return code
    return result if isinstance(result, int) else 0


def _explain(error: BaseException) -> tuple[int, str]:
    """Exit code and text of an error; one that is a fault of this program is raised again."""
    match error:
        case cyclopts.UnknownCommandError():
            code, what = 2, _unknown_command(error)
        case cyclopts.CycloptsError():
            code, what = 2, _usage(error)
        case ConfigError():
            code, what = 2, str(error)
        case KeyboardInterrupt():
            code, what = 130, "interrupted"
        case OSError():
            code, what = 1, f"{error.filename or 'the system'}: {error.strerror or error}"
        case ImportError():
            code, what = 1, _missing_module(error)
        case _:
            code, what = 1, str(error)
    return code, what


def _usage(error: cyclopts.CycloptsError) -> str:
    """What Cyclopts says, on one line and in the form of our own messages."""
    text = " ".join(str(error).split())
    text = text[:1].lower() + text[1:]
    if isinstance(error, cyclopts.UnknownOptionError) and tuple(error.command_chain or ()) == RUN:
        text = f"{text.rstrip('.')}; if it is one of the program's, write -- before the program"
    return text


def _missing_module(error: ImportError) -> str:
    missing = error.__cause__ if isinstance(error.__cause__, ImportError) else error  # of a lazy subcommand
    name = (missing.name or "").partition(".")[0]
    if not isinstance(missing, ModuleNotFoundError) or name not in SIM_MODULES:
        raise error
    return f'this needs {name}, which is not installed; run: pip install "ark-kv[sim]"'


def _unknown_command(error: cyclopts.UnknownCommandError) -> str:
    """Our own text: that of Cyclopts imports every subcommand to see whether it is hidden."""
    given = (error.unused_tokens or ["?"])[0]
    if error.command_chain:
        return _usage(error)
    if given.startswith("-"):
        return f"unknown option {given}; options stand behind a command, see: ark --help"
    near = get_close_matches(given, COMMANDS, n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"there are {', '.join(COMMANDS)}"
    return f'unknown command "{given}"; {hint}'


if __name__ == "__main__":
    main()
