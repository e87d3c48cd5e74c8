"""What the network is: topology, links, paths, ECMP hash functions, port ↔ path maps, RoCE port rules.

Pure: no sockets, clocks, threads, files or randomness. May import ``ark.units``, ``ark.errors``, msgspec and,
lazily, NumPy; nothing else of ARK.
"""
