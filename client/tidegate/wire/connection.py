"""Flows driven over a transport: the synchronous loop."""

import copy
import logging
import random
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Self, TypeVar
from uuid import uuid4

from tidegate.wire.exchange import Request, Response, Transport, TransportFailure
from tidegate.wire.flow import Effects, Flow, Repeat, RetryPolicy, call_flow, propose_flow
from tidegate.wire.last_commits import LastCommits

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

_APPLICATION_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


def drive(
    flow: Flow[T],
    transport: Transport,
    *,
    sleep: Callable[[float], None],
    application_id: str | None = None,
) -> T:
    """Run a flow to its end and return its result, or let its error through.

    The first attempt that gets no answer and is followed by another is logged at WARNING: else a
    service that is not there would be waited for in silence.
    """
    is_silent = True
    try:
        attempt = next(flow)
        while True:
            if attempt.after_s > 0:
                sleep(attempt.after_s)
            request = replace(attempt.request, application_id=application_id)
            answer = transport.send(request, timeout_s=attempt.timeout_s)
            attempt = flow.send(answer)
            if is_silent and isinstance(answer, TransportFailure):
                is_silent = False
                _LOG.warning("%s; trying again, for %.0f s at most", answer.detail, attempt.left_s)
    except StopIteration as done:
        result: T = done.value
        return result


def _checked(application_id: str) -> str:
    if not _APPLICATION_ID.fullmatch(application_id):
        raise ValueError(
            "expected an application id of 1 to 128 ASCII letters, digits and '._-', found "
            f"{application_id[:200]!r}"
        )
    return application_id


class Connection:
    """A transport with a policy for going on and the clock, rest and chance to do so."""

    def __init__(
        self,
        transport: Transport,
        *,
        policy: RetryPolicy,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        new_request_id: Callable[[], str] = lambda: uuid4().hex,
        wall_clock: Callable[[], float] = time.time,
        application_id: str | None = None,
    ) -> None:
        """`application_id` goes along with every request. Raises `ValueError` for one that the
        service would not take."""
        self._transport = transport
        self.policy = policy
        self._application_id = None if application_id is None else _checked(application_id)
        self._effects = Effects(clock=clock, jitter=jitter, new_request_id=new_request_id)
        self._sleep = sleep
        self._wall_clock = wall_clock
        self.last_commits = LastCommits()

    def of_application(self, application_id: str) -> Self:
        """This connection, its transport shared, for what an application does."""
        mine = copy.copy(self)
        mine._application_id = _checked(application_id)
        return mine

    def with_commit_attempts(self, most: int) -> Self:
        """This connection, its transport shared, for proposals that are sent so often at most."""
        mine = copy.copy(self)
        mine.policy = replace(self.policy, commit_attempts=most)
        return mine

    def clock_s(self) -> float:
        """Seconds of a clock that never goes back, for durations."""
        return self._effects.clock()

    def now_ms(self) -> int:
        """Milliseconds since the epoch, for the timestamps that actions carry."""
        return int(self._wall_clock() * 1000)

    def call(
        self,
        request: Request,
        decode: Callable[[Response], T],
        *,
        repeat: Repeat = Repeat.ALWAYS,
        policy: RetryPolicy | None = None,
        max_attempts: int | None = None,
    ) -> T:
        """See `flow.call_flow`."""
        flow = call_flow(
            request,
            decode,
            effects=self._effects,
            policy=policy or self.policy,
            repeat=repeat,
            max_attempts=max_attempts,
        )
        return self._drive(flow)

    def propose(
        self,
        request: Request,
        decode: Callable[[Response], T],
        *,
        transaction_id: str,
        in_doubt: bool,
        policy: RetryPolicy | None = None,
    ) -> T:
        """See `flow.propose_flow`."""
        flow = propose_flow(
            request,
            decode,
            transaction_id=transaction_id,
            effects=self._effects,
            policy=policy or self.policy,
            in_doubt=in_doubt,
        )
        return self._drive(flow)

    def close(self) -> None:
        self._transport.close()

    def _drive(self, flow: Flow[T]) -> T:
        return drive(flow, self._transport, sleep=self._sleep, application_id=self._application_id)
