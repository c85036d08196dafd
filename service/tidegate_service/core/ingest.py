"""Foreign commits on plain tables: versions that somebody wrote past the service.

A foreign `<v>.json` is part of the log the moment it exists. It is read into the index under
the table's lock before the next decision; one that cannot be read quarantines the table.
"""

import hashlib

from tidegate_protocol.actions import CommitInfo
from tidegate_protocol.commits import (
    UnreadableCommit,
    body_digest,
    commit_info,
    summarize,
)
from tidegate_protocol.foreign import parse_foreign_commit
from tidegate_protocol.transaction import IsolationLevel
from tidegate_service.core.errors import TableQuarantined
from tidegate_service.core.ports import CommitSection, Log
from tidegate_service.core.ratify import metrics_of
from tidegate_service.core.records import CommitRecord, RatifiedCommit


async def ingest(section: CommitSection, log: Log) -> int:
    """Read every version beyond the index's head into it; returns how many there were.

    The caller saves the section. Raises `TableQuarantined`, after saving the quarantine, for a
    version that cannot be read.
    """
    count = 0
    while (content := await log.read(section.table.latest_version + 1)) is not None:
        version = section.table.latest_version + 1
        try:
            await section.append(await _foreign_commit(section, version, content))
        except UnreadableCommit as error:
            reason = f"version {version}, written by another writer, cannot be read: {error}"
            await section.quarantine(reason)
            await section.save()
            raise TableQuarantined(f"table {section.table.name}: {reason}") from None
        count += 1
    return count


async def _foreign_commit(section: CommitSection, version: int, content: bytes) -> RatifiedCommit:
    actions = parse_foreign_commit(content)
    info = commit_info(actions)
    winner = summarize(version, actions, timestamp_fallback=section.now_ms)
    digest = None if info is None else body_digest(info)
    info = info or CommitInfo()
    read_version = info.read_version
    if read_version is not None and not 0 <= read_version < version:
        # Other writers put anything there, and it is nothing but information.
        read_version = None
    transaction_id = info.txn_id
    if transaction_id is not None and await section.transaction(transaction_id) is not None:
        # An id names one commit of a table; a second one that claims it is kept without it.
        transaction_id = None
    record = CommitRecord(
        version=version,
        timestamp=max(winner.timestamp, section.table.latest_timestamp + 1),
        transaction_id=transaction_id,
        body_digest=digest,
        content_sha256=hashlib.sha256(content).hexdigest(),
        operation=info.operation,
        operation_parameters=info.operation_parameters or {},
        operation_metrics=info.operation_metrics or {},
        isolation_level=_isolation_level(info.isolation_level),
        is_blind_append=winner.is_blind_append,
        read_version=read_version,
        rebased_over=0 if read_version is None else version - read_version - 1,
        engine_info=info.engine_info,
        user_metadata=info.user_metadata,
        tags=info.tags or {},
        # Our own commit whose index rows were lost comes back this way; its digest tells.
        foreign=digest is None,
        metrics=metrics_of(actions, attempts=1, duration_ms=0),
    )
    return RatifiedCommit(record=record, actions=actions, content=content, published=True)


def _isolation_level(text: str | None) -> IsolationLevel | None:
    return next((level for level in IsolationLevel if level.value == text), None)
