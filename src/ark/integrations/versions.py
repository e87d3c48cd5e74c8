"""Which versions of an engine an adapter knows, and the one line that it says about others.

An adapter relies on names inside of an engine. It was written against some versions of it; from any other it
stays away, and the engine runs as it does without ARK.
"""

import inspect
from collections.abc import Iterable, Sequence
from importlib import metadata
from typing import Any, Final

from ark.integrations.logs import log

KNOWN: Final[dict[str, tuple[str, ...]]] = {
    "lmcache": ("0.5.6",),
    "mooncake-transfer-engine": ("0.3.13",),
    "nixl": ("1.5",),
    "sglang": ("0.5.23",),
    "vllm": ("0.33",),
}
"""Release series that the adapters were written against; ``make test-contracts`` compares their source."""

DISTRIBUTIONS: Final[dict[str, tuple[str, ...]]] = {
    "mooncake-transfer-engine": tuple(
        f"mooncake-transfer-engine{build}"
        for build in (
            "",
            "-cuda13",
            "-non-cuda",
            "-rocm",
            "-musa",
            "-npu",
            "-efa",
            "-efa-cuda13",
            "-efa-non-cuda",
        )
    ),
    "nixl": ("nixl-cu12", "nixl-cu13", "nixl"),
}
"""Names under which an engine is installed, where there are several."""


def installed(engine: str) -> str | None:
    """The version of an engine that is installed; None if it is not."""
    for name in DISTRIBUTIONS.get(engine, (engine,)):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def complaint(engine: str, version: str | None) -> str | None:
    """Why an adapter stays away from this version of an engine; None if it knows it."""
    series = KNOWN[engine]
    if version is not None and any(_in_series(version, one) for one in series):
        return None
    found = "is not installed as a package" if version is None else f"{version} is not known to this ARK"
    return f"{engine} {found} (known: {', '.join(series)}); its transfers go on without ARK"


def _in_series(version: str, series: str) -> bool:
    rest = version.removeprefix(series)
    return rest != version and not rest[:1].isdigit()


def fits(owner: Any, name: str, parameters: Sequence[str]) -> str | None:
    """Why a function of an engine can't be hooked: it is gone, or takes other parameters; None if it can."""
    function = getattr(owner, name, None)
    place = f"{getattr(owner, '__qualname__', getattr(owner, '__name__', type(owner).__qualname__))}.{name}"
    if not callable(function):
        return f"{place} is gone; its transfers go on without ARK"
    found = list(inspect.signature(function).parameters)
    if found == list(parameters):
        return None
    return f"{place} takes {', '.join(found)}, not {', '.join(parameters)}; its transfers go on without ARK"


def stay_away(complaints: Iterable[str | None]) -> bool:
    """Whether there is a complaint; the first one is logged, in one line."""
    for one in complaints:
        if one is not None:
            log.warning("ark: %s", one)
            return True
    return False
