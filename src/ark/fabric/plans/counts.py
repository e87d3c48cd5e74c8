"""Bounds on the counts of a generated fabric, checked before anything of it is built."""

from ark.errors import ConfigError, Fault
from ark.fabric.blueprint import CABLES_MAX, HOSTS_MAX, NICS_MAX, SWITCHES_MAX
from ark.fabric.switch_graph import PATHS_MAX

PARALLEL_MAX = 64
"""The most parallel links between two switches: as many as a switch has ports."""

MOST = {
    "hosts": HOSTS_MAX,
    "switches": SWITCHES_MAX,
    "links": CABLES_MAX,
    "paths": PATHS_MAX,
}


def check_counts(nics_per_host: int, least: int = 1, **counts: int) -> None:
    """Refuse a count that is below ``least`` or absurdly large; the faults name the count."""
    faults = [
        Fault(name, f"{value:,} is out of bounds; allowed are {least:,} to {HOSTS_MAX:,}")
        for name, value in counts.items()
        if not least <= value <= HOSTS_MAX
    ]
    if not 1 <= nics_per_host <= NICS_MAX:
        faults.append(
            Fault("nics_per_host", f"{nics_per_host:,} is out of bounds; allowed are 1 to {NICS_MAX}")
        )
    if faults:
        raise ConfigError(*faults)


def check_totals(**totals: int) -> None:
    """Refuse a size that counts in bounds add up to: of hosts, switches, links or paths of a pair."""
    faults = [
        f"these counts make {total:,} {what}; at most {MOST[what]:,} are allowed"
        for what, total in totals.items()
        if total > MOST[what]
    ]
    if faults:
        raise ConfigError(*faults)
