"""A whole lab: the fabric with its rates, the management network, and room for agents and movers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ark.fabric import Fabric
from ark.lab.agents import Agents
from ark.lab.buildable import MANAGEMENT
from ark.lab.clos import Clos, clos, require_rights
from ark.lab.crew import Crew
from ark.lab.directory import make
from ark.lab.management import Management
from ark.lab.needs import needs
from ark.lab.shaping import Shape, shape, shape_for

NICE: Final = -10
"""Priority of the lab's processes: each host of a real fabric has cores of its own, so that whatever else
this machine does must not delay them."""


@dataclass(frozen=True)
class Lab:
    """What runs; made by ``lab``."""

    name: str
    made: Clos
    management: Management
    agents: Agents
    crew: Crew
    directory: Path
    constants: Shape


@contextmanager
def lab(fabric: Fabric, *, name: str) -> Iterator[Lab]:
    """Build a lab, without agents and movers yet; all of it is gone at the end, however that comes.

    Parameters
    ----------
    fabric
        With the rates that the links are to have (``ark.lab.scaled``).
    name
        What the names of its namespaces start with, and of its run directory.

    Raises
    ------
    LabError
        If root, pyroute2 or a feature of the kernel is missing, or a lab of that name is up.
    ConfigError
        If the lab cannot build such a fabric.
    """
    require_rights()
    constants = shape_for(max(fabric.links[fabric.ports(nic)[0][0]].rate_bps for nic in fabric.nics))
    nodes = (*(nic.name for nic in fabric.nics), *(switch.name for switch in fabric.switches), MANAGEMENT)
    built = Clos(fabric, name)  # refuses what can't be built before anything is made
    directory = make(name, nodes)
    with clos(built.fabric, prefix=name, directory=directory) as made, _first_in_line():
        management = Management(made)
        with needs("a bridge", "CONFIG_BRIDGE"):
            management.build()
        with needs("token buckets", "CONFIG_NET_SCH_TBF"):
            shape(made, constants)
        agents = Agents(made, management, directory)
        crew = Crew(made, agents, window_bytes=constants.window_bytes)
        try:
            yield Lab(name, made, management, agents, crew, directory, constants)
        finally:
            crew.stop()
            agents.stop()
            management.close()


@contextmanager
def _first_in_line() -> Iterator[None]:
    """Raise the priority of the calling thread, which those that it starts inherit."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):  # root of a container may not
        os.setpriority(os.PRIO_PROCESS, 0, min(before, NICE))
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
