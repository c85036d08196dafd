"""The real service under any sequence of operations, against the pure ledger (K9)."""

import os
import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.service.machine.machine import ServiceMachine
from tests.service.machine.rig import Rig, rig

CI_SEED = 2471718889

SLOW_AND_LARGE = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
"""Every step does what a service does: nothing here is slow by mistake."""

STEPS_OF_CI_SEED, ENOUGH_STEPS = 750, 5_000
"""In all. Those of CI's seed make some five groups of either kind that land several proposals.
Where others are drawn, one run in a hundred makes none, so that it takes more to be sure."""


@pytest.fixture
def service_rig(database_url: str) -> Iterator[Rig]:
    with rig(database_url) as made:
        yield made


def _drawn() -> int:
    """What lands has passed the same runs as its base; new ones are drawn everywhere else."""
    return CI_SEED if os.environ.get("CI") else random.randrange(2**32)


def test_the_service_is_the_ledger(service_rig: Rig, request: pytest.FixtureRequest):
    size = request.config.getoption("--machine")
    runs, steps = map(int, size.split("x"))
    given = request.config.getoption("--hypothesis-seed")
    number = _drawn() if given is None else int(given)
    print(f"machine: {size} with --hypothesis-seed={number}")

    @seed(number)
    def machine() -> ServiceMachine:
        return ServiceMachine(service_rig)

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=runs,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=SLOW_AND_LARGE,
        ),
    )

    if runs * steps >= (STEPS_OF_CI_SEED if number == CI_SEED else ENOUGH_STEPS):
        landed = service_rig.landings
        assert landed.plain > 1, "no group landed several proposals to a plain table"
        assert landed.managed > 1, "no group landed several to a catalog-managed table"
