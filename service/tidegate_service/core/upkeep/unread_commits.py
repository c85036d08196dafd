"""Whether the index still knows the rules by which a log may be cut."""

from tidegate_service.core.errors import NotFound
from tidegate_service.core.limits import UPKEEP_LIMITS, UpkeepLimits
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableHead, TableRecord, TableState
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload

_CHANGES = (b'"metaData"', b'"protocol"')


async def why_stale(
    index: Index, log: Log, table: TableRecord, limits: UpkeepLimits = UPKEEP_LIMITS
) -> str | None:
    """Why the record that was read of the table does not say any more what may be deleted of its
    log; None where it does.

    The table's properties or protocol may have been changed since: by the service, or past it by
    others whose commits are not in the index yet, or by a version of a catalog-managed table that
    the database has lost. Raises `NotFound`.
    """
    now = await index.table(table.id)
    if now is None:
        raise NotFound(f"there is no table {table.id} any more")
    if (now.epoch, now.metadata, now.protocol, now.state) != (
        table.epoch,
        table.metadata,
        table.protocol,
        TableState.ACTIVE,
    ):
        return "the table was changed meanwhile"
    if table.catalog_managed:
        return await _why_set_back(index, log, now)
    return await _why_unread(log, now, limits.unread_versions)


async def _why_unread(log: Log, now: TableHead, most: int) -> str | None:
    for version in range(now.latest_version + 1, now.latest_version + 1 + most):
        content = await log.read(version)
        if content is None:
            return None
        # Whatever may be such an action counts, for it only puts the cut off by a day.
        if not isinstance(content, bytes) or any(name in content for name in _CHANGES):
            return f"version {version} in the log, which may change the table, is not read in yet"
    return f"more than {most} versions behind {now.latest_version} in the log are not read in yet"


async def _why_set_back(index: Index, log: Log, table: TableHead) -> str | None:
    """Why the database has lost a version of the table; None where it has not. Only the service
    writes versions of a catalog-managed table, so the database has lost a version that lies in the
    log and not in the index (`core.catalog_managed.set_back`).

    Versions are published in order, so two of them tell. The first that is not marked as published
    may lie in the log with other bytes, and a version behind the head may lie there at all.
    """
    for version in sorted({table.published_version + 1, table.latest_version + 1}):
        content = await log.read(version)
        if content is None:
            continue
        # Asked after the log: it may have been committed and published meanwhile.
        known = await index.commit(table.id, version)
        if known is None or known.content_sha256 != await offload.sha256_of(content):
            return f"version {version} in the log, which may change the table, is not the index's"
    return None
