"""A real fabric on one machine: switches and hosts are network namespaces, ECMP is the kernel's own.

Needs root, Linux 6.11 and the extra ``lab``.
"""
