"""What the lab can build: fabrics that are small enough, of one address family, with one port a host."""

import re
from ipaddress import ip_address
from typing import Final

from ark.errors import ConfigError
from ark.fabric import Fabric

NODES_MAX: Final = 256
"""Namespaces of one fabric; each costs some MB of kernel memory and 10 ms to make."""

MANAGEMENT: Final = "mgmt"
"""Name of the management network's bridge among the namespaces, and of the hosts' interfaces to it."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def refuse_unbuildable(fabric: Fabric) -> None:
    """Refuse a fabric that the lab cannot build.

    Raises
    ------
    ConfigError
        With what is in the way.
    """
    nodes = [nic.name for nic in fabric.nics] + [switch.name for switch in fabric.switches]
    if len(nodes) > NODES_MAX:
        raise ConfigError(f"{fabric.name}: has {len(nodes)} hosts and switches; the lab builds {NODES_MAX}")
    for name in nodes:
        if name == MANAGEMENT:
            raise ConfigError(f'{fabric.name}: "{name}" is the lab\'s own network; name the node otherwise')
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f'{fabric.name}: "{name}" is no name of a namespace; use letters, digits, _ . -'
            )
    for host in fabric.hosts:
        if len(host.nics) != 1 or len(fabric.ports(host.nics[0])) != 1:
            raise ConfigError(f"{fabric.name}: {host.name} has several ports; the lab gives a host one")
    if any(link.lag for link in fabric.links):
        raise ConfigError(f"{fabric.name}: has a LAG; the lab builds parallel links as next hops only")
    if len({ip_address(nic.address).version for nic in fabric.nics}) != 1:
        raise ConfigError(f"{fabric.name}: has IPv4 and IPv6 hosts; the lab builds one family at a time")
