"""Tokens are looked up in the index together, as many as wait, by one query at a time.

So a flood of tokens that nobody has costs the index no more than a few of them, and holds nobody up
whose token is not known here yet: addresses have their turns at the next query.
"""

import asyncio
import contextvars
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate_service.core.access.roles import Principal

AT_ONCE = 500
"""Ids in a query, which takes a few milliseconds for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveToken:
    """A token that is neither expired nor revoked."""

    principal: Principal
    sha256: bytes


_Answer = asyncio.Future[LiveToken | Exception | None]


class LiveTokens(Protocol):
    async def live(self, ids: Sequence[str]) -> Mapping[str, LiveToken]:
        """Those that are neither expired nor revoked by the database's clock, by their ids. Raises
        `IndexUnavailable`."""
        ...


class Lookups:
    """Those of one event loop."""

    def __init__(self, tokens: LiveTokens) -> None:
        self._tokens = tokens
        self._waiting: dict[str, dict[str, _Answer]] = {}
        self._running: asyncio.Task[None] | None = None

    async def live(self, token_id: str, *, source: str) -> LiveToken | None:
        """The token, by the next query that has room for one more id of the source. Raises what
        the query raises."""
        of_source = self._waiting.setdefault(source, {})
        answer = of_source.get(token_id)
        if answer is None:
            answer = of_source[token_id] = asyncio.get_running_loop().create_future()
        if self._running is None:
            # No request's variables: it asks for many.
            self._running = asyncio.create_task(
                self._look_up(), name="tokens", context=contextvars.Context()
            )
        # Others may wait for the same one.
        found = await asyncio.shield(answer)
        if isinstance(found, Exception):
            raise found
        return found

    async def _look_up(self) -> None:
        try:
            while asked := self._next():
                found: Mapping[str, LiveToken] | Exception
                try:
                    found = await self._tokens.live(list(dict.fromkeys(name for name, _ in asked)))
                except Exception as error:
                    found = error
                for token_id, answer in asked:
                    answer.set_result(
                        found if isinstance(found, Exception) else found.get(token_id)
                    )
        finally:
            self._running = None

    def _next(self) -> list[tuple[str, _Answer]]:
        """Some of those who wait, one of each source in turn."""
        taken: list[tuple[str, _Answer]] = []
        while self._waiting and len(taken) < AT_ONCE:
            source, of_source = next(iter(self._waiting.items()))
            token_id = next(iter(of_source))
            taken.append((token_id, of_source.pop(token_id)))
            del self._waiting[source]
            if of_source:
                self._waiting[source] = of_source
        return taken
