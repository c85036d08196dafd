"""Long work in a thread leaves the interpreter to others for most of the time, busy or not."""

import itertools

import pytest

from tidegate_service.core.sharing.pools import MOST_REST_S, WORK_S, Rests


@pytest.mark.parametrize("took_s", [WORK_S, 0.03, MOST_REST_S])
def test_it_rests_in_proportion_to_what_the_clock_says(took_s):
    """A machine that runs other processes meanwhile has it hold the interpreter for longer."""
    rested: list[float] = []
    clock = itertools.count()
    rests = Rests(now_s=lambda: next(clock) * took_s, sleep=rested.append)
    for _ in range(3):
        rests()
    assert rested == pytest.approx([min(2 * took_s, MOST_REST_S)] * 3)


def test_what_is_short_goes_on():
    rested: list[float] = []
    rests = Rests(now_s=itertools.count(0.0, WORK_S / 10).__next__, sleep=rested.append)
    for _ in range(9):
        rests()
    assert rested == []
    rests()
    assert len(rested) == 1
