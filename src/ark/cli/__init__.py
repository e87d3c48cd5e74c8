"""The ``ark`` command: one module a subcommand, each a thin shell around a package below.

May import everything of ARK; nothing imports it. Heavy packages are imported inside the subcommand that
needs them, so that ``ark --help`` starts without NumPy.
"""
