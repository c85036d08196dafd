"""A small part of `make chaos`: every run of it holds up, and its judge sees what is there."""

import asyncio

import pytest

from tests.chaos import scenarios
from tests.chaos.__main__ import OF_QUICK, ONLY_OF_RELEASE, RUNS
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


def test_the_crash_matrix_of_the_full_run_is_that_of_the_tests():
    # tests/service/process/killed/test_crash_points.py goes through it once, `make chaos` ten
    # times. And K13 takes an hour to say anything.
    assert {*OF_QUICK, "k3", *ONLY_OF_RELEASE} == set(RUNS)
