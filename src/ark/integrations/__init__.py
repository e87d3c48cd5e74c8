"""How the choice of a path reaches the wire: TCP, RoCE, the engines that people run, unmodified programs.

May import ``ark.client``, ``ark.fabric`` (the formulas, nothing that loads NumPy at import), ``ark.kv``,
``ark.units``, ``ark.errors``, and an engine's own packages where they are used. Nothing here decides; the
agent does. Where nothing can be steered, a transfer goes on as it would without ARK, and the reason is said.
"""
