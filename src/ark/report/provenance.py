"""What a result was made with: versions and machine, so that it can be made again."""

import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from ark import __version__

PACKAGES: Final = ("numpy", "numba", "llvmlite", "msgspec", "polars", "matplotlib", "jinja2")
"""The packages whose version can change a number or a figure."""


def provenance() -> dict[str, object]:
    """Versions, platform, and the time."""
    return {
        "ark": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": f"{platform.machine()} {sys.platform}",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
