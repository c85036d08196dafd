"""What is kept of forgotten tables: writing it, giving it back, and dropping it for good."""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Insert,
    Row,
    Select,
    Table,
    Text,
    Uuid,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as insert_or_pass
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.access.roles import Caller
from tidegate_service.core.ports.forgotten import KeptPlaces, Recalled
from tidegate_service.core.ports.records import ForgottenTable, TableRecord
from tidegate_service.index.access import audit
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.reading import reads
from tidegate_service.index.rows.keys import key
from tidegate_service.index.schema.forgotten import (
    forgotten_aborts,
    forgotten_commits,
    forgotten_tables,
)
from tidegate_service.index.schema.tables import aborted_transactions, commits, past_commits, tables
from tidegate_service.index.tables import metadata_ids
from tidegate_service.index.tables.locations import folders_above, overlapping
from tidegate_service.index.tables.long_transactions import Statement
from tidegate_service.index.tables.rebuilding import NOT_IN_LOG, close, is_gone, landed

_COMMIT = [column.name for column in past_commits.c]
_ABORT = [column.name for column in forgotten_aborts.c]


async def keep_head(connection: AsyncConnection, table: TableRecord) -> None:
    """Begin to keep a locked table that is about to go."""
    ids = await metadata_ids.known(connection, UUID(table.id))
    head = select(
        tables.c.id,
        tables.c.name,
        tables.c.location,
        tables.c.catalog_managed,
        literal(ids, ARRAY(Text)),
        tables.c.latest_version,
        commits.c.content_sha256,
    ).where(
        tables.c.id == UUID(table.id),
        commits.c.table_id == tables.c.id,
        commits.c.version == tables.c.latest_version,
    )
    names = [c.name for c in forgotten_tables.c if c.name != "forgotten_at"]
    await connection.execute(insert(forgotten_tables).from_select(names, head))


async def keep_commits(
    connection: AsyncConnection, table_id: UUID, *, first: int, last: int
) -> None:
    """Keep what the ids of these versions landed as."""
    await connection.execute(_kept(commits, table_id, commits.c.version.between(first, last)))


async def keep_past_commits(connection: AsyncConnection, table_id: UUID) -> None:
    """The same for the ids of versions that its log did not hold any more."""
    await connection.execute(_kept(past_commits, table_id))


def _kept(source: Table, table_id: UUID, *which: ColumnElement[bool]) -> Insert:
    with_ids = select(*(source.c[name] for name in _COMMIT)).where(
        source.c.table_id == table_id, source.c.transaction_id.is_not(None), *which
    )
    return insert(forgotten_commits).from_select(_COMMIT, with_ids)


async def keep_aborts(connection: AsyncConnection, table_id: UUID) -> None:
    tombstones = select(*(aborted_transactions.c[name] for name in _ABORT)).where(
        aborted_transactions.c.table_id == table_id
    )
    await connection.execute(insert(forgotten_aborts).from_select(_ABORT, tombstones))


async def at(
    connection: AsyncConnection,
    location: str,
    ids: Collection[str] | None,
    catalog_managed: bool | None,
    most: int | None,
) -> list[ForgottenTable]:
    """As `core.ports.forgotten.ForgottenHere.forgotten`."""
    query = _records().where(forgotten_tables.c.location == location).limit(most)
    if catalog_managed is not None:
        query = query.where(forgotten_tables.c.catalog_managed == catalog_managed)
    if ids is not None:
        wanted = literal(sorted(map(key, ids)), ARRAY(Text))
        query = query.where(forgotten_tables.c.metadata_ids.overlap(wanted))
    rows = await connection.execute(query.order_by(forgotten_tables.c.forgotten_at.desc()))
    return [_record(row) for row in rows]


async def kept_places(
    connection: AsyncConnection, location: str, scopes: Sequence[str]
) -> KeptPlaces:
    place = forgotten_tables.c.location
    is_theirs = reads.in_scopes(func.lower(forgotten_tables.c.name), scopes)
    others = exists().where(overlapping(place, location), ~is_theirs)
    around = (
        select(place)
        .where(place.in_(folders_above(location)))
        .group_by(place)
        .having(func.bool_and(is_theirs))
    )
    return KeptPlaces(
        others=bool((await connection.execute(select(others))).scalar_one()),
        around=frozenset((await connection.execute(around)).scalars()),
    )


async def page(
    connection: AsyncConnection, *, after: UUID | None, limit: int
) -> list[ForgottenTable]:
    query = _records().order_by(forgotten_tables.c.id).limit(limit)
    if after is not None:
        query = query.where(forgotten_tables.c.id > after)
    return [_record(row) for row in await connection.execute(query)]


def _records() -> Select[Any]:
    since = func.extract("epoch", forgotten_tables.c.forgotten_at) * 1000
    # Not the ids of its metadata, which may be many.
    shown = [column for column in forgotten_tables.c if column.name != "metadata_ids"]
    return select(*shown, func.floor(since).label("forgotten_ms"))


def _record(row: Row[Any]) -> ForgottenTable:
    return ForgottenTable(
        id=str(row.id),
        name=row.name,
        location=row.location,
        catalog_managed=row.catalog_managed,
        latest_version=row.latest_version,
        content_sha256=row.content_sha256,
        forgotten_ms=int(row.forgotten_ms),
    )


async def recall(
    statement: Statement, table: TableRecord, forgotten: ForgottenTable, limits: IndexLimits
) -> Recalled:
    """As `core.ports.forgotten.ForgottenHere.recall`."""
    table_id, kept_id, head = UUID(table.id), UUID(forgotten.id), table.latest_version
    kept, aborts = forgotten_commits, forgotten_aborts
    async with statement() as connection:
        # In the order of `delete_forgotten`: the head, then its ids.
        if not await _locked_head(connection, kept_id):
            return Recalled()
    async with statement() as connection:
        rewritten: int | None = (
            await connection.execute(
                select(func.min(commits.c.version)).where(
                    commits.c.table_id == table_id,
                    kept.c.table_id == kept_id,
                    commits.c.version == kept.c.version,
                    commits.c.content_sha256 != kept.c.content_sha256,
                )
            )
        ).scalar_one()
    lost: list[tuple[int, str]] = []
    async for some in _taken(statement, kept, kept_id, limits):
        lost += await _recall_commits(statement, table_id, some, head=head)
    # Where the log's end was lost, so were fences.
    shorter = not forgotten.catalog_managed and head < forgotten.latest_version
    unfenced = literal(head) if shorter else aborts.c.unfenced_after
    async for some in _taken(statement, aborts, kept_id, limits):
        await _recall_aborts(statement, table_id, some, unfenced=unfenced)
    async with statement() as connection:
        await metadata_ids.take_over(connection, table_id, kept_id=kept_id)
    await _drop_head(statement, kept_id)
    return Recalled(rewritten=rewritten, lost=sorted(lost))


async def _recall_commits(
    statement: Statement, table_id: UUID, some: ColumnElement[bool], *, head: int
) -> list[tuple[int, str]]:
    kept = forgotten_commits
    same_id = (
        some
        & (commits.c.table_id == table_id)
        & (commits.c.transaction_id == kept.c.transaction_id)
    )
    not_there = is_gone(kept, table_id, literal(head))
    async with statement() as connection:
        # A commit that only claims an id has it not, though the log forgot whose it is.
        await connection.execute(
            update(commits)
            .where(
                same_id,
                commits.c.version != kept.c.version,
                ~(not_there & ~commits.c.is_foreign),
            )
            .values(transaction_id=None)
        )
    async with statement() as connection:
        # What was answered, and the log does not say.
        await connection.execute(
            update(commits)
            .where(same_id, commits.c.version == kept.c.version)
            .values({name: kept.c[name] for name in NOT_IN_LOG})
        )
    # What landed behind the log's end was lost since, and its id with it.
    unheld = some & (kept.c.version <= head) & ~landed(table_id, kept)
    async with statement() as connection:
        replaced = select(kept.c.version, kept.c.transaction_id).where(unheld, not_there)
        lost = await close(connection, table_id, replaced)
    async with statement() as connection:
        gone = select(*_as_of(table_id, kept, _COMMIT)).where(unheld, ~not_there)
        await connection.execute(
            # Kept twice where a release before this one registered the table in between.
            insert_or_pass(past_commits).from_select(_COMMIT, gone).on_conflict_do_nothing()
        )
    return lost


async def _recall_aborts(
    statement: Statement,
    table_id: UUID,
    some: ColumnElement[bool],
    *,
    unfenced: ColumnElement[Any],
) -> None:
    aborts = forgotten_aborts
    async with statement() as connection:
        await connection.execute(
            update(commits)
            .where(
                some,
                commits.c.table_id == table_id,
                commits.c.transaction_id == aborts.c.transaction_id,
                # What this service ratified has landed, whatever a tombstone says.
                commits.c.is_foreign,
            )
            .values(transaction_id=None)
        )
    async with statement() as connection:
        *columns, _ = _as_of(table_id, aborts, _ABORT)
        closed = select(*columns, unfenced).where(some, ~landed(table_id, aborts))
        await connection.execute(
            # Fences that the log holds have brought theirs back already.
            insert_or_pass(aborted_transactions)
            .from_select(_ABORT, closed)
            .on_conflict_do_nothing()
        )


def _as_of(table_id: UUID, source: Table, names: Sequence[str]) -> list[ColumnElement[Any]]:
    """The columns of the source, under another table's id."""
    return [literal(table_id, Uuid()) if n == "table_id" else source.c[n] for n in names]


async def delete_forgotten(
    statement: Statement, table_id: UUID, *, by: Caller, limits: IndexLimits
) -> bool:
    """Drop what is kept of a table, and note it; False where nothing is."""
    async with statement() as connection:
        row = await _locked_head(connection, table_id)
        if row is None:
            return False
        gone = Change(deed=Deed.DELETE_FORGOTTEN, by=by, version=row.latest_version)
        await audit.record_change(connection, gone, table_id=table_id, table_name=row.name)
    for ids in (forgotten_commits, forgotten_aborts):
        async for _ in _taken(statement, ids, table_id, limits):
            pass
    await _drop_head(statement, table_id)
    return True


async def _taken(
    statement: Statement, ids: Table, table_id: UUID, limits: IndexLimits
) -> AsyncIterator[ColumnElement[bool]]:
    """Which ids of a forgotten table to look at next, so many that a statement has the time; they
    are dropped behind the caller."""
    name, of_table = ids.c.transaction_id, ids.c.table_id == table_id
    first = select(name).where(of_table).order_by(name).limit(limits.forgotten_ids).subquery()
    while True:
        async with statement() as connection:
            last = await connection.execute(select(func.max(first.c.transaction_id)))
            through = last.scalar_one()
        if through is None:
            return
        some = of_table & (name <= through)
        yield some
        async with statement() as connection:
            await connection.execute(delete(ids).where(some))


async def _locked_head(connection: AsyncConnection, table_id: UUID) -> Row[Any] | None:
    """The row of a forgotten table; None where nothing is kept of it any more."""
    head = select(forgotten_tables).where(forgotten_tables.c.id == table_id)
    return (await connection.execute(head.with_for_update())).one_or_none()


async def _drop_head(statement: Statement, table_id: UUID) -> None:
    async with statement() as connection:
        await connection.execute(delete(forgotten_tables).where(forgotten_tables.c.id == table_id))
