"""What ARK decides: reservation rows and table, path policies, races, streams, and the controller.

Pure: whatever decides is plain Python to which time and randomness are passed in, so that the agent, the
simulators and the tests run the same code. May import ``ark.fabric``, ``ark.units``, ``ark.errors``, msgspec
and, lazily, NumPy; nothing else.
"""
