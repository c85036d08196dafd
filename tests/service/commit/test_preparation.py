"""What is heavy about a proposal by itself, which is prepared in a thread."""

import time

import pytest

from tests.builders.actions import metadata
from tests.builders.ledgers import state
from tests.builders.proposals import proposal
from tidegate_protocol.proposal.transaction import PreparedTransaction
from tidegate_service.core.commit.preparation import prepared
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.sharing.pools import REST

pytestmark = pytest.mark.anyio


@pytest.mark.timed
async def test_others_have_the_interpreter_while_expressions_are_read():
    long = " AND ".join(["v > 1"] * 1_500)
    new = metadata(["v"], properties={"delta.constraints.c": long})
    setting = proposal(new, read_version=0, operation="SET TBLPROPERTIES")
    began, worked = time.monotonic(), time.process_time()
    found = await prepared(setting, state(), CommitLimits())
    worked = time.process_time() - worked
    assert isinstance(found, PreparedTransaction)
    assert worked > 0.05
    # The pieces at the two ends have no rest behind them.
    assert time.monotonic() - began > worked * (1 + REST) * 0.8
