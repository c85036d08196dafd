"""One call's conversation with the service: when to send again, and what to conclude.

A flow is a generator. It yields an `Attempt`, is sent the `Answer`, and returns the call's
result or raises a `TidegateError`. It does no I/O and takes clock and randomness as parameters,
so that any driver can run it (`connection.py` has one) and a test can script it.

What an answer proves:

| answer of the service itself      | verdict   | this copy          | other copies of it |
| --------------------------------- | --------- | ------------------ | ------------------ |
| 2xx                               | Accepted  | took effect        | answered alike     |
| 409, 410, 422                     | Final     | never takes effect | never take effect  |
| 401, 403, 404, 413 and their kind | Refused   | was not executed   | unknown            |
| 429, or nothing was sent          | Busy      | was not executed   | unknown            |
| anything else                     | Unknown   | unknown            | unknown            |

| answer of somebody else           | verdict   | this copy          | other copies of it |
| --------------------------------- | --------- | ------------------ | ------------------ |
| 2xx, 3xx, 401, 404 and their kind | Foreign   | unknown            | unknown            |
| anything else, or no whole answer | Unknown   | unknown            | unknown            |

So once a copy is in doubt, only an `Accepted` or `Final` answer to a later one ends the doubt: a
token that expires between two copies, or a table that is forgotten, does not prove that the first
one failed.

Each copy has a request id of its own, and an answer is the service's where it carries that id
(`problems.error_of`). A gateway may have passed on what it then answers by itself. What is Foreign
stays so however often it is asked for, and ends the call.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar

from tidegate.errors import (
    Attempts,
    CommitStateUnknown,
    ServiceUnavailable,
    TidegateError,
    UnexpectedAnswer,
)
from tidegate.wire.exchange import (
    REQUEST_ID_HEADER,
    Answer,
    Attempt,
    Request,
    Response,
    TransportFailure,
)
from tidegate.wire.problems import error_of
from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt

T = TypeVar("T")
Flow = Generator[Attempt, Answer, T]

_FINAL = frozenset({409, 410, 422})
# A redirect, which the service never sends, is not followed, because a proposal must reach what was
# named.
_REFUSED = frozenset(
    {301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 411, 413, 414, 415, 417, 421, 431}
)
_BUSY = 429
# Both say that this id has landed or may have: an abort that came too late, and an id that names
# another body, which may list the same files.
_LANDED = frozenset({Code.TRANSACTION_COMMITTED, Code.TRANSACTION_ID_REUSED})


class Repeat(Enum):
    """When a call may be sent again: `ALWAYS` where a second copy changes nothing (reads,
    proposals with their id), `NOT_EXECUTED` where it would be told about the first one."""

    ALWAYS = "always"
    NOT_EXECUTED = "not-executed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How long to go on. All in seconds.

    No attempt begins after `deadline_s`. Before the n-th retry the flow waits a random part of
    `first_delay_s * 2**(n-1)`, at most of `longest_delay_s`; a `Retry-After` is waited for in
    full before that. `attempt_s` is a little more than the service's own deadline of 30 s, so
    that its answer is waited for. `commit_attempts` is how often a proposal is sent at most; by
    default the time alone bounds it.
    """

    deadline_s: float = 60.0
    attempt_s: float = 35.0
    first_delay_s: float = 0.1
    longest_delay_s: float = 5.0
    commit_attempts: int | None = None

    def delay_s(self, *, retry: int, retry_after_s: float, jitter: float) -> float:
        """The wait before the `retry`-th retry, counted from 1; `jitter` is in [0, 1)."""
        # The exponent is bounded because a float overflows at 2**1024.
        backoff = self.first_delay_s * 2.0 ** min(retry - 1, 32)
        return retry_after_s + jitter * min(self.longest_delay_s, backoff)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a flow needs from the world: `clock` in seconds (monotonic), `jitter` in [0, 1), and
    request ids (1 to 128 of `A-Za-z0-9._-`) that nobody has used before."""

    clock: Callable[[], float]
    jitter: Callable[[], float]
    new_request_id: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Accepted:
    response: Response


@dataclass(frozen=True, slots=True)
class Final:
    error: TidegateError


@dataclass(frozen=True, slots=True)
class Refused:
    error: TidegateError


@dataclass(frozen=True, slots=True)
class Busy:
    error: TidegateError
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Foreign:
    error: TidegateError


@dataclass(frozen=True, slots=True)
class Unknown:
    error: TidegateError
    retry_after_s: float = 0.0


Verdict = Accepted | Final | Refused | Busy | Foreign | Unknown


def classify(answer: Answer, *, request_id: str) -> Verdict:
    """What one answer to the copy with this request id proves; see the tables above."""
    if isinstance(answer, TransportFailure):
        error = ServiceUnavailable(answer.detail, request_id=request_id)
        return Unknown(error) if answer.sent else Busy(error)
    if 200 <= answer.status < 300:
        found = answer.headers.get(REQUEST_ID_HEADER)
        return Accepted(answer) if found == request_id else Foreign(_foreign(answer, request_id))
    problem = error_of(answer, request_id=request_id)
    is_of_service = problem.code is not None
    retry_after_s = _retry_after_s(answer)
    if answer.status in _REFUSED:
        return Refused(problem) if is_of_service else Foreign(problem)
    if answer.status in _FINAL and is_of_service:
        return Final(problem)
    if answer.status == _BUSY and is_of_service:
        return Busy(problem, retry_after_s)
    return Unknown(problem, retry_after_s)


def call_flow(
    request: Request,
    decode: Callable[[Response], T],
    *,
    effects: Effects,
    policy: RetryPolicy,
    repeat: Repeat = Repeat.ALWAYS,
    in_doubt: bool = False,
    max_attempts: int | None = None,
) -> Flow[T]:
    """Send the request until something is known, `max_attempts` times at most, and return the
    decoded 2xx answer.

    `in_doubt` says that an earlier copy of the same request may have been executed. The error
    raised has `definite` set by what all copies together prove, and `attempts` where nothing but
    time or a further copy was lacking. `decode` raises `UnexpectedAnswer` for a 2xx body that is
    not the service's.
    """
    started_s = effects.clock()
    give_up_at = started_s + policy.deadline_s
    delay_s = 0.0
    retry = 0
    while True:
        remaining_s = give_up_at - effects.clock() - delay_s
        request_id = effects.new_request_id()
        answer = yield Attempt(
            request=replace(request, request_id=request_id),
            timeout_s=min(policy.attempt_s, max(remaining_s, 0.0)),
            after_s=delay_s,
            left_s=max(remaining_s + delay_s, 0.0),
        )
        verdict = classify(answer, request_id=request_id)
        match verdict:
            case Accepted(response):
                return decode(response)
            case Final(error):
                error.definite = error.code not in _LANDED
                raise error
            case Refused(error):
                error.definite = not in_doubt
                raise error
            case Foreign(error):
                raise error
            case Unknown(error):
                in_doubt = True
                if repeat is Repeat.NOT_EXECUTED:
                    raise error
            case Busy(error):
                error.definite = not in_doubt
        retry += 1
        delay_s = policy.delay_s(
            retry=retry, retry_after_s=verdict.retry_after_s, jitter=effects.jitter()
        )
        if retry == max_attempts or effects.clock() + delay_s >= give_up_at:
            error.attempts = Attempts(count=retry, seconds=effects.clock() - started_s)
            raise error


def propose_flow(
    request: Request,
    decode: Callable[[Response], T],
    *,
    transaction_id: str,
    effects: Effects,
    policy: RetryPolicy,
    in_doubt: bool = False,
) -> Flow[T]:
    """`call_flow` for a proposal: the same body, hence the same transaction id, every time.

    Raises `CommitStateUnknown` with the id wherever the outcome stays in doubt, and any other
    error only with `definite` True, save for an id that names another body.
    """
    try:
        return (
            yield from call_flow(
                request,
                decode,
                effects=effects,
                policy=policy,
                in_doubt=in_doubt,
                max_attempts=policy.commit_attempts,
            )
        )
    except TidegateError as error:
        if error.definite or error.code in _LANDED:
            raise
        unknown = CommitStateUnknown(
            f"the commit may or may not have landed; the last answer was: {error.detail}",
            code=error.code,
            status=error.status,
            request_id=error.request_id,
            transaction_id=transaction_id,
        )
        unknown.attempts = error.attempts
        raise unknown from error


def _foreign(response: Response, request_id: str) -> UnexpectedAnswer:
    found = response.headers.get(REQUEST_ID_HEADER)
    under = "none" if found is None else excerpt(found)
    return UnexpectedAnswer(
        f"expected an answer with X-Request-Id {request_id}, found {under}, status "
        f"{response.status} and {excerpt(response.body[:512])}; whatever is between here and the "
        "service has to pass that header on as it is, both ways",
        status=response.status,
        request_id=request_id,
    )


def _retry_after_s(response: Response) -> float:
    """`Retry-After` in seconds. A date is left to the backoff: it needs a wall clock that agrees
    with the sender's."""
    text = response.headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdecimal() else 0.0
