"""For any sequence of answers: what a proposal concludes follows from what was proven."""

from hypothesis import given
from hypothesis import strategies as st

from tests.client.scripted import (
    DONE,
    LOST,
    NOT_SENT,
    POLICY,
    REQUEST,
    Clock,
    effects,
    problem,
    run,
    text,
)
from tidegate.errors import CommitStateUnknown
from tidegate.exchange import Answer, Response, TransportFailure
from tidegate.flow import propose_flow
from tidegate_protocol.problems import Code

NEVER = [problem(Code.CONCURRENT_APPEND), problem(Code.TRANSACTION_ABORTED)]
REFUSED = [Response(status=401), Response(status=404), problem(Code.TOO_LARGE)]
NOT_EXECUTED = [NOT_SENT, problem(Code.BACKPRESSURE)]
DOUBTFUL = [LOST, problem(Code.COMMIT_STATE_UNKNOWN), Response(status=500), Response(status=504)]

ANSWERS = st.lists(st.sampled_from(NOT_EXECUTED + DOUBTFUL), max_size=5)
LAST = st.sampled_from(
    [
        DONE,
        *NEVER,
        *REFUSED,
        problem(Code.BACKPRESSURE, headers={"retry-after": "600"}),
        problem(Code.STORAGE_UNAVAILABLE, headers={"retry-after": "600"}),
    ]
)


def may_have_landed(copies: list[Answer]) -> bool:
    """The contract, worded apart from the flow: 401, 403, 404, 413 and 429 and what was never
    sent were not executed; 409 and 410 speak for all copies."""
    if isinstance(copies[-1], Response) and copies[-1].status in (409, 410):
        return False
    return any(
        copy.sent
        if isinstance(copy, TransportFailure)
        else copy.status not in (401, 403, 404, 413, 429)
        for copy in copies
    )


@given(before=ANSWERS, last=LAST, jitter=st.floats(0, 0.999))
def test_an_error_is_definite_exactly_where_no_copy_can_land(before, last, jitter):
    clock = Clock()
    flow = propose_flow(
        REQUEST, text, transaction_id="tx", effects=effects(clock, jitter), policy=POLICY
    )
    done = run(flow, clock, [*before, last])
    if last is DONE:
        assert done.result == "landed"
        return
    assert done.error is not None
    assert done.error.definite is not may_have_landed([*before, last])
    assert isinstance(done.error, CommitStateUnknown) is not done.error.definite


@given(answers=st.lists(st.sampled_from(DOUBTFUL), min_size=1, max_size=40))
def test_every_copy_has_the_same_bytes(answers):
    clock = Clock()
    flow = propose_flow(
        REQUEST, text, transaction_id="tx", effects=effects(clock, 0.0), policy=POLICY
    )
    done = run(flow, clock, [*answers, DONE])
    assert all(attempt.request == REQUEST for attempt in done.attempts)
    assert done.result == "landed"
