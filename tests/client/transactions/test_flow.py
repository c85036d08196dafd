"""What an answer proves, and when a flow goes on or gives up."""

import pytest

from tests.client.transactions.scripted import (
    DONE,
    LOST,
    NOT_SENT,
    POLICY,
    REQUEST,
    Clock,
    Run,
    effects,
    problem,
    run,
    text,
)
from tidegate.errors import (
    CommitStateUnknown,
    ConcurrentAppendException,
    InvalidProposal,
    ServiceUnavailable,
    TableAlreadyExists,
    TableNotFound,
    TransactionAborted,
    TransactionCommitted,
    Unauthenticated,
    UnexpectedAnswer,
)
from tidegate.wire.exchange import Answer, Response
from tidegate.wire.flow import Repeat, RetryPolicy, call_flow, propose_flow
from tidegate_protocol.base.problems import PROBLEMS, Code

EXPIRED_TOKEN = problem(Code.UNAUTHENTICATED)
TOO_LONG = {"retry-after": "3600"}


def propose(
    *answers: Answer,
    policy: RetryPolicy = POLICY,
    in_doubt: bool = False,
    takes_s: float = 0.0,
    jitter: float = 0.5,
) -> Run[str]:
    clock = Clock()
    flow = propose_flow(
        REQUEST,
        text,
        transaction_id="tx-1",
        effects=effects(clock, jitter),
        policy=policy,
        in_doubt=in_doubt,
    )
    return run(flow, clock, answers, takes_s=takes_s)


def call(*answers: Answer, repeat: Repeat = Repeat.ALWAYS) -> Run[str]:
    clock = Clock()
    flow = call_flow(REQUEST, text, effects=effects(clock), policy=POLICY, repeat=repeat)
    return run(flow, clock, answers)


def test_a_commit_that_lands_at_once_is_sent_once():
    done = propose(DONE)
    assert done.result == "landed"
    assert [attempt.after_s for attempt in done.attempts] == [0.0]


@pytest.mark.parametrize(
    "answer",
    [
        LOST,
        NOT_SENT,
        problem(Code.BACKPRESSURE),
        problem(Code.COMMIT_STATE_UNKNOWN),
        problem(Code.STORAGE_UNAVAILABLE),
        problem(Code.INTERNAL_ERROR),
        Response(status=502, body=b"<html>bad gateway</html>"),
        Response(status=408),
    ],
)
def test_what_proves_nothing_is_sent_again_unchanged(answer):
    done = propose(answer, answer, DONE)
    assert done.result == "landed"
    assert [attempt.request.body for attempt in done.attempts] == [REQUEST.body] * 3


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (problem(Code.CONCURRENT_APPEND, conflict={"version": 7}), ConcurrentAppendException),
        (problem(Code.TRANSACTION_ABORTED), TransactionAborted),
        (problem(Code.DUPLICATE_ACTION), InvalidProposal),
        (problem(Code.TABLE_NOT_FOUND), TableNotFound),
        (EXPIRED_TOKEN, Unauthenticated),
    ],
)
def test_a_refusal_of_the_only_copy_is_definite(answer, expected):
    done = propose(answer)
    assert type(done.error) is expected
    assert done.error.definite


@pytest.mark.parametrize(
    "code", [Code.CONCURRENT_APPEND, Code.TRANSACTION_ABORTED, Code.PARTITION_MISMATCH]
)
def test_409_410_and_422_settle_every_copy(code):
    done = propose(LOST, problem(code))
    assert done.error.definite
    assert done.error.code == code


@pytest.mark.parametrize(
    "refusal",
    [
        EXPIRED_TOKEN,
        Response(status=403),
        problem(Code.TABLE_NOT_FOUND),
        problem(Code.TOO_LARGE),
        Response(status=307, headers={"location": "https://elsewhere"}),
    ],
)
def test_a_refusal_of_a_later_copy_leaves_the_first_in_doubt(refusal):
    """The first copy may have landed before the token expired or the table was forgotten."""
    done = propose(LOST, refusal)
    assert type(done.error) is CommitStateUnknown
    assert not done.error.definite
    assert done.error.transaction_id == "tx-1"
    assert done.error.status == refusal.status


def test_a_refusal_leaves_a_copy_of_an_earlier_call_in_doubt():
    done = propose(EXPIRED_TOKEN, in_doubt=True)
    assert type(done.error) is CommitStateUnknown


def test_a_reused_id_is_final_but_not_definite():
    """The other body may have landed and may name the same files, so they must be kept."""
    done = propose(problem(Code.TRANSACTION_ID_REUSED))
    assert type(done.error) is InvalidProposal
    assert not done.error.definite


@pytest.mark.parametrize("code", [Code.CONCURRENT_APPEND, Code.DUPLICATE_ACTION])
@pytest.mark.parametrize(
    "changes",
    [
        {"type": "about:blank"},
        {"instance": "of-the-gateway"},
        {"instance": None},
        {"headers": {"content-type": "application/json"}},
    ],
)
def test_a_final_answer_of_something_else_than_the_service_proves_nothing(code, changes):
    done = propose(problem(code, **changes), DONE)
    assert done.result == "landed"
    assert [attempt.request.body for attempt in done.attempts] == [REQUEST.body] * 2


def test_a_late_answer_to_an_earlier_copy_is_not_taken_for_one_to_this():
    done = propose(LOST, problem(Code.CONCURRENT_APPEND, instance="r-1"), DONE)
    assert done.result == "landed"
    assert [attempt.request.request_id for attempt in done.attempts] == ["r-1", "r-2", "r-3"]


@pytest.mark.parametrize(
    "answer",
    [
        Response(status=200, body=b"<html>log in</html>"),
        Response(status=201, body=b"landed"),
        Response(status=201, headers={"x-request-id": "of-the-gateway"}, body=b"landed"),
        Response(status=307, headers={"location": "https://sso.example"}),
        Response(status=401, body=b"<html>log in</html>"),
        Response(status=403, body=b'{"code":"forbidden"}'),
        Response(status=404, body=b"default backend"),
        Response(status=413, body=b"<html>"),
        problem(Code.TABLE_NOT_FOUND, instance="of-the-gateway"),
        problem(Code.FORBIDDEN, type="about:blank"),
        problem(Code.TOO_LARGE, headers={"content-type": "application/json"}),
    ],
)
def test_what_a_gateway_answers_leaves_even_the_only_copy_in_doubt(answer):
    """It may have passed the proposal on before: only the service knows that it did nothing."""
    done = propose(answer)
    assert type(done.error) is CommitStateUnknown
    assert not done.error.definite
    assert done.error.status == answer.status
    assert not done.error.__cause__.definite
    assert len(done.attempts) == 1


@pytest.mark.parametrize(
    "busy",
    [
        Response(status=429, headers={"retry-after": "3600"}),
        problem(Code.BACKPRESSURE, instance="of-the-gateway", headers={"retry-after": "3600"}),
    ],
)
def test_a_gateway_that_is_busy_does_not_prove_that_nothing_was_executed(busy):
    assert type(propose(busy).error) is CommitStateUnknown


def test_a_gateway_that_is_busy_is_waited_for_as_long_as_it_says():
    done = propose(Response(status=429, headers={"retry-after": "7"}), DONE, jitter=0.5)
    assert done.result == "landed"
    assert done.attempts[1].after_s == 7.5


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Response(status=401, body=b"<html>log in</html>"), Unauthenticated),
        (Response(status=200, body=b"<html>log in</html>"), UnexpectedAnswer),
        (Response(status=307), UnexpectedAnswer),
    ],
)
def test_a_read_says_at_once_what_a_gateway_answered(answer, expected):
    done = call(answer)
    assert type(done.error) is expected
    assert not done.error.definite
    assert done.error.request_id == "r-1"


def test_a_code_of_a_newer_service_is_judged_by_its_status():
    newer = problem(
        Code.CONCURRENT_APPEND,
        code="concurrent-zorder",
        type="urn:tidegate:problem:concurrent-zorder",
    )
    done = propose(newer)
    assert done.error.definite
    assert done.error.code == "concurrent-zorder"


def test_a_2xx_that_is_not_a_receipt_leaves_the_commit_in_doubt():
    def refuse(response: Response) -> str:
        raise UnexpectedAnswer("a login page")

    clock = Clock()
    flow = propose_flow(
        REQUEST, refuse, transaction_id="tx-1", effects=effects(clock), policy=POLICY
    )
    done = run(flow, clock, [DONE])
    assert type(done.error) is CommitStateUnknown
    assert type(done.error.__cause__) is UnexpectedAnswer


def test_the_delays_double_up_to_the_longest_and_are_jittered():
    done = propose(*[LOST] * 6, DONE, jitter=0.5)
    assert [attempt.after_s for attempt in done.attempts] == [0.0, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_no_jitter_means_no_delay():
    done = propose(LOST, DONE, jitter=0.0)
    assert done.attempts[1].after_s == 0.0


def test_retry_after_is_waited_for_in_full():
    done = propose(problem(Code.BACKPRESSURE, headers={"retry-after": "7"}), DONE, jitter=0.5)
    assert done.attempts[1].after_s == 7.5


@pytest.mark.parametrize("value", ["Fri, 21 Nov 2025 10:00:00 GMT", "-3", "soon", "", "1.5", "²"])
def test_a_retry_after_that_is_no_number_of_seconds_is_left_to_the_backoff(value):
    done = propose(problem(Code.BACKPRESSURE, headers={"retry-after": value}), DONE, jitter=0.5)
    assert done.attempts[1].after_s == 0.5


def test_no_attempt_begins_after_the_deadline():
    policy = RetryPolicy(deadline_s=10, attempt_s=4, first_delay_s=1.0, longest_delay_s=1.0)
    done = propose(LOST, LOST, LOST, policy=policy, takes_s=4.0, jitter=0.5)
    assert type(done.error) is CommitStateUnknown
    assert done.started_s == [0.0, 4.5, 9.0]


def test_an_attempt_waits_no_longer_than_the_deadline_leaves():
    policy = RetryPolicy(deadline_s=10, attempt_s=4, first_delay_s=1.0, longest_delay_s=1.0)
    done = propose(LOST, LOST, LOST, policy=policy, takes_s=4.0, jitter=0.5)
    assert [attempt.timeout_s for attempt in done.attempts] == [4.0, 4.0, 1.0]


def test_a_wait_beyond_the_deadline_is_not_begun():
    done = propose(problem(Code.STORAGE_UNAVAILABLE, headers=TOO_LONG))
    assert type(done.error) is CommitStateUnknown
    assert len(done.attempts) == 1


def test_giving_up_is_definite_while_no_copy_was_executed():
    done = propose(NOT_SENT, problem(Code.BACKPRESSURE, headers=TOO_LONG))
    assert type(done.error) is ServiceUnavailable
    assert done.error.definite


def test_giving_up_is_in_doubt_once_one_copy_was():
    done = propose(LOST, problem(Code.BACKPRESSURE, headers=TOO_LONG))
    assert type(done.error) is CommitStateUnknown
    assert type(done.error.__cause__) is ServiceUnavailable


def test_a_read_is_given_up_without_talk_of_commits():
    done = call(problem(Code.INDEX_UNAVAILABLE, headers=TOO_LONG))
    assert type(done.error) is ServiceUnavailable
    assert not done.error.definite


def test_an_abort_that_came_too_late_is_not_definite():
    done = call(problem(Code.TRANSACTION_COMMITTED, version=9))
    assert type(done.error) is TransactionCommitted
    assert done.error.version == 9
    assert not done.error.definite


def test_a_creation_is_not_sent_again_once_it_may_have_been_executed():
    done = call(LOST, repeat=Repeat.NOT_EXECUTED)
    assert type(done.error) is ServiceUnavailable
    assert not done.error.definite


def test_a_creation_is_sent_again_where_it_was_not_executed():
    done = call(NOT_SENT, problem(Code.BACKPRESSURE), DONE, repeat=Repeat.NOT_EXECUTED)
    assert done.result == "landed"


def test_a_creation_that_is_refused_is_definite():
    done = call(problem(Code.TABLE_EXISTS), repeat=Repeat.NOT_EXECUTED)
    assert type(done.error) is TableAlreadyExists
    assert done.error.definite


@pytest.mark.parametrize("code", [code for code in Code if PROBLEMS[code].status == 503])
def test_every_503_is_tried_again(code):
    assert propose(problem(code), DONE).result == "landed"
