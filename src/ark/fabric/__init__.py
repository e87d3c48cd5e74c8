"""What the network is: topology, links, paths, ECMP hash functions, port ↔ path maps, RoCE port rules.

Pure: no sockets, clocks, threads, files or randomness. May import ``ark.units``, ``ark.errors``, msgspec and,
lazily, NumPy; nothing else of ARK.
"""

from ark.fabric.five_tuple import TCP, UDP, FiveTuple
from ark.fabric.generate import dual_plane, fat_tree, leaf_spine, paper_fabric
from ark.fabric.hash_spec import CrcParameters, HashSpec
from ark.fabric.load import load_fabric
from ark.fabric.parts import Attachment, Host, Link, Nic, Path, Switch
from ark.fabric.pathmap import ALL_PORTS, Influence, PathMap, path_map
from ark.fabric.route import route, route_ports
from ark.fabric.route_flows import route_flows
from ark.fabric.topology import Fabric
from ark.fabric.write import to_toml

__all__ = [
    "ALL_PORTS",
    "TCP",
    "UDP",
    "Attachment",
    "CrcParameters",
    "Fabric",
    "FiveTuple",
    "HashSpec",
    "Host",
    "Influence",
    "Link",
    "Nic",
    "Path",
    "PathMap",
    "Switch",
    "dual_plane",
    "fat_tree",
    "leaf_spine",
    "load_fabric",
    "paper_fabric",
    "path_map",
    "route",
    "route_flows",
    "route_ports",
    "to_toml",
]
