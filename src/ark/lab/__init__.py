"""A real fabric on one machine: switches and hosts are network namespaces, ECMP is the kernel's own.

Real agents and real bytes in it, measured beside the simulation of the same transfers: ``ark lab``. Needs
root, Linux 6.11 and the extra ``lab``. May import ``ark.sim`` and everything below. What runs once a host
(``mover``, ``sweep``) stays light: this module imports nothing.
"""
