"""Running a flow against a list of answers, on a clock that only its own waits move."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from tidegate.errors import TidegateError
from tidegate.wire.exchange import Answer, Attempt, Request, Response, TransportFailure
from tidegate.wire.flow import Effects, Flow, RetryPolicy
from tidegate_protocol.base.problems import PROBLEM_MEDIA_TYPE, PROBLEM_TYPE_PREFIX, PROBLEMS, Code

T = TypeVar("T")

REQUEST = Request(method="POST", path="/tables/t/commits", body=b"{}")
POLICY = RetryPolicy(deadline_s=60.0, attempt_s=35.0, first_delay_s=1.0, longest_delay_s=8.0)


@dataclass
class Clock:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


def effects(clock: Clock, jitter: float = 0.5) -> Effects:
    numbers = itertools.count(1)
    return Effects(clock=clock, jitter=lambda: jitter, new_request_id=lambda: f"r-{next(numbers)}")


@dataclass
class Run(Generic[T]):
    """What a flow did: its attempts, and its result or error. `started_s` are the times of its
    attempts after the first, in seconds since the beginning."""

    attempts: list[Attempt] = field(default_factory=list)
    started_s: list[float] = field(default_factory=list)
    result: T | None = None
    error: TidegateError | None = None


def run(flow: Flow[T], clock: Clock, answers: Iterable[Answer], *, takes_s: float = 0.0) -> Run[T]:
    """Drive the flow; each answer takes `takes_s`. Fails if the answers run out."""
    done: Run[T] = Run()
    begun = clock.now_s
    remaining = iter(answers)
    try:
        attempt = next(flow)
        while True:
            clock.now_s += attempt.after_s
            done.attempts.append(attempt)
            done.started_s.append(clock.now_s - begun)
            clock.now_s += takes_s
            answer = next(remaining, None)
            assert answer is not None, f"attempt {len(done.attempts)} has no answer scripted"
            attempt = flow.send(carrying(answer, attempt.request.request_id))
    except StopIteration as stop:
        done.result = stop.value
    except TidegateError as error:
        done.error = error
    assert next(remaining, None) is None, "the flow ended before the answers did"
    return done


def carrying(answer: Answer, request_id: str | None) -> Answer:
    """The answer with the request's id where it says `ECHO`."""
    if isinstance(answer, TransportFailure):
        return answer
    assert request_id is not None
    headers = {name: value.replace(ECHO, request_id) for name, value in answer.headers.items()}
    body = answer.body.replace(ECHO.encode(), request_id.encode())
    return Response(status=answer.status, headers=headers, body=body)


def text(response: Response) -> str:
    return response.body.decode()


def problem(code: Code, /, *, headers: dict[str, str] | None = None, **fields: object) -> Response:
    """A problem as the service words it; a field that is None is left out."""
    kind = PROBLEMS[code]
    body = {
        "type": PROBLEM_TYPE_PREFIX + code,
        "title": kind.title,
        "status": kind.status,
        "detail": "it is so.",
        "code": code,
        "instance": ECHO,
    }
    left = {name: value for name, value in (body | fields).items() if value is not None}
    return Response(
        status=kind.status,
        headers={"content-type": PROBLEM_MEDIA_TYPE, "x-request-id": ECHO} | (headers or {}),
        body=msgspec.json.encode(left),
    )


ECHO = "(the request's id)"
"""Where it stands in an answer, the answer carries the id of the request that it answers."""

DONE = Response(status=201, headers={"x-request-id": ECHO}, body=b"landed")
LOST = TransportFailure(sent=True, detail="the connection was lost")
NOT_SENT = TransportFailure(sent=False, detail="the connection was refused")
