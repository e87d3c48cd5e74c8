"""What the network is: topology, links, paths, ECMP hash functions, port ↔ path maps, RoCE port rules.

Pure: no sockets, clocks, threads, files or randomness. May import ``ark.units``, ``ark.errors``, msgspec and,
lazily, NumPy; nothing else of ARK.
"""

from ark.fabric.generate import dual_plane, fat_tree, leaf_spine, paper_fabric
from ark.fabric.parts import Attachment, Host, Link, Nic, Path, Switch
from ark.fabric.topology import Fabric

__all__ = [
    "Attachment",
    "Fabric",
    "Host",
    "Link",
    "Nic",
    "Path",
    "Switch",
    "dual_plane",
    "fat_tree",
    "leaf_spine",
    "paper_fabric",
]
