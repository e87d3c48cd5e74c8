"""Settings of all tests: no test of ours judges wall time, so neither does Hypothesis."""

from hypothesis import settings

settings.register_profile("ark", deadline=None)
settings.load_profile("ark")
