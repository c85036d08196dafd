"""Whether a log that is to be cut is still the one that the index knows the rules of."""

from tidegate_service.core.errors import NotFound
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableHead, TableRecord, TableState
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload

MOST = 100
"""Versions behind the index that are looked at: more than the service is just writing."""
_CHANGES = (b'"metaData"', b'"protocol"')


async def why_stale(index: Index, log: Log, table: TableRecord) -> str | None:
    """Why what was read of the table does not say any more what may be deleted of its log; None
    where it does. Its properties or its protocol may have been changed since, by the service or,
    past it, by others whose commits are not in the index yet. Of a catalog-managed table, they may
    have been changed by a version that its database has lost. Raises `NotFound`."""
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
    for version in range(now.latest_version + 1, now.latest_version + 1 + MOST):
        content = await log.read(version)
        if content is None:
            return None
        # Anything that may be such an action counts: the log is only cut a day later.
        if not isinstance(content, bytes) or any(name in content for name in _CHANGES):
            return f"version {version} in the log, which may change the table, is not read in yet"
    return f"more than {MOST} versions behind {now.latest_version} in the log are not read in yet"


async def _why_set_back(index: Index, log: Log, table: TableHead) -> str | None:
    """Nobody but the service writes versions of a catalog-managed table, so one that the index does
    not have is one that the database has lost (`core.catalog_managed.set_back`).

    Two names tell, since versions are published in order: the first that is not marked published
    may have other bytes, and the first behind the head may be there at all.
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
