"""What ``ark simulate`` is asked to carry: requests of a file or by a name, or a table of transfers."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ark.cli.flags import count, numbers, positive
from ark.errors import ConfigError
from ark.fabric import Fabric
from ark.fabric.nearest import nearest
from ark.sim.traffic import FlowWorkload, PresetWorkload, TraceWorkload, Workload
from ark.workload.arrivals import Arrivals, parse_arrivals
from ark.workload.flow_file import read_flows
from ark.workload.paper import REQUESTS_MAX
from ark.workload.presets import preset_names, preset_qps
from ark.workload.traces import load_requests

REQUESTS: Final = 1000
"""Requests of a workload by name; a trace file has all of its own."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The flags that say what is carried, as they were given."""

    trace: str | None
    flows: Path | None
    qps: str | None
    time_scale: float | None
    requests: int | None
    form: str | None
    arrivals: str | None
    jitter: bool
    prefix_reuse: bool

    @property
    def is_named(self) -> bool:
        """Whether the trace is one by name; a file of that name goes first."""
        return self.trace in preset_names() and not Path(self.trace or "").exists()

    @property
    def name(self) -> str:
        """The traffic for a title."""
        if self.is_named:
            return f"the workload {self.trace}"
        return Path(self.trace or self.flows or "").name

    def words(self) -> list[str]:
        """These flags once more, but for the QPS."""
        words = ["--trace", self.trace] if self.trace is not None else ["--flows", str(self.flows)]
        if self.time_scale is not None:
            words += ["--time-scale", repr(self.time_scale)]
        if self.requests is not None and not self.is_named:
            words += ["--requests", str(self.requests)]
        if self.form is not None:
            words += ["--format", self.form]
        if self.arrivals is not None:
            words += ["--arrivals", self.arrivals]
        return [*words, *["--jitter"] * self.jitter, *["--prefix-reuse"] * self.prefix_reuse]


def workload_of(asked: Asked, fabric: Fabric) -> Workload:
    """The requests or transfers themselves.

    Raises
    ------
    ConfigError
        If neither or both are given, a flag does not go with them, or the file is no such file.
    """
    if (asked.trace is None) == (asked.flows is None):
        both = "neither is given" if asked.flows is None else "both are given"
        raise ConfigError(f"--trace, --flows: {both}; give the requests or the transfers to simulate")
    if asked.flows is not None:
        _refuse(asked, "a table of transfers has times of its own; leave it out")
        return FlowWorkload(read_flows(asked.flows, nics={nic.name for nic in fabric.nics}))
    if asked.qps is not None and asked.time_scale is not None:
        raise ConfigError("--qps and --time-scale both set the rate; give one of them")
    requests = None if asked.requests is None else count("--requests", asked.requests, REQUESTS_MAX)
    scale = None if asked.time_scale is None else positive("--time-scale", asked.time_scale)
    trace = asked.trace or ""
    if asked.is_named:
        _refuse_file_flags(asked)
        return PresetWorkload(trace, requests or REQUESTS, _arrivals(asked.arrivals))
    if not trace:
        raise ConfigError(f"--trace: is empty; give a file, or one of {', '.join(preset_names())}")
    # Path.exists raises where a name is too long or a folder is closed to us; the reader says that better.
    if not os.path.exists(trace) and not {"/", "."} & set(trace):  # noqa: PTH110
        raise ConfigError(
            f"--trace: no such file, and {nearest(trace, preset_names(), 'workload', 'there are')}"
        )
    if asked.arrivals is not None:
        raise ConfigError(f"--arrivals: {_ONLY_NAMED}")
    return TraceWorkload(
        load_requests(
            trace,
            format=asked.form,
            limit=requests,
            jitter=asked.jitter,
            prefix_reuse=asked.prefix_reuse,
            time_scale=scale,
        )
    )


def points_of(asked: Asked, workload: Workload) -> tuple[float, ...] | None:
    """The requests per second of each point; None for the times that the traffic has."""
    if asked.qps is not None:
        return tuple(sorted(numbers("--qps", asked.qps)))
    if isinstance(workload, PresetWorkload) and asked.time_scale is not None:
        return (preset_qps(workload.name) / asked.time_scale,)
    return None


def _arrivals(text: str | None) -> Arrivals | None:
    if text is None:
        return None
    try:
        return parse_arrivals(text)
    except ConfigError as error:
        raise ConfigError(f"--arrivals: {error}") from None


_ONLY_NAMED: Final = "a file has arrival times of its own; only a workload by name takes this"


def _refuse(asked: Asked, why: str) -> None:
    flags = {"--qps": asked.qps, "--time-scale": asked.time_scale, "--requests": asked.requests}
    for flag, value in flags.items():
        if value is not None:
            raise ConfigError(f"{flag}: {why}")
    if asked.arrivals is not None:
        raise ConfigError(f"--arrivals: {_ONLY_NAMED}")
    _refuse_file_flags(asked)


def _refuse_file_flags(asked: Asked) -> None:
    for flag, given in {
        "--format": asked.form is not None,
        "--jitter": asked.jitter,
        "--prefix-reuse": asked.prefix_reuse,
    }.items():
        if given:
            raise ConfigError(f"{flag}: only a trace file has that; leave it out")
