"""Logs of other tables before files are deleted: a shallow clone names files of the table that it
was made from, and a RESTORE brings files back.

Logs of plain tables, which others may have written past the service, are read into the index. Logs
of catalog-managed tables are checked for versions that the database has lost.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from typing import TypeVar

from tidegate_service.core.access.roles import Role
from tidegate_service.core.catalog_managed.set_back import check_kept
from tidegate_service.core.context import Context
from tidegate_service.core.errors import (
    NotFound,
    Refused,
    Unavailable,
    with_cause,
)
from tidegate_service.core.maintenance.freshness import read_in, read_to_end
from tidegate_service.core.ports.records import Glance, TableHead, TableRecord
from tidegate_service.core.tables.lookup import check_open, find_head

logger = logging.getLogger("tidegate.service")

T = TypeVar("T")

LOOKS_AT_ONCE = 16
READ_AT_ONCE = 4
"""Logs that have more than the index."""


async def read_all(context: Context, table: TableRecord, looked: Callable[[], None]) -> None:
    """Check the logs of all tables but this one, and have the index hold what is in those of plain
    tables. `looked` is called behind each.

    Raises `Unavailable` where one is quarantined or its log cannot be read, with the code of what
    was met: what that table names of this one's files is not known."""
    reading = asyncio.Semaphore(READ_AT_ONCE)

    async def read(seen: Glance) -> None:
        with _told(context, table, seen.table):
            if seen.table.catalog_managed:
                await check_kept(context, seen)
            else:
                check_open(await read_to_end(context, seen, reading))
        looked()

    async with aclosing(context.index.other_tables(but=table.id)) as pages:
        async for page in pages:
            await _each(page, read, at_once=LOOKS_AT_ONCE)


async def read_on(context: Context, table: TableRecord, table_ids: Iterable[str]) -> None:
    """Have the index hold what others have put into these tables' logs, as a read of them does.
    Raises as `read_all`."""

    async def read(table_id: str) -> None:
        async with context.lookups.turn(context.who):
            head = await context.index.head(table_id)
        if head is None or head.catalog_managed:
            return
        with _told(context, table, head):
            await read_in(context, table_id, at_any_age=False)
            check_open(await find_head(context, table_id))

    await _each(table_ids, read, at_once=LOOKS_AT_ONCE)


async def _each(items: Iterable[T], work: Callable[[T], Awaitable[None]], *, at_once: int) -> None:
    """Raises what the work on one of the items raised first, and leaves the others then."""
    left = iter(items)

    async def one_by_one(left: Iterator[T]) -> None:
        for item in left:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one_by_one(left), name="vacuum") for _ in range(at_once)]
    except ExceptionGroup as errors:
        first = errors.exceptions[0]
        raise first from first.__cause__
    for task in tasks:
        # A group takes one that was cancelled for one that is done.
        task.result()


@contextmanager
def _told(context: Context, table: TableRecord, other: TableHead) -> Iterator[None]:
    """What keeps another table's log from being read is told to those who may know of that table.
    Nothing is told of one that was forgotten meanwhile."""
    try:
        yield
    except NotFound:
        return
    except (Unavailable, Refused) as error:
        logger.warning(
            "a table is not vacuumed, since another one may name files of it whose log is not read",
            extra={"table": table.name, "naming_table": other.name, "error": with_cause(error)},
        )
        may_know = context.caller.principal.may(Role.READER, other.name)
        why = error.detail if may_know else "whoever runs the service finds which in its log"
        raise Unavailable(
            f"table {table.name} is not vacuumed: {named(context, other.name)} may name files of "
            f"it, and its log is not read ({why}); see to that log or forget that table "
            "(docs/vacuum.md, beside other writers)",
            code=error.code,
        ) from error


def named(context: Context, name: str) -> str:
    """How the caller is told of a table, which may be none that it may know of."""
    may_know = context.caller.principal.may(Role.READER, name)
    return f"the table {name}" if may_know else "another table"
