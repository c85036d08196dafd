"""Forgetting a table that the service has: its log is made whole, and then the index lets it go.

Where an instance is cut off in it, any instance goes on (`core.ports.upkeep.forgettings`).
"""

import logging
from functools import partial

from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, ServiceError, TableQuarantined
from tidegate_service.core.maintenance.kinds import maintenance_of
from tidegate_service.core.observe.faults import ForgetStep, around
from tidegate_service.core.ports.records import TableHead, TableState
from tidegate_service.core.ports.upkeep.forgettings import Forgetting
from tidegate_service.core.tables.in_turn import in_turn
from tidegate_service.core.tables.lookup import find_head

logger = logging.getLogger("tidegate.maintenance")

FORGET_ATTEMPTS = 5


async def forget_table(context: Context, ref: str) -> None:
    """Delete everything the index knows of the table. Its files, log and data, stay.

    Versions that wait for publishing are published first, since the index has their only copy.
    Published versions whose files are gone from the log are put back. For that, a catalog-managed
    table's log is read.

    Raises `TableQuarantined` where versions cannot be published or put back. It is also raised
    where a published version has other bytes in the log than were ratified, since the index may
    have the last copy of these, and where a published version is not in the index, since nothing
    would be kept of it. Raises `Refused` (`broken-log`) where a checkpoint has to be put back and
    one that cannot be read has its name. Raises `Unavailable` where new versions keep coming, and
    where the log cannot be asked.

    A forgetting that has begun goes on where the caller leaves, and where this instance ends, by
    another instance (`resume_forgetting`).
    """
    table = await find_head(context, ref)
    work = partial(_asked, context, table)
    await in_turn(context, context.maintaining, ("forget", table.id), work)


async def resume_forgetting(context: Context, forgetting: Forgetting) -> None:
    """Go on with what the context's caller asked for and an instance was cut off in. Raises as
    `forget_table`, and `NotFound` where the table is gone."""
    async with context.forgettings.held(forgetting.table_id, forgetting.claim):
        table = await find_head(context, forgetting.table_id)
        work = partial(_forget, context, table)
        await in_turn(context, context.maintaining, ("forget", table.id), work)


async def _asked(context: Context, table: TableHead) -> None:
    async with around(context.faults, ForgetStep.KEEP):
        claim = await context.forgettings.keep(table.id, by=context.caller)
    try:
        async with context.forgettings.held(table.id, claim):
            await _forget(context, table)
    except Exception:
        # The caller is told that it has failed, so nothing may go on.
        await _drop(context, table, claim)
        raise


async def _drop(context: Context, table: TableHead, claim: str) -> None:
    try:
        await context.forgettings.drop(table.id, claim)
    except ServiceError as error:
        logger.warning(
            "a forgetting that failed is tried again",
            extra={"table": table.name, "reason": error.detail},
        )


async def _forget(context: Context, table: TableHead) -> None:
    maintenance = maintenance_of(table)
    await maintenance.check_bytes(context, table)
    for _ in range(FORGET_ATTEMPTS):
        table = await find_head(context, table.id)
        async with around(context.faults, ForgetStep.MAKE_WHOLE):
            await maintenance.restore_log(context, table)
            await _publish(context, table)
        async with around(context.faults, ForgetStep.DROP):
            if await context.index.forget(table.id, by=context.caller):
                return
    raise IndexUnavailable(f"table {table.name} keeps being committed to and was not forgotten")


async def _publish(context: Context, table: TableHead) -> None:
    if table.published_version < table.latest_version:
        if table.state is TableState.QUARANTINED:
            raise TableQuarantined(
                f"table {table.name} has versions that only the index holds and that cannot "
                f"be published: {table.state_reason}"
            )
        await publish_table(context.index, context.storage, table, monotonic_s=context.monotonic_s)
