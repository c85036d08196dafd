"""Forgetting a table that the service has: its log is made whole, and then the index lets it go.

What was cut off before its end is gone on with, by any instance (`core.ports.forgettings`).
"""

import logging
from functools import partial
from typing import NoReturn

from tidegate_service.core.catalog_managed.findings import Found
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.catalog_managed.set_back import check_none_lost, quarantine_for
from tidegate_service.core.catalog_managed.whole_log import differing, make_whole, why_differing
from tidegate_service.core.checkpoints.lost_checkpoint import restore_checkpoint
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, ServiceError, TableQuarantined
from tidegate_service.core.log.catching_up.catch_up import with_log_read
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.maintenance.in_turn import in_turn
from tidegate_service.core.observe.faults import ForgetStep, around
from tidegate_service.core.ports.forgettings import Forgetting
from tidegate_service.core.ports.records import QuarantineCause, TableHead, TableState
from tidegate_service.core.tables.lookup import find_head

logger = logging.getLogger("tidegate.maintenance")

FORGET_ATTEMPTS = 5


async def forget_table(context: Context, ref: str) -> None:
    """Delete everything the index knows of the table. Its files, log and data, stay.

    Versions that wait for publishing are published first, since the index holds their only
    copy; those whose files are gone from the log are put back. Raises `TableQuarantined` where
    they cannot be, where a published version has other bytes in the log than were ratified, of
    which the index may hold the last copy, and where versions that were published are not in the
    index, so that nothing would be kept of them; `Unavailable` where new ones keep coming, and
    where the log cannot be asked.

    A catalog-managed table's log is read for it. A forgetting that has begun goes on without
    whoever asked for it, and where this instance ends, by another (`resume_forgetting`).
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
        # Whoever asked is told that it has failed, and nothing goes on behind that.
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
    if table.catalog_managed and table.quarantine_cause is not QuarantineCause.GIVEN_UP:
        log = context.storage.log(table.location, who=context.who)
        found = await differing(context.index, log, table)
        if found is not None:
            await _refuse(context, table, *found)
    for _ in range(FORGET_ATTEMPTS):
        table = await find_head(context, table.id)
        async with around(context.faults, ForgetStep.MAKE_WHOLE):
            await _make_whole(context, table)
        async with around(context.faults, ForgetStep.DROP):
            if await context.index.forget(table.id, by=context.caller):
                return
    raise IndexUnavailable(f"table {table.name} keeps being committed to and was not forgotten")


async def _make_whole(context: Context, table: TableHead) -> None:
    if table.catalog_managed and table.quarantine_cause is not QuarantineCause.GIVEN_UP:
        await restore_checkpoint(context, table)
        await _see_that_none_is_lost(context, table)
    if table.published_version < table.latest_version:
        if table.state is TableState.QUARANTINED:
            raise TableQuarantined(
                f"table {table.name} has versions that only the index holds and that cannot "
                f"be published: {table.state_reason}"
            )
        await publish_table(context.index, context.storage, table, monotonic_s=context.monotonic_s)


async def _refuse(context: Context, table: TableHead, version: int, sha256: str) -> NoReturn:
    async with context.index.commit_section(table.id, who=context.who) as section:
        why = await why_differing(section, version, sha256)
        if why is None:
            raise IndexUnavailable(f"table {table.name} was changed meanwhile; ask again")
        await quarantine_for(section, Found(QuarantineCause.LOG, why))
    raise TableQuarantined(f"table {table.name}: {why}")


async def _see_that_none_is_lost(context: Context, table: TableHead) -> None:
    async def section(sight: SeenBefore) -> None:
        async with context.index.commit_section(table.id, who=context.who) as section:
            why = await make_whole(section, context.storage.log(table.location, who=context.who))
            if why is not None:
                await quarantine_for(section, Found(QuarantineCause.LOG, why))
                raise TableQuarantined(f"table {table.name}: {why}")
            await check_none_lost(context, section, sight)

    await with_log_read(context, table.id, section)
