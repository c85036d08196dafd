"""The predicates of requests: how much of them is taken, and where they are read.

Reading takes time linear in the text, 5 to 25 us a character. Short ones are read where they are
met; long ones in threads of their own (`predicate_threads`), one predicate at a time, so that
whoever leaves has no further one read. What judging by them takes bounds the group of a proposal
(`core.commit.queue.table_queue`); with very long ones it is decided alone.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import (
    LONG_PREDICATES,
    VERY_LONG_PREDICATES,
    Proposal,
    Reads,
    ReadState,
    predicates_length,
)
from tidegate_protocol.scan.predicates import InvalidPredicate, terms_of
from tidegate_protocol.scan.reads import parse_once
from tidegate_protocol.schema.table_schema import InvalidSchema
from tidegate_service.core.errors import Refused
from tidegate_service.core.instance.predicate_threads import LONGEST_PREDICATES, PredicateThreads
from tidegate_service.core.ports.index import TakesLong
from tidegate_service.core.ports.records import LONG_METADATA
from tidegate_service.core.sharing.pools import Share
from tidegate_service.core.sharing.shares import most_of_one
from tidegate_service.core.sharing.turns import OwnTurns, Turns

T = TypeVar("T")

MAX_BYTES = 128 * 1024
"""Of all predicates of a request."""
MAX_TERMS = 16_384
"""Names, operators and parentheses of all predicates of a request (`terms_of`)."""
MOST_LONGEST = 16
MOST_VERY_LONG = 32
MOST_LONG = 128
"""Proposals with the longest predicates, with other very long ones, and with other long ones, that
have been read and not been decided: read, these take three hundred times their text, so each of the
latter two 40 MiB together."""
MOST_WIDE = 4
"""Those of a principal whose tables had more than `LONG_METADATA` at the version that they read.
What is parsed holds the schema that it was parsed over, which may be megabytes."""
_CHARACTERS_OF_A_SCHEMA = 100
"""Are parsed, where they are not remembered, in the time that one of a predicate is read in."""
_TABLES = 4
"""So many tables fill these: one whose store hangs leaves the most of them to others."""


class Versions(Protocol):
    """What the index has of the proposal's table, in the caller's turns at reading it."""

    async def is_used(self, transaction_id: str) -> bool:
        """As of `core.ports.index.Index`."""

    async def state_at(self, version: int, *, most_bytes: int | None) -> ReadState | None:
        """As of `core.tables.lookup`."""


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
        self.threads = PredicateThreads()
        self._longest = _Room(MOST_LONGEST)
        self._very_long = _Room(MOST_VERY_LONG)
        self._long = _Room(MOST_LONG)
        self._wide = OwnTurns(MOST_WIDE)
        self._deciding: set[asyncio.Task[Any]] = set()

    async def decided(
        self,
        versions: Versions,
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
        begin = partial(self._begun, versions, table_id, proposal, decide, principal=principal)
        try:
            deciding = await begin(most_bytes=LONG_METADATA)
        except TakesLong:
            deciding = await begin(most_bytes=None)
        return await asyncio.shield(deciding)

    async def _begun(
        self,
        versions: Versions,
        table_id: str,
        proposal: Proposal,
        decide: Callable[[], Coroutine[Any, Any, T]],
        *,
        principal: str,
        most_bytes: int | None,
    ) -> asyncio.Task[T]:
        """The decision, with the predicates read. Raises `TakesLong` where the table had more
        protocol and metadata at the version."""
        room = self._room_for(proposal.reads)
        async with AsyncExitStack() as held:
            if most_bytes is None:
                # Whoever waits for it has no place that others might have.
                await held.enter_async_context(self._wide.turn(principal))
            await held.enter_async_context(room.turn(table_id, principal))
            held.callback(proposal.reads.parsed.clear)
            share = self.threads.of(principal, proposal.reads.length)
            await weighed(share, proposal.reads.predicates)
            await self._read(versions, proposal, principal, most_bytes)
            deciding = asyncio.create_task(_holding(held.pop_all(), decide), name="long-predicates")
        self._deciding.add(deciding)
        deciding.add_done_callback(self._decided)
        return deciding

    def _room_for(self, reads: Reads) -> _Room:
        if reads.length >= LONGEST_PREDICATES:
            return self._longest
        return self._very_long if reads.is_very_long else self._long

    async def _read(
        self, versions: Versions, proposal: Proposal, principal: str, most_bytes: int | None
    ) -> None:
        version = proposal.read_version
        # What has landed is answered as it was, without reading anything.
        if version is None or version < 0 or await versions.is_used(proposal.transaction_id):
            return
        state = await versions.state_at(version, most_bytes=most_bytes)
        if state is None or state.metadata is None:
            return
        schema = len(state.metadata.schema_string) // _CHARACTERS_OF_A_SCHEMA
        for text in proposal.reads.predicates:
            length = predicates_length([text]) + schema
            reading = partial(parse_once, proposal.reads, text, state.metadata)
            try:
                await self.threads.read(principal, length, reading)
            except (InvalidPredicate, InvalidSchema):
                return

    def _decided(self, deciding: asyncio.Task[Any]) -> None:
        self._deciding.discard(deciding)
        if not deciding.cancelled():
            # Whoever waits is told; nobody else is.
            deciding.exception()


async def _holding(held: AsyncExitStack, decide: Callable[[], Coroutine[Any, Any, T]]) -> T:
    async with held:
        return await decide()


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _too_large(detail: str) -> Refused:
    return Refused(
        detail,
        code=Code.TOO_LARGE,
        hint="list values in one IN, or split the work into several transactions",
    )
