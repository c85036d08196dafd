"""Requests that are nobody's: for what is open to everybody, or without a token.

They take nothing of what there is for those who have one. However many come, they cost so much of
the event loop and no more: an instance begins with some of them at a time, one of each address in
turn, and the others wait (`ServerLimits`).
"""

import asyncio
from collections.abc import Callable
from functools import partial

from starlette.types import Scope

from tidegate_service.api.http.answered import HEALTH_PATHS, METRICS_PATH
from tidegate_service.api.http.request.faces import UNITY_PREFIX
from tidegate_service.api.http.request.heads import Headers
from tidegate_service.api.http.request.limits import Limits
from tidegate_service.api.http.request.requests import PREFIX
from tidegate_service.core.access.addresses import source_of
from tidegate_service.core.sharing.shares import Shares
from tidegate_service.core.sharing.turns import Passes, Turns

WAITING = 1_000
"""Most that wait for it, of health checks and of all others each."""
PART = 4
"""No more wait in a line than one for so many connections that there may be: each holds one."""
CROWDED = 1
"""Refusals that find no room to wait, and are told on a proxy's connection all the same, in one
pass of the event loop. All at once, a thousand of them would come between two steps of a commit."""
ANSWERS = 32
"""Most that are not health checks and have begun: what they answer may be large, and is held until
it is read."""


class Strangers:
    """Those of one kind, of one event loop. An address has a share of the places
    (`core.sharing.shares`)."""

    def __init__(
        self,
        what: str,
        *,
        answers: int | None,
        waiting: int = WAITING,
        at_once: int,
        turn_s: float,
    ) -> None:
        """`what` names them in answers. Where there is no bound on `answers`, these are short."""
        self._turns = Turns(at_once)
        self._turn_s = turn_s
        self._waiting = Shares(waiting, f"{what} that wait")
        self._answers = None if answers is None else Shares(answers, f"{what} under way")

    async def enter(self, address: str, at_end: list[Callable[[], None]]) -> None:
        """Wait for a turn; what is held until the request ends is given back by `at_end`. Raises
        `Unavailable` (`backpressure`)."""
        source = source_of(address)
        await self._turn(source)
        if self._answers is not None:
            answers = self._answers
            answers.take(source)
            at_end.append(lambda: answers.give_back(source))

    async def wait(self, address: str) -> None:
        """The same of one that was found to be nobody's by its answer, which is short."""
        await self._turn(source_of(address))

    async def _turn(self, source: str) -> None:
        self._waiting.take(source)
        try:
            await self._turns.take(source)
        finally:
            self._waiting.give_back(source)
        # However soon it is answered: asking again at once is what a flood does.
        asyncio.get_running_loop().call_later(self._turn_s, self._turns.end)


class Lines:
    """Where which of them wait. Health checks have a line of their own."""

    def __init__(self, limits: Limits) -> None:
        line = partial(
            Strangers,
            waiting=max(1, min(WAITING, limits.max_connections // PART)),
            at_once=limits.server.strangers,
            turn_s=limits.server.stranger_turn_s,
        )
        # Of those that there is no room for, and whose connections go on.
        self.crowded = Passes(CROWDED)
        self.health = line("health checks", answers=None)
        self.others = line("requests without a token", answers=ANSWERS)

    def of(self, scope: Scope, headers: Headers, limits: Limits) -> Strangers | None:
        """The line of a request that is known to be nobody's by its head."""
        path = scope["path"]
        if path in HEALTH_PATHS:
            return self.health
        if path.startswith((PREFIX, UNITY_PREFIX)) or path == METRICS_PATH:
            return self.others if limits.tokens and b"authorization" not in headers else None
        return self.others
