"""A small part of `make chaos`: every run of it holds up, and its judge sees what is there."""

import asyncio

import pytest

from tests.chaos import scenarios
from tests.chaos.__main__ import RUNS


@pytest.mark.parametrize("name", ["k1", "k2", "k4"])
def test_nothing_is_lost(name):
    outcome = asyncio.run(RUNS[name](scenarios.QUICK, seed=20261121))
    assert outcome.good, outcome.report()
    # It was a run, and something was broken in it.
    assert outcome.counts.acked > 0
    assert outcome.damage.told(), outcome.report()
    assert outcome.versions >= outcome.counts.acked
