"""ARK keeps large KV-cache transfers off each other's links in an ECMP network.

A prefill node knows the size and the destination of a transfer before its first byte leaves. ARK picks the
least loaded path, makes the transfer take it by choosing a source port whose ECMP hash leads there, and
tells its peers. The packages below have one-way imports, from the command at the top to the units at the
bottom; each says in its own docstring what it is for and what it may import.
"""

__version__ = "0.1.0"
