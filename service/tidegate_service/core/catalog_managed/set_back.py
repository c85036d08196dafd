"""Databases that were set back: restored from a backup, or failed over to a standby that lagged.

Such a database may have lost versions of a catalog-managed table that lie published in the log, or
that this instance saw committed. A commit to the table would take the number of a lost version, and
an id that landed could land again. Or the log at the table's place is not its own any more
(`core.catalog_managed.own_log`). So the table's log is checked before anything of it is
acknowledged: when this instance meets the table for the first time, in another database than
before, or after a quiet time. A log check that finds something quarantines the table.
`core.maintenance.rebuild` takes in what is published.

When this instance meets its first table in another database, it checks the logs of all other tables
that it knows, too: no other instance may know what they have lost.
"""

import asyncio
import logging
from collections.abc import Collection

from tidegate_protocol.log.segment import BrokenLog
from tidegate_service.core.catalog_managed.findings import SET_BACK, Found, strange, unlike
from tidegate_service.core.catalog_managed.questions import Ends, Hole, is_begun
from tidegate_service.core.context import Context
from tidegate_service.core.errors import (
    IndexUnavailable,
    NotFound,
    ServiceError,
    ShuttingDown,
    StorageUnavailable,
    TableQuarantined,
)
from tidegate_service.core.log.catching_up.catch_up import with_log_read
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore, Sight
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import Glance, QuarantineCause, TableState
from tidegate_service.core.sharing import offload

logger = logging.getLogger("tidegate.service")


def needs_check(context: Context, section: CommitSection) -> bool:
    """Whether the section's table takes commits, and may have lost some."""
    table, heads = section.table, context.heads
    is_sure = heads.is_sure(table, section.now_ms, database=section.database)
    return table.state is TableState.ACTIVE and not is_sure


async def check_log(context: Context, section: CommitSection, sight: SeenBefore) -> None:
    """Check that the table's log has nothing that the index lacks, where that is due.

    Raises `TableQuarantined`, after saving the quarantine, where the table has lost a version or
    its log. Raises `StorageUnavailable` where the log could not be read, and `Behind` where it has
    to be read first.
    """
    if not needs_check(context, section):
        return
    table, database = section.table, section.database
    _have_others_checked(context, table.id, database)
    found = await _found(context, section, sight)
    if found is None:
        now_s = context.monotonic_s()
        context.heads.checked(table, sight.since_ms, now_s, database=database)
        return
    # `heads` stays as it is: this COMMIT may fail, and the next check has to find the same.
    await quarantine_for(section, found)
    raise TableQuarantined(f"table {table.name}: {found.reason}")


async def check_ahead(
    context: Context, table_id: str, sight: SeenBefore, *, remembers: bool = True
) -> bool:
    """Check a table's log before its row is locked. True where the check finds nothing, so that the
    lock's holder need not look; `HeadChecks` is told of that where `remembers` says so. Otherwise
    `check_log` finds the cause by what is in `sight` then, and raises it.

    The row, told as a synchronous standby has it, and the log are read before the lock is granted.
    That is no weaker than a check under the lock, which also counts for a quiet time after it.
    """
    heads = context.heads
    try:
        async with asyncio.timeout(context.limits.check_ahead_s):
            glance = await context.index.told_glance(table_id, known=heads.replicated)
    except (IndexUnavailable, TimeoutError):
        # A standby is away. Under the lock, the COMMIT waits for it as long as a commit may.
        return False
    if glance is None:
        return False
    table, database = glance.table, glance.database
    if table.state is not TableState.ACTIVE or not heads.may_go_on(table, database=database):
        return False
    _have_others_checked(context, table_id, database)
    log = context.storage.log(table.location, who=context.who)
    ends, hole = Ends(table.published_version), Hole.behind(table)
    try:
        async with asyncio.timeout(context.limits.check_ahead_s):
            last, following = seen = await ends.ask(log, None)
            sight.remember(glance, ends, seen)
            if table.published_version < 0:
                if await is_begun(log):
                    return False
            else:
                sight.remember(glance, hole, is_cut := await hole.ask(log, None))
                if is_cut:
                    return False
    except (BrokenLog, StorageUnavailable, TimeoutError):
        # Under the lock, known ids are answered without the store.
        return False
    # Another request of this instance may know more by now.
    if following is not None or not heads.may_go_on(table, database=database):
        return False
    if table.published_version >= 0:
        known = glance.published_sha256
        if last is None or known not in (None, await offload.sha256_of(last)):
            return False
    if remembers:
        heads.checked(table, glance.now_ms, context.monotonic_s(), database=database)
    return True


def _have_others_checked(context: Context, table_id: str, database: str) -> None:
    others = [one for one in context.heads.left_behind(database) if one != table_id]
    if others:
        context.running.start(_check_logs(context, others), name="log-checks")


async def check_none_lost(context: Context, section: CommitSection, sight: SeenBefore) -> None:
    """Check that a catalog-managed table, in any state, has lost no version that this instance or
    the log knows, and that the log is its own. Raises as `check_log` does."""
    found = await _found(context, section, sight)
    if found is not None and (found.cause is QuarantineCause.SET_BACK or not found.is_own_log):
        await quarantine_for(section, found)
        raise TableQuarantined(f"table {section.table.name}: {found.reason}")


async def check_kept(context: Context, seen: Glance) -> None:
    """`check_none_lost` for whoever commits nothing to the table, under its lock only where a look
    ahead does not tell. Nobody's heads make room for the table's in `HeadChecks`."""
    table = seen.table
    if context.heads.is_sure(table, seen.now_ms, database=seen.database):
        return

    async def section(sight: SeenBefore) -> None:
        if sight.is_empty and await check_ahead(context, table.id, sight, remembers=False):
            return
        async with context.index.commit_section(table.id, who=context.who) as section:
            await check_none_lost(context, section, sight)

    await with_log_read(context, table.id, section)


async def quarantine_for(section: CommitSection, found: Found) -> None:
    """Quarantine the section's table for what was found, and save the section, where the cause is
    new."""
    table, is_set_back = section.table, found.cause is QuarantineCause.SET_BACK
    is_news = is_set_back and table.quarantine_cause is not found.cause
    if table.state is TableState.ACTIVE or is_news:
        await section.quarantine(found.reason, found.cause)
        await section.save()


async def _check_logs(context: Context, table_ids: Collection[str]) -> None:
    """Check the logs of tables without a request, until each was checked or this instance stops."""
    while table_ids:
        left = []
        for table_id in table_ids:
            try:
                await context.running.run(("log-check", table_id), _check_alone(context, table_id))
            except ShuttingDown:
                return
            except TableQuarantined:
                continue
            except NotFound:
                context.heads.forget(table_id)
            except ServiceError as error:
                logger.warning(
                    "a table was not looked at after a failover, and will be again",
                    extra={"table_id": table_id, "reason": error.detail},
                )
                left.append(table_id)
            except Exception:
                # Whatever is wrong with this one, the others may have lost commits.
                logger.exception(
                    "looking at a table after a failover failed, and will be tried again",
                    extra={"table_id": table_id},
                )
                left.append(table_id)
        table_ids = left
        if left:
            await asyncio.sleep(context.limits.check_again_s)


async def _check_alone(context: Context, table_id: str) -> None:
    async def section(sight: SeenBefore) -> None:
        async with context.index.commit_section(table_id, who=context.who) as section:
            await check_log(context, section, sight)

    await with_log_read(context, table_id, section)


async def _found(context: Context, section: CommitSection, sight: Sight) -> Found | None:
    found = await lost(context, section)
    if found is not None:
        return found
    last, following = await sight.see(section, Ends(section.table.published_version))
    found = await strange(section, sight, last)
    if found is not None or following is None:
        return found
    # Of a log that nothing was published in, the first file is both.
    found = await unlike(section, sight, section.table.published_version + 1, following)
    if found is None and section.table.state is TableState.ACTIVE:
        # A publisher has put it, and more perhaps, and has not marked it yet. What waits of a
        # quarantined table keeps it as it is.
        raise Behind
    return found


async def lost(context: Context, section: CommitSection) -> Found | None:
    """Why the table's database was set back, without the log: by the table's row, or by the head
    that this instance saw committed. None where neither says so."""
    table, known = section.table, context.heads.known(section.table.id)
    if table.quarantine_cause in (QuarantineCause.SET_BACK, QuarantineCause.GIVEN_UP):
        return Found(table.quarantine_cause, str(table.state_reason))
    if known is None or known.version < 0 or known.epoch < table.epoch:
        # No head is known, or the index was made anew since: the rebuild decided what was committed
        # before.
        return None
    if table.latest_version < known.version:
        return Found(
            QuarantineCause.SET_BACK,
            f"versions {table.latest_version + 1} to {known.version} were committed and are not in "
            f"the index: {SET_BACK}; `rebuild` takes in those of them that were published, the "
            "others are lost",
        )
    if known.database == section.database and known.version < table.latest_version:
        return None
    at = await section.winners(known.version - 1, known.version)
    if not at or at[0].timestamp == known.timestamp:
        return None
    return Found(
        QuarantineCause.SET_BACK,
        f"version {known.version} is not the one that was committed as that before: {SET_BACK}, "
        "and others were committed since; `rebuild` takes in those that were published, the others "
        "are lost",
    )
