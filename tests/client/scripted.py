"""Running a flow against a list of answers, on a clock that only its own waits move."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from tidegate.errors import TidegateError
from tidegate.exchange import Answer, Attempt, Request, Response, TransportFailure
from tidegate.flow import Effects, Flow, RetryPolicy
from tidegate_protocol.problems import PROBLEMS, Code

T = TypeVar("T")

REQUEST = Request(method="POST", path="/tables/t/commits", body=b"{}")
POLICY = RetryPolicy(deadline_s=60.0, attempt_s=35.0, first_delay_s=1.0, longest_delay_s=8.0)


@dataclass
class Clock:
    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


def effects(clock: Clock, jitter: float = 0.5) -> Effects:
    return Effects(clock=clock, jitter=lambda: jitter)


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
            attempt = flow.send(answer)
    except StopIteration as stop:
        done.result = stop.value
    except TidegateError as error:
        done.error = error
    assert next(remaining, None) is None, "the flow ended before the answers did"
    return done


def text(response: Response) -> str:
    return response.body.decode()


def problem(code: Code, *, headers: dict[str, str] | None = None, **fields: object) -> Response:
    """A problem as the service words it."""
    kind = PROBLEMS[code]
    body = {"code": code, "title": kind.title, "status": kind.status, "detail": "it is so."}
    return Response(
        status=kind.status, headers=headers or {}, body=msgspec.json.encode(body | fields)
    )


DONE = Response(status=201, body=b"landed")
LOST = TransportFailure(sent=True, detail="the connection was lost")
NOT_SENT = TransportFailure(sent=False, detail="the connection was refused")
