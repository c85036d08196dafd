"""Foreign commits on plain tables: versions that somebody wrote past the service.

A foreign `<v>.json` is part of the log the moment it exists. It is read into the index under
the table's lock before the next decision; one that cannot be read quarantines the table.
"""

import hashlib
from dataclasses import replace

from tidegate_protocol.actions import CommitInfo
from tidegate_protocol.commits import (
    UnreadableCommit,
    body_digest,
    commit_info,
    summarize,
    timestamp_of,
)
from tidegate_protocol.foreign import parse_foreign_commit
from tidegate_protocol.transaction import IsolationLevel
from tidegate_service.core.errors import TableQuarantined
from tidegate_service.core.ports import CommitSection, Log
from tidegate_service.core.ratify import metrics_of
from tidegate_service.core.records import Aborted, CommitRecord, RatifiedCommit, TableState

FENCE_OPERATION = "ABORT TRANSACTION"
FENCED_ID = "transactionId"
"""The operation parameter of a fence (`core.fence`) that names the id it keeps out."""


async def ingest(section: CommitSection, log: Log) -> int:
    """Read every version beyond the index's head into it; returns how many there were.

    The caller saves the section. Raises `TableQuarantined`, after saving the quarantine, for a
    version that cannot be read. A table that is quarantined already is left as it is.
    """
    count = 0
    if section.table.state is TableState.QUARANTINED:
        return count
    answered = section.table.latest_timestamp
    while (content := await log.read(section.table.latest_version + 1)) is not None:
        version = section.table.latest_version + 1
        try:
            commit = await foreign_commit(section, version, content)
            commit = await _dated_as_answered(section, commit, after=answered + count)
            await append_foreign(section, commit)
        except UnreadableCommit as error:
            reason = f"version {version}, written by another writer, cannot be read: {error}"
            await section.quarantine(reason)
            await section.save()
            raise TableQuarantined(f"table {section.table.name}: {reason}") from None
        count += 1
    return count


async def _dated_as_answered(
    section: CommitSection, commit: RatifiedCommit, *, after: int
) -> RatifiedCommit:
    """What this service wrote keeps the time that it carries, as whoever asks for it again was or
    will be told: the versions just read in before it, of which nobody was told anything yet, make
    room. Nothing at or before `after` is dated anew, whatever a forged mark says."""
    carried = timestamp_of(commit.actions, fallback=commit.record.timestamp)
    if commit.record.foreign or not after < carried < commit.record.timestamp:
        return commit
    await section.date_back(carried)
    return replace(commit, record=replace(commit.record, timestamp=carried))


async def append_foreign(section: CommitSection, commit: RatifiedCommit) -> None:
    """Write a commit of `foreign_commit` as the next version."""
    await section.append(commit)
    await _restore_tombstone(section, commit.record)


async def foreign_commit(
    section: CommitSection, version: int, content: bytes, *, timestamp: int | None = None
) -> RatifiedCommit:
    """The index's form of a `<version>.json`. What this service wrote, and all where there is no
    `timestamp`, is dated by its commitInfo, else by the section's clock; always after the version
    before. Raises `UnreadableCommit`."""
    actions = parse_foreign_commit(content, catalog_managed=section.table.catalog_managed)
    info = commit_info(actions)
    winner = summarize(version, actions, timestamp_fallback=section.now_ms)
    digest = None if info is None else body_digest(info)
    info = info or CommitInfo()
    read_version = info.read_version
    if read_version is not None and not 0 <= read_version < version:
        # Other writers put anything there, and it is nothing but information.
        read_version = None
    transaction_id = info.txn_id
    if transaction_id is not None:
        known = await section.transaction(transaction_id)
        # An id names one commit of a table; a second one that claims it is kept without it. What
        # this service wrote itself is no claim: it landed, whatever a tombstone says.
        if isinstance(known, CommitRecord) or (isinstance(known, Aborted) and digest is None):
            transaction_id = None
    # Ours was answered for with the time that it carries.
    dated = winner.timestamp if timestamp is None or digest is not None else timestamp
    record = CommitRecord(
        version=version,
        timestamp=max(dated, section.table.latest_timestamp + 1),
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


async def _restore_tombstone(section: CommitSection, record: CommitRecord) -> None:
    """A fence whose index rows were lost says which transaction it aborted."""
    if record.operation != FENCE_OPERATION or record.foreign:
        return
    fenced = record.operation_parameters.get(FENCED_ID)
    if isinstance(fenced, str) and await section.transaction(fenced) is None:
        await section.abort(fenced)


def _isolation_level(text: str | None) -> IsolationLevel | None:
    return next((level for level in IsolationLevel if level.value == text), None)
