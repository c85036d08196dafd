"""How soon a caller is told that it asked for more than there is for it.

Asked again at once and without end, refusals would cost others as much as what is refused.
"""

import asyncio

from tidegate_service.core.access.roles import Principal, share_of
from tidegate_service.core.errors import Unavailable
from tidegate_service.core.sharing.shares import Shares

DELAY_S = 1.0
"""As long as the least `Retry-After` asks for."""
PART = 4
"""One in so many of the requests that may be under way waits to be refused, of one principal a
share of these; further ones are refused at once, so that there is room for others."""


class Refusals:
    """The requests that wait to be refused, of one event loop. No more than `max_requests` are
    under way."""

    def __init__(self, max_requests: int, *, delay_s: float = DELAY_S) -> None:
        self._delay_s = delay_s
        self._waiting = Shares(max_requests // PART, "requests that wait to be refused")

    async def wait(self, principal: Principal | None) -> bool:
        """Let a while pass. False where there is no room to wait: such a connection should end,
        since connections begin in turns. A caller that is not told from others does not wait: that
        would hold up all of them."""
        who = None if principal is None else share_of(principal)
        if who is None:
            return True
        try:
            self._waiting.take(who)
        except Unavailable:
            return False
        try:
            await asyncio.sleep(self._delay_s)
        finally:
            self._waiting.give_back(who)
        return True
