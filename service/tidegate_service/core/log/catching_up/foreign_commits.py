"""Foreign commits on plain tables: versions that somebody wrote past the service.

A foreign `<v>.json` is part of the log the moment it exists. It is read into the index before the
next decision. `catch_up` reads them before the table's lock is taken; under the lock, only a PUT
reads the version that it finds taken. A foreign commit that cannot be read quarantines the table.
"""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Action, CommitInfo
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.proposal.transaction import Invalid, IsolationLevel, Proposal
from tidegate_protocol.replay.commits import (
    UnreadableCommit,
    body_digest,
    commit_info,
    timestamp_of,
)
from tidegate_protocol.replay.foreign import committed_ms, parse_foreign_commit
from tidegate_service.core.errors import TableQuarantined
from tidegate_service.core.log.catching_up.sight import Behind, SeenBefore
from tidegate_service.core.log.files.log_file import SpooledFile
from tidegate_service.core.log.put_version import metrics_of
from tidegate_service.core.log.used_places import check_own
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import (
    Aborted,
    CommitMetrics,
    CommitRecord,
    RatifiedCommit,
    TableRecord,
    TableState,
)
from tidegate_service.core.ports.store.storage import DatedFile
from tidegate_service.core.sharing import offload

FENCE_OPERATION = "ABORT TRANSACTION"
FENCED_ID = "transactionId"
"""The operation parameter of a fence (`core.commit.batches.abort_fence`) that names the id which it
keeps out."""


MOST_RACES = 2
"""How many PUTs under one lock may find their version taken by another writer."""


def check_operation(proposal: Proposal) -> Invalid | None:
    """Refuse the fence's operation to writers: such a commit would close the id of another's
    transaction wherever an index is made from the log."""
    if proposal.operation != FENCE_OPERATION:
        return None
    return Invalid(
        code=Code.INVALID_ACTION,
        detail=f"the operation {FENCE_OPERATION} is what aborts are written as; expected another",
    )


def see_end(section: CommitSection, sight: SeenBefore) -> None:
    """See that the table's log was read in to its end. A table that is quarantined already is left
    as it is. Raises `Behind`."""
    if section.table.state is not TableState.QUARANTINED and not sight.has_end(section):
        raise Behind


class Appends(Protocol):
    """The section that a foreign commit is appended to, or what remembers the commit beside it."""

    async def append(self, commit: RatifiedCommit) -> None: ...


async def take_found(
    section: CommitSection,
    found: DatedFile,
    *,
    began_s: float,
    now_s: float,
    race_s: float,
    to: Appends | None = None,
) -> None:
    """Write the next version into the index, as a PUT that was begun at `began_s` found it in the
    log. `race_s` is `CommitLimits.race_s`. `to` is as in `take_in`. The caller saves the section.

    Raises `Behind` for a large version, and where the store is slow: later versions are read
    without the lock then. Raises `TableQuarantined`, after saving the quarantine, for a version
    that cannot be read.
    """
    if isinstance(found.content, SpooledFile):
        raise Behind
    try:
        await take_in(section, found, to=to)
    except UnreadableCommit as error:
        reason = await quarantine_for(section, error)
        await section.save()
        raise TableQuarantined(f"table {section.table.name}: {reason}") from None
    if now_s - began_s > race_s:
        raise Behind


async def take_in(section: CommitSection, found: DatedFile, *, to: Appends | None = None) -> None:
    """Write the log's next version into the index. `to` appends it to the section; a `LockedTable`
    has it in its window then, and need not read it again. Raises `UnreadableCommit`."""
    version, modified_ms = section.table.latest_version + 1, found.modified_ms
    commit = await foreign_commit(section, version, found.content, modified_ms=modified_ms)
    await append_foreign(section, await _dated_as_answered(section, commit), to=to)


async def quarantine_for(section: CommitSection, error: UnreadableCommit) -> str:
    """Quarantine the table for the error that `take_in` raised; returns the reason. The caller
    saves the section."""
    version = section.table.latest_version + 1
    reason = f"version {version}, written by another writer, cannot be read: {error}"
    await section.quarantine(reason)
    return reason


async def _dated_as_answered(section: CommitSection, commit: RatifiedCommit) -> RatifiedCommit:
    """A commit of this service keeps the timestamp that it carries, since retries are told that
    timestamp. Other writers' versions before it are dated back to make room. No version up to the
    last one of this service is dated anew, whatever a forged mark says.

    Versions that are in the index already are dated back, too. So a log that is read in several
    portions gets the same timestamps as in one.
    """
    record = commit.record
    told = await carried(commit)
    if record.foreign or told >= record.timestamp:
        return commit
    version, timestamp = await section.answered()
    if told <= timestamp + section.table.latest_version - version:
        return commit
    await section.date_back(told)
    return replace(commit, record=replace(record, timestamp=told))


async def carried(commit: RatifiedCommit) -> int:
    """The timestamp that a commit of this service says it has, else its record's."""
    record = commit.record
    dated = partial(timestamp_of, fallback=record.timestamp)
    return await offload.run(len(commit.actions), dated, record.version, commit.actions)


async def append_foreign(
    section: CommitSection, commit: RatifiedCommit, *, to: Appends | None = None
) -> None:
    """Write a commit of `foreign_commit` as the next version. `to` is as in `take_in`."""
    await (to or section).append(commit)
    await _restore_abort(section, commit.record)


async def keep_id(section: CommitSection, version: int, content: bytes | LogFile) -> None:
    """Keep the transaction id of a version before the section's first one; of a fence, also the id
    that it aborted. A version that another writer put into a plain table's log, or that cannot be
    read, has no id to keep."""
    try:
        commit = await foreign_commit(section, version, content)
    except UnreadableCommit:
        return
    record = commit.record
    if record.foreign or record.transaction_id is None:
        return
    await section.keep_landed(replace(record, timestamp=await carried(commit)))
    await _restore_abort(section, record)


async def foreign_commit(
    section: CommitSection,
    version: int,
    content: bytes | LogFile,
    *,
    modified_ms: int | None = None,
) -> RatifiedCommit:
    """The index's form of a `<version>.json`.

    The version's date is that of `committed_ms`, but after the date of the version before.
    `modified_ms` is the modification time of the file, the section's clock where absent.
    Raises `UnreadableCommit`, also for a commit that this service wrote for another table.
    """
    if not isinstance(content, bytes):
        await section.take_time()
    # Many short files, one after the other, would hold the loop like a long one.
    await asyncio.sleep(0)
    dated = section.now_ms if modified_ms is None else modified_ms
    read = partial(_read, version, content, before=section.table, modified_ms=dated)
    parsed = await offload.run(offload.weight_of_log(content), read)
    actions, digest, info = parsed.actions, parsed.digest, parsed.info or CommitInfo()
    # Our own commit whose index rows were lost comes back this way; its digest tells. In the log of
    # a catalog-managed table are ratified commits only; those of stock clients have no digest.
    foreign = digest is None and not section.table.catalog_managed
    read_version = info.read_version
    if read_version is not None and not 0 <= read_version < version:
        # Other writers may put anything there, and the field is only information.
        read_version = None
    transaction_id = info.txn_id
    if transaction_id is not None:
        known = await section.transaction(transaction_id)
        # An id names one commit of a table; a second commit with the same id is kept without it.
        # An aborted id gives way only to a commit that this service ratified: that commit landed.
        if isinstance(known, CommitRecord) or (isinstance(known, Aborted) and foreign):
            transaction_id = None
    # What the index keeps of a large version tells its digest from all of its bytes.
    digest_of_all = await offload.sha256_of(content)
    record = CommitRecord(
        version=version,
        timestamp=max(parsed.timestamp, section.table.latest_timestamp + 1),
        transaction_id=transaction_id,
        body_digest=digest,
        content_sha256=digest_of_all,
        operation=info.operation,
        operation_parameters=info.operation_parameters or {},
        operation_metrics=info.operation_metrics or {},
        isolation_level=_isolation_level(info.isolation_level),
        is_blind_append=info.is_blind_append is True,
        read_version=read_version,
        rebased_over=0 if read_version is None else version - read_version - 1,
        engine_info=info.engine_info,
        user_metadata=info.user_metadata,
        tags=info.tags or {},
        foreign=foreign,
        metrics=parsed.metrics,
    )
    return RatifiedCommit(record=record, actions=actions, content=content, published=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What a version's file holds; `timestamp` as of `committed_ms`, `digest` of the proposal that
    a commit of this service was."""

    actions: tuple[Action, ...]
    info: CommitInfo | None
    digest: str | None
    timestamp: int
    metrics: CommitMetrics


def _read(
    version: int, content: bytes | LogFile, *, before: TableRecord, modified_ms: int
) -> _Read:
    """Every pass over the actions of the file. Raises `UnreadableCommit`."""
    actions = parse_foreign_commit(content, catalog_managed=before.catalog_managed)
    info = commit_info(actions)
    check_own(before.metadata, info)
    timestamp = committed_ms(version, actions, before=before.metadata, modified_ms=modified_ms)
    return _Read(
        actions=actions,
        info=info,
        digest=None if info is None else body_digest(info),
        timestamp=timestamp,
        metrics=metrics_of(actions, attempts=1, duration_ms=0),
    )


async def _restore_abort(section: CommitSection, record: CommitRecord) -> None:
    """Record the id that a fence aborted, since the fence's index rows may have been lost."""
    if record.operation != FENCE_OPERATION or record.body_digest is None:
        return
    fenced = record.operation_parameters.get(FENCED_ID)
    if not isinstance(fenced, str):
        return
    if not isinstance(await section.transaction(fenced), CommitRecord):
        await section.abort(fenced)


def _isolation_level(text: str | None) -> IsolationLevel | None:
    return next((level for level in IsolationLevel if level.value == text), None)
