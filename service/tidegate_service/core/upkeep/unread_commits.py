"""Whether a log that is to be cut is still the one that the index knows the rules of."""

from tidegate_service.core.errors import NotFound
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord, TableState
from tidegate_service.core.ports.store.storage import Log

MOST = 100
"""Versions behind the index that are looked at: more than the service is just writing."""
_CHANGES = (b'"metaData"', b'"protocol"')


async def why_stale(index: Index, log: Log, table: TableRecord) -> str | None:
    """Why what was read of the table does not say any more what may be deleted of its log; None
    where it does. Its properties or its protocol may have been changed since, by the service or,
    past it, by others whose commits are not in the index yet. Raises `NotFound`."""
    glance = await index.glance(table.id)
    if glance is None:
        raise NotFound(f"there is no table {table.id} any more")
    now = glance.table
    if (now.epoch, now.metadata, now.protocol, now.state) != (
        table.epoch,
        table.metadata,
        table.protocol,
        TableState.ACTIVE,
    ):
        return "the table was changed meanwhile"
    if table.catalog_managed:
        # Nobody but the service writes versions.
        return None
    for version in range(now.latest_version + 1, now.latest_version + 1 + MOST):
        content = await log.read(version)
        if content is None:
            return None
        # Anything that may be such an action counts: the log is only cut a day later.
        if not isinstance(content, bytes) or any(name in content for name in _CHANGES):
            return f"version {version} in the log, which may change the table, is not read in yet"
    return f"more than {MOST} versions behind {now.latest_version} in the log are not read in yet"
