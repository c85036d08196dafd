"""Making all manifests of a table because somebody asks for them."""

import asyncio

from tidegate_protocol.base.problems import Code
from tidegate_service.core.context import Context
from tidegate_service.core.errors import (
    NotFound,
    Refused,
    ServiceError,
    ShuttingDown,
    StorageUnavailable,
)
from tidegate_service.core.manifests.in_order import set_back
from tidegate_service.core.manifests.making import ManifestsWritten, make_manifests
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.tables.lookup import check_open, get_head, no_such_table

PUBLISHED_WITHIN_S = 20.0
ASKED_EVERY_S = 0.05


async def generate_manifests(context: Context, ref: str) -> tuple[TableHead, ManifestsWritten]:
    """Write all manifests of the table's latest version, and remove the others. Raises `Refused`
    for a table that such readers would read wrongly, and `StorageUnavailable` where the version is
    not published in time. It goes on where the caller leaves."""
    table = await get_head(context, ref)
    check_open(table)
    await context.manifests.take(context.caller.principal.name)
    making = _in_turn(context, table)
    try:
        return table, await context.running.run(("manifests", table.id), making)
    except ShuttingDown:
        # It was not begun.
        context.manifests.end(context.caller.principal.name)
        raise


async def _in_turn(context: Context, table: TableHead) -> ManifestsWritten:
    """The turn lasts as long as the work, also where its caller has left."""
    try:
        return await _generate(context, table)
    finally:
        context.manifests.end(context.caller.principal.name)


async def _generate(context: Context, table: TableHead) -> ManifestsWritten:
    await _published(context, table)
    state = await context.index.state_at(table.id, table.latest_version)
    if state is None or state.metadata is None:
        raise NotFound(
            f"version {table.latest_version} of the table is not held any more",
            code=Code.VERSION_NOT_FOUND,
        )
    try:
        written = await make_manifests(
            context.index,
            context.storage,
            table,
            state.metadata,
            version=table.latest_version,
            who=context.who,
            limits=context.manifest_limits,
            faults=context.faults,
        )
    except Refused:
        # Nothing was written.
        raise
    except ServiceError:
        await set_back(context.upkeep, table.id, table.latest_version)
        raise
    # The hook may have put newer ones meanwhile.
    await set_back(context.upkeep, table.id, table.latest_version)
    return written


async def _published(context: Context, table: TableHead) -> None:
    """Until its latest version is in the log: what may yet be lost is nothing to be read by."""
    left_s, head = PUBLISHED_WITHIN_S, table
    context.wake_publisher(table.id)
    while head.published_version < table.latest_version:
        if left_s <= 0:
            raise StorageUnavailable(
                f"version {table.latest_version} is not in the log yet; its manifests can be "
                "written then"
            )
        await asyncio.sleep(ASKED_EVERY_S)
        left_s -= ASKED_EVERY_S
        found = await context.index.head(table.id)
        if found is None:
            raise no_such_table(table.name)
        head = found
