"""Compile the preload library by hand; says where it is, or in one line why it is not."""

import sys

from ark.integrations.preload import NotBuiltError, build

try:
    print(build())  # noqa: T201 - a command
except NotBuiltError as error:
    print(f"ark run will not be able to steer: {error}", file=sys.stderr)  # noqa: T201 - a command
