"""Load: what a workload asks of a fabric, as a share of what its prefill leaves can send up."""

from typing import Protocol

from ark.errors import ConfigError
from ark.units import NS_PER_S
from ark.workload.flows import Flows
from ark.workload.requests import mean_rate


class HasPrefillCapacity(Protocol):
    """A fabric, as far as load is concerned."""

    @property
    def prefill_capacity_bps(self) -> int:
        """Summed rate of the links up from the leaves that hold prefill hosts."""
        ...


def offered_load(flows: Flows, fabric: HasPrefillCapacity) -> float:
    """Offered KV bytes per second over the up-capacity of the leaves that hold prefill hosts.

    The rate is that of the flows' own start times (gaps, not events, are counted), their size the mean. 0 for
    fewer than two flows, infinite where all start at once.
    """
    if len(flows) < 2:
        return 0.0
    flows_per_s = mean_rate(flows.start_ns) * NS_PER_S
    return flows_per_s * float(flows.size_bytes.mean()) * 8 / fabric.prefill_capacity_bps


def qps_for_load(load: float, *, mean_size_bytes: float, fabric: HasPrefillCapacity) -> float:
    """Requests per second that offer ``load`` to the fabric, at one transfer of ``mean_size_bytes`` a
    request.

    Raises
    ------
    ConfigError
        If load or size is not a positive number.
    """
    if not 0 < load < float("inf"):
        raise ConfigError(f"load {load:g} is not a positive number; 0.5 is half the capacity")
    if not 0 < mean_size_bytes < float("inf"):
        raise ConfigError(f"mean transfer size {mean_size_bytes:g} B is not a positive number")
    return load * fabric.prefill_capacity_bps / (8 * mean_size_bytes)
