"""How soon a caller is told that it asked for more than there is for it.

Asked again at once and without end, refusals would cost others as much as what is refused.
"""

import asyncio

from tidegate_service.core.access.roles import Principal, share_of

DELAY_S = 1.0
"""As long as the least `Retry-After` asks for."""
PART = 4
"""One in so many of the requests that may be under way waits to be refused; further ones are
refused at once, so that there is room for others."""


class Refusals:
    """The requests that wait to be refused, of one event loop. No more than `max_requests` are
    under way."""

    def __init__(self, max_requests: int, *, delay_s: float = DELAY_S) -> None:
        self._delay_s = delay_s
        self._most = max_requests // PART
        self._waiting = 0

    async def wait(self, principal: Principal | None) -> None:
        """Let a while pass. A caller that is not told from others does not wait: that would hold
        up all of them."""
        if principal is None or share_of(principal) is None or self._waiting >= self._most:
            return
        self._waiting += 1
        try:
            await asyncio.sleep(self._delay_s)
        finally:
            self._waiting -= 1
