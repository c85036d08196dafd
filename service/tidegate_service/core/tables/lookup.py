"""Finding and listing tables."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import DomainMetadata
from tidegate_protocol.proposal.transaction import ReadState
from tidegate_service.core.access.roles import Role
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, NotFound, TableExists, TableQuarantined
from tidegate_service.core.ports.records import (
    LONG_METADATA,
    PAGE_BYTES,
    TableHead,
    TableRecord,
    TableState,
)

READ_ATTEMPTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Tables in name order; `next_cursor` is None on the last page."""

    tables: tuple[TableRecord, ...]
    next_cursor: str | None


async def get_head(context: Context, ref: str) -> TableHead:
    """The head of the table with this full name (in any case) or id, which may be told to callers:
    a synchronous standby has the head of a catalog-managed table (`core.ports.told`), and so all
    versions up to it. Raises `NotFound`, and `IndexUnavailable` where the standby does not
    answer."""
    async with context.lookups.turn(context.who):
        head = await context.index.told_head(ref, known=context.heads.replicated)
    if head is None:
        raise no_such_table(ref)
    return head


async def get_table(context: Context, ref: str) -> TableRecord:
    """The same with the protocol and metadata of the head's version. Raises as `get_head` does."""
    for _ in range(READ_ATTEMPTS):
        head = await _narrow_or_head(context, ref)
        if isinstance(head, TableRecord):
            return head
        async with wide_turn(context, head):
            state = await context.index.state_at(head.id, head.latest_version)
        again = await find_head(context, head.id)
        if state is not None and again.epoch == head.epoch:
            return head.with_state(state.protocol, state.metadata)
    raise IndexUnavailable(f"table {head.name} was made anew meanwhile; ask again")


async def _narrow_or_head(context: Context, ref: str) -> TableRecord | TableHead:
    """The head, with protocol and metadata where these are short."""
    async with context.lookups.turn(context.who):
        head = await context.index.told_table(
            ref, known=context.heads.replicated, most_metadata=LONG_METADATA
        )
    if head is None:
        raise no_such_table(ref)
    return head


async def find_head(context: Context, ref: str) -> TableHead:
    """The head as the index has it, for work that does not tell it to callers, or that waits for
    the standby by a COMMIT of its own. Raises `NotFound`."""
    head = await _head(context, ref)
    if head is None:
        raise no_such_table(ref)
    return head


async def domain(context: Context, ref: str, name: str) -> DomainMetadata | None:
    """The latest action of a metadata domain; None where there is none, or it was removed. Raises
    as `get_head` does."""
    table = await find_head(context, ref)
    # It may be megabytes, as a table's metadata may.
    async with context.wide_tables.turn(context.who):
        return await context.index.domain(table.id, name, known=context.heads.replicated)


async def default_location(context: Context, name: str) -> str:
    """Where a table to be of this name is put unless its creation names a place. Raises
    `TableExists` where there is one."""
    if await is_taken(context, name):
        raise TableExists(f"there is a table {name} already")
    return context.locations.default(name)


async def is_taken(context: Context, name: str) -> bool:
    """Whether there is a table of this full name, in any case."""
    return await _head(context, name) is not None


async def _head(context: Context, ref: str) -> TableHead | None:
    async with context.lookups.turn(context.who):
        return await context.index.head(ref)


@asynccontextmanager
async def wide_turn(context: Context, head: TableHead) -> AsyncIterator[None]:
    """The caller's turn at reading the table's protocol and metadata. Reading megabytes of them
    holds up the event loop for tens of milliseconds, and they take several times as much memory.
    For a table with few columns, no turn is waited for."""
    if head.metadata_bytes <= LONG_METADATA:
        yield
        return
    async with context.wide_tables.turn(context.who):
        yield


async def state_at(
    context: Context, table_id: str, version: int, *, most_bytes: int | None = LONG_METADATA
) -> ReadState | None:
    """The protocol and metadata at a version, in the caller's turn; None where the index does not
    have the version. Raises `TakesLong` where they have more bytes, which its length tells: with
    any number of them (None), one's turns are as those of `wide_turn`."""
    turns = context.wide_tables if most_bytes is None else context.lookups
    async with turns.turn(context.who):
        return await context.index.state_at(table_id, version, most_bytes=most_bytes)


@dataclass(frozen=True, slots=True)
class VersionsInTurn:
    """A table's versions, for `core.instance.long_predicates`."""

    context: Context
    table_id: str

    async def is_used(self, transaction_id: str) -> bool:
        """As of the index, in the caller's turn at looking something up."""
        async with self.context.lookups.turn(self.context.who):
            return await self.context.index.is_used(self.table_id, transaction_id)

    async def state_at(self, version: int, *, most_bytes: int | None) -> ReadState | None:
        """As `state_at` here."""
        return await state_at(self.context, self.table_id, version, most_bytes=most_bytes)


@asynccontextmanager
async def wide_section(context: Context, head: TableHead) -> AsyncIterator[None]:
    """The caller's turn at a commit section of the table, which reads protocol and metadata under
    the row's lock. A section may wait for the lock, so each table has turns of its own."""
    if context.who is None or head.metadata_bytes <= LONG_METADATA:
        yield
        return
    async with context.wide_sections.turn(f"{context.who} {head.id}"):
        yield


async def durable_table(context: Context, table_id: str) -> TableRecord | None:
    """The table, once its row is committed wherever a commit has to be; None where it is gone.

    A row is seen as soon as it is committed, though a synchronous standby may not have it yet. The
    COMMIT here waits for the standby. Raises `CommitStateUnknown` where it gets no answer.
    """
    try:
        async with context.index.commit_section(table_id, who=context.who) as section:
            await section.save()
            return section.table
    except NotFound:
        return None


def check_open(table: TableHead) -> None:
    """Raise `TableQuarantined` for a table that is closed to commits."""
    if table.state is TableState.QUARANTINED:
        raise TableQuarantined(f"table {table.name} takes no commits: {table.state_reason}")


def no_such_table(ref: str) -> NotFound:
    return NotFound(f"there is no table {excerpt(ref)}", code=Code.TABLE_NOT_FOUND)


async def list_tables(
    context: Context,
    *,
    prefix: str,
    cursor: str | None,
    limit: int,
    most_bytes: int = PAGE_BYTES,
) -> Page:
    """Up to `limit` tables that the caller may read, whose name starts with `prefix`, after the
    cursor's name. A page ends with the table that makes it larger than `most_bytes`."""
    within = context.caller.principal.scopes(Role.READER)
    known = context.heads.replicated
    async with context.listings.turn(context.who):
        found = await context.index.tables(
            prefix=prefix,
            after=cursor,
            limit=limit + 1,
            known=known,
            within=within,
            most_bytes=most_bytes,
        )
    tables = tuple(found[:limit])
    more = len(found) > limit or metadata_bytes(found) >= most_bytes
    return Page(tables=tables, next_cursor=tables[-1].name if more else None)


def metadata_bytes(found: Sequence[TableRecord]) -> int:
    """How long the protocols and metadata of tables are."""
    told = [action for table in found for action in (table.protocol, table.metadata)]
    return sum(len(action.raw) for action in told if action is not None)
