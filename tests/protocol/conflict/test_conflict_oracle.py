"""Our rules against an oracle of its own (`tests/conflict_oracle.py`), over everything that the
rules look at.

What the oracle refuses by Delta's rules we never accept; what we refuse beyond that, it names.
"""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conflict_oracle import verdict
from tests.conflict_schedules import Schedule, draw
from tests.protocol.schedules import judged
from tidegate_protocol.proposal.transaction import Conflict, Invalid


def compared(schedule: Schedule) -> str:
    """Assert that our rules say what the oracle does; what that was."""
    ours = judged(schedule)
    if isinstance(ours, Invalid):
        return "invalid"
    told = verdict(schedule)
    if isinstance(ours, Conflict):
        assert told.ours is not None, (schedule, ours.detail)
        assert ours.code.value == told.ours.error, (schedule, ours.detail, told)
        return "both" if told.deltas is not None else f"only ours: {told.ours.won.name.lower()}"
    assert told.deltas is None, (schedule, told)
    assert told.ours is None, (schedule, told)
    return "spared by statistics" if told.spared else "neither"


@given(st.integers(0, 2**64), st.integers(1, 3))
@settings(max_examples=600)
def test_we_judge_as_the_oracle_does(seed, winners):
    compared(draw(Random(seed), winners=winners))
