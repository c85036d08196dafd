"""A small part of `make chaos`: every run of it holds up, and its judge sees what is there."""

import asyncio

import pytest

from tests.chaos import scenarios
from tests.chaos.__main__ import OF_QUICK, RUNS
from tests.chaos.disks import NoDisks
from tests.chaos.running import Outcome


def run(name: str) -> Outcome:
    try:
        return asyncio.run(RUNS[name](scenarios.QUICK, seed=20261121))
    except NoDisks as why:
        pytest.skip(str(why))


@pytest.mark.parametrize("name", OF_QUICK)
def test_nothing_is_lost(name):
    outcome = run(name)
    assert outcome.good, outcome.report()
    # It was a run, and something was broken in it.
    assert outcome.counts.acked > 0
    assert outcome.damage.told(), outcome.report()
    # What is acknowledged while the standby lags may be lost, and told.
    assert outcome.versions >= outcome.counts.acked or name == "k5"
