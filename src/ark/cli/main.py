"""The ``ark`` command itself: its subcommands by name, and the one place where errors become exit codes.

Exit codes: 0 ok, 1 the work failed, 2 bad input or usage (one clear line on stderr, never a traceback).
"""

import sys
from typing import Final

import cyclopts

from ark import __version__
from ark.errors import ArkError, ConfigError

app: Final = cyclopts.App(
    name="ark",
    help="Keep KV-cache transfers of disaggregated LLM inference off each other's links.",
    version=__version__,
)


def main() -> None:
    """Run the ``ark`` command and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; errors of ours become one clear line on stderr."""
    try:
        result = app(arguments, exit_on_error=False, print_error=False)
    except cyclopts.CycloptsError as error:
        print(f"ark: {error}", file=sys.stderr)
        return 2
    except ConfigError as error:
        print(f"ark: {error}", file=sys.stderr)
        return 2
    except ArkError as error:
        print(f"ark: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("ark: interrupted", file=sys.stderr)
        return 130
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    main()
