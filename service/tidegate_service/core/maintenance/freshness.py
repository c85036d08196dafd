"""What others have put into a plain table's log by the time of a read.

Other writers need not say that they commit. So a read of the table's latest version, by whatever
call, has the log looked at first: one request to the store, for the version behind the index's
head. Where the version is there, the log is checked and read into the index to its end, as a
conflict check does that. The first look after ten seconds lists the log behind the head, too:
others may have cleaned it up past the index, and the next version is absent then. Before VACUUM
deletes files, the whole check is made (`read_to_end`).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial

from tidegate_protocol.log.segment import BrokenLog
from tidegate_service.core.context import Context
from tidegate_service.core.errors import (
    IndexUnavailable,
    OutcomeUnknown,
    ServiceError,
    StorageUnavailable,
    TableQuarantined,
)
from tidegate_service.core.log.catching_up.catch_up import with_log_read
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.log.catching_up.tail import gap
from tidegate_service.core.maintenance.truncation import is_as_indexed, reload_if_truncated
from tidegate_service.core.ports.records import Glance, TableHead, TableState
from tidegate_service.core.sharing.turns import OwnTurns
from tidegate_service.core.tables.lookup import find_head, no_such_table

NO_TURN = nullcontext()


async def plain_table(context: Context, ref: str) -> str | None:
    """The id of the plain table that is meant; None where the table is catalog-managed, whose
    latest version the index has. Raises `NotFound`."""
    known = context.tables.known(ref)
    # A name may be another table's by now, and that of another kind. An id is one table's.
    if known is None or known.id != ref:
        known = context.tables.learn(await find_head(context, ref))
    return None if known.catalog_managed else known.id


async def read_in(
    context: Context, table_id: str, *, through: int | None = None, at_any_age: bool = True
) -> None:
    """Have the index hold all versions that the table's log has now, or those up to `through`.
    `at_any_age`, a look at the log that is as old as `LogLooks` allows is enough for the first.

    A quarantined table is left as it is, and so is one that is quarantined because of what is found
    in its log: both are read as the index has them. Raises `NotFound`, `StorageUnavailable`, and
    `IndexUnavailable` where there is more to read than a request may take time for."""
    if through is not None and (await find_head(context, table_id)).latest_version >= through:
        return
    await context.log_looks.shared(
        (context.who, table_id),
        partial(_look, context, table_id),
        context.monotonic_s,
        at_any_age=at_any_age and through is None,
    )


async def read_to_end(
    context: Context, seen: Glance, reading: AbstractAsyncContextManager[None] = NO_TURN
) -> TableHead:
    """Check the log of a plain table, however short ago the last check was, and have the index hold
    all versions that are in it now. Returns the head then. Before more is done than comparing the
    log with the index, `reading` is waited for.

    A catalog-managed table is left as it is, since the index has its versions; so is a quarantined
    one, and one that is quarantined because of what is found. Raises as `read_in` does, and
    `StorageUnavailable` where there is no log at all: a file system may not be mounted."""
    table = seen.table
    if table.catalog_managed or table.state is not TableState.ACTIVE:
        return table
    # Beside others, a store may show a large file more slowly than by itself.
    with suppress(StorageUnavailable):
        async with _in_time(context):
            if await is_as_indexed(context, seen):
                return table
    async with reading:
        async with _in_time(context):
            if not await context.storage.log(table.location, who=context.who).holds_anything():
                raise StorageUnavailable("there is no log at the table's location")
        await _read_on(context, table.id, OwnTurns(1), spares=False)
    return await find_head(context, table.id)


async def _look(context: Context, table_id: str, lists: bool) -> None:
    head = await find_head(context, table_id)
    if head.state is not TableState.ACTIVE:
        return
    async with _in_time(context):
        goes_on = await _goes_on(context, head, lists=lists)
    if goes_on:
        await _read_on(context, table_id, context.reading_logs)


@asynccontextmanager
async def _in_time(context: Context) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(context.commit_deadline_s / 2):
            yield
    except TimeoutError:
        raise StorageUnavailable(
            "the object store took longer than a request may to show this table's log"
        ) from None


async def _goes_on(context: Context, head: TableHead, *, lists: bool) -> bool:
    """Whether the log has more than the index, as far as one request tells, or two with a list."""
    log = context.storage.log(head.location, who=context.who)
    try:
        if lists and await gap(log, head.latest_version) is not None:
            return True
    except BrokenLog:
        # The check finds what is wrong with it.
        return True
    return await log.holds(head.latest_version + 1)


async def _read_on(
    context: Context, table_id: str, turns: OwnTurns, *, spares: bool = True
) -> None:
    """In a task that goes on where its caller leaves. Without `spares`, the log is checked
    although it was checked a moment ago."""
    key = f"{'read' if spares else 'check'} log for {context.who}", table_id
    once = partial(
        context.running.run_once,
        key,
        lambda: with_log_read(
            context, table_id, partial(_see_end, context, table_id, spares), turns
        ),
    )
    if context.running.under_way(key):
        # Its caller has left. It may have seen the log's end before this request came.
        with suppress(ServiceError):
            await once()
    try:
        await once()
    except TableQuarantined:
        return
    except OutcomeUnknown as error:
        raise IndexUnavailable(
            "the database did not say whether it has what was read of the log; ask again"
        ) from error


async def _see_end(context: Context, table_id: str, spares: bool, sight: SeenBefore) -> None:
    async with context.lookups.turn(context.who):
        glance = await context.index.glance(table_id)
    if glance is None:
        raise no_such_table(table_id)
    table, database = glance.table, glance.database
    if table.state is not TableState.ACTIVE:
        return
    if not (spares and context.log_checks.spare(table, glance.now_ms, database=database)):
        async with context.index.commit_section(table_id, who=context.who) as section:
            await reload_if_truncated(context, section, sight, spares=spares)
    if not sight.has_end(glance):
        raise Behind
