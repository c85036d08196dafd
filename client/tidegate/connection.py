"""Flows driven over a transport: the synchronous loop."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from tidegate.exchange import Request, Response, Transport
from tidegate.flow import Effects, Flow, Repeat, RetryPolicy, call_flow, propose_flow

T = TypeVar("T")


def drive(flow: Flow[T], transport: Transport, *, sleep: Callable[[float], None]) -> T:
    """Run a flow to its end and return its result, or let its error through."""
    try:
        attempt = next(flow)
        while True:
            if attempt.after_s > 0:
                sleep(attempt.after_s)
            answer = transport.send(attempt.request, timeout_s=attempt.timeout_s)
            attempt = flow.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


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
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._transport = transport
        self._policy = policy
        self._effects = Effects(clock=clock, jitter=jitter)
        self._sleep = sleep
        self._wall_clock = wall_clock

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
    ) -> T:
        """See `flow.call_flow`."""
        flow = call_flow(
            request, decode, effects=self._effects, policy=policy or self._policy, repeat=repeat
        )
        return drive(flow, self._transport, sleep=self._sleep)

    def propose(
        self,
        request: Request,
        decode: Callable[[Response], T],
        *,
        transaction_id: str,
        in_doubt: bool,
    ) -> T:
        """See `flow.propose_flow`."""
        flow = propose_flow(
            request,
            decode,
            transaction_id=transaction_id,
            effects=self._effects,
            policy=self._policy,
            in_doubt=in_doubt,
        )
        return drive(flow, self._transport, sleep=self._sleep)

    def close(self) -> None:
        self._transport.close()
