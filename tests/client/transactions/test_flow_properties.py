"""For any sequence of answers: what a proposal concludes follows from what was proven."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.client.transactions.scripted import (
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
from tidegate.wire.exchange import Answer, Response, TransportFailure
from tidegate.wire.flow import propose_flow
from tidegate_protocol.base.problems import Code

NEVER = [problem(Code.CONCURRENT_APPEND), problem(Code.TRANSACTION_ABORTED)]
REFUSED = [problem(Code.FORBIDDEN), problem(Code.TABLE_NOT_FOUND), problem(Code.TOO_LARGE)]
NOT_EXECUTED = [NOT_SENT, problem(Code.BACKPRESSURE)]
DOUBTFUL = [
    LOST,
    problem(Code.COMMIT_STATE_UNKNOWN),
    Response(status=500),
    Response(status=504),
    Response(status=429),
    Response(status=409, body=b'{"code":"concurrent-append"}'),
    problem(Code.DUPLICATE_ACTION, type="about:blank"),
    problem(Code.TRANSACTION_ABORTED, instance="another"),
]
FOREIGN = [
    Response(status=200),
    Response(status=302),
    Response(status=403),
    problem(Code.TABLE_NOT_FOUND, instance="another"),
]

ANSWERS = st.lists(st.sampled_from(NOT_EXECUTED + DOUBTFUL), max_size=5)
LAST = st.sampled_from(
    [
        DONE,
        *NEVER,
        *REFUSED,
        *FOREIGN,
        problem(Code.BACKPRESSURE, headers={"retry-after": "600"}),
        problem(Code.STORAGE_UNAVAILABLE, headers={"retry-after": "600"}),
    ]
)


def may_have_landed(copies: list[Answer]) -> bool:
    """The contract, worded apart from the flow: the service's 401, 403, 404, 413 and 429 and what
    was never sent were not executed; its 409 and 410 speak for all copies."""
    if copies[-1] in NEVER:
        return False
    return any(
        copy.sent
        if isinstance(copy, TransportFailure)
        else copy in DOUBTFUL + FOREIGN or copy.status not in (401, 403, 404, 413, 429)
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
    sent = [replace(attempt.request, request_id=None) for attempt in done.attempts]
    assert sent == [REQUEST] * len(done.attempts)
    assert len({attempt.request.request_id for attempt in done.attempts}) == len(done.attempts)
    assert done.result == "landed"
