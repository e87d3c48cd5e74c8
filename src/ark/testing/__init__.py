"""A cluster without machines: real controllers on a simulated network, with simulated clocks, in virtual
time.

For tests of ARK itself and of what is built on it. Everything that happens follows from one seed; a schedule
of faults that breaks an invariant can be run again, and is shrunk to the few faults that matter. No sockets,
no threads, no real time. It says nothing about speed: that is for the lab and the benchmarks.
"""

from ark.testing.cluster import Cluster, Setting
from ark.testing.invariants import Violation
from ark.testing.network import SimulatedNetwork
from ark.testing.schedule import Fault, Schedule, Transfer, random_schedule
from ark.testing.shrink import Failure, run, shrink

__all__ = [
    "Cluster",
    "Failure",
    "Fault",
    "Schedule",
    "Setting",
    "SimulatedNetwork",
    "Transfer",
    "Violation",
    "random_schedule",
    "run",
    "shrink",
]
