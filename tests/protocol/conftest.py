"""Hypothesis, for every test of the protocol package."""

from hypothesis import settings

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("protocol", deadline=None)
settings.load_profile("protocol")
