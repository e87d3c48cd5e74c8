"""Blueprints made from counts, one regular shape of fabric a file.

Hosts are named ``h0, h1, …`` leaf by leaf; switches ``leaf0 …`` and ``spine0 …``, in three tiers ``agg0 …``
and ``core0 …`` as well, with two planes ``tor0 …``.
"""
