"""The predicates of requests: how much of them is taken, and where they are read.

Reading takes time linear in the text, 5 to 25 us a character. Short ones are read where they are
met; long ones in threads of their own, one predicate at a time, so that whoever leaves has no
further one read. What judging by them takes bounds the group of a proposal
(`core.commit.queue.table_queue`); with very long ones it is decided alone.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import (
    LONG_PREDICATES,
    VERY_LONG_PREDICATES,
    Proposal,
    predicates_length,
)
from tidegate_protocol.scan.predicates import InvalidPredicate, terms_of
from tidegate_protocol.scan.reads import parse_once
from tidegate_protocol.schema.table_schema import InvalidSchema
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.index import Index
from tidegate_service.core.sharing.pools import Pool, Rests, Share
from tidegate_service.core.sharing.shares import most_of_one
from tidegate_service.core.sharing.turns import OwnTurns, Turns

T = TypeVar("T")

MAX_BYTES = 128 * 1024
"""Of all predicates of a request."""
MAX_TERMS = 16_384
"""Names, operators and parentheses of all predicates of a request (`terms_of`)."""
MOST_VERY_LONG = 16
MOST_LONG = 128
"""Proposals with very long predicates, and with other long ones, that have been read and not been
decided: read, these take three hundred times their text, so the latter 40 MiB together."""
_TABLES = 4
"""So many tables fill these: one whose store hangs leaves the most of them to others."""


def is_long(texts: Sequence[str]) -> bool:
    """Whether reading them takes long."""
    return predicates_length(texts) >= LONG_PREDICATES


class _Room:
    """For so many proposals at once, each of a table; a principal never has all places."""

    def __init__(self, most: int) -> None:
        self._own = OwnTurns(most_of_one(most))
        self._all = Turns(most)
        self._most_of_a_table = most // _TABLES
        self._of_table: WeakValueDictionary[str, Turns] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, table_id: str, principal: str) -> AsyncIterator[None]:
        """Wait for a turn, and end it afterwards."""
        of_table = self._of_table.setdefault(table_id, Turns(self._most_of_a_table))
        # Whoever waits for a part of its own holds none of a table that others have, too.
        async with self._own.turn(principal), of_table.turn(principal), self._all.turn(principal):
            yield


async def weighed(share: Share, texts: Sequence[str]) -> int:
    """The terms of all of them. Raises `Refused` (`too-large`) for more than a request may have,
    before any is read."""
    if predicates_length(texts) < VERY_LONG_PREDICATES:
        # So few characters are never too many terms.
        return sum(map(terms_of, texts))
    # A character is a byte at least, so the sum bounds what is encoded.
    if sum(map(len, texts)) > MAX_BYTES or sum(len(_encoded(text)) for text in texts) > MAX_BYTES:
        raise _too_large(f"the predicates have more than {MAX_BYTES} bytes")
    terms = await share.run(lambda: sum(map(terms_of, texts)))
    if terms > MAX_TERMS:
        raise _too_large(
            f"the predicates have {terms} names, operators and parentheses, a LIKE counted as "
            f"8; no more than {MAX_TERMS} are taken"
        )
    return terms


class LongPredicates:
    """The proposals whose long predicates are read, of one instance."""

    def __init__(self) -> None:
        self._threads = Pool("predicates", 1)
        self._very_long = _Room(MOST_VERY_LONG)
        self._long = _Room(MOST_LONG)
        self._deciding: set[asyncio.Task[Any]] = set()

    async def decided(
        self,
        index: Index,
        table_id: str,
        proposal: Proposal,
        decide: Callable[[], Coroutine[Any, Any, T]],
        *,
        principal: str,
    ) -> T:
        """What `decide` says of a proposal with long predicates, which are read before: nobody
        waits for the table meanwhile. Raises `Refused` (`too-large`), and what `decide` raises.

        Whoever leaves before that has no further predicate read. A decision that has begun goes
        to its end, and what was read is there until then. A text that is no predicate is told of
        by the decision, and what cannot be read yet, because the index does not have the version,
        is read there, too.
        """
        share = self._threads.of(principal)
        room = self._very_long if proposal.reads.is_very_long else self._long
        async with AsyncExitStack() as held:
            await held.enter_async_context(room.turn(table_id, principal))
            held.callback(proposal.reads.parsed.clear)
            await weighed(share, proposal.reads.predicates)
            await _read(share, index, table_id, proposal)
            deciding = asyncio.create_task(_holding(held.pop_all(), decide), name="long-predicates")
        self._deciding.add(deciding)
        deciding.add_done_callback(self._decided)
        return await asyncio.shield(deciding)

    def _decided(self, deciding: asyncio.Task[Any]) -> None:
        self._deciding.discard(deciding)
        if not deciding.cancelled():
            # Whoever waits is told; nobody else is.
            deciding.exception()


async def _holding(held: AsyncExitStack, decide: Callable[[], Coroutine[Any, Any, T]]) -> T:
    async with held:
        return await decide()


async def _read(share: Share, index: Index, table_id: str, proposal: Proposal) -> None:
    version = proposal.read_version
    state = None if version is None or version < 0 else await index.state_at(table_id, version)
    if state is None or state.metadata is None:
        return
    for text in proposal.reads.predicates:
        try:
            await share.run(
                partial(parse_once, proposal.reads, text, state.metadata, pause=Rests())
            )
        except (InvalidPredicate, InvalidSchema):
            return


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _too_large(detail: str) -> Refused:
    return Refused(
        detail,
        code=Code.TOO_LARGE,
        hint="list values in one IN, or split the work into several transactions",
    )
