"""Putting a decided commit's version into the log, and the index's form of the commit."""

import asyncio

from tidegate_protocol.log.actions import Add, Remove
from tidegate_protocol.log.content import sha256_of
from tidegate_protocol.proposal.transaction import ReadyCommit
from tidegate_protocol.replay.commits import body_digest
from tidegate_service.core.access.roles import Caller
from tidegate_service.core.errors import CommitStateUnknown, StorageUnavailable, StorageUnknown
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints, Step, around
from tidegate_service.core.observe.ports_with_faults import with_faults
from tidegate_service.core.ports.records import CommitMetrics, CommitRecord, RatifiedCommit
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile, Log
from tidegate_service.core.sharing import offload
from tidegate_service.core.sharing.offload import is_same

PUT_BYTES_A_S = 16 * 1024 * 1024
"""The rate at which the slowest store is expected to take bytes."""


def ratified(
    ready: ReadyCommit, *, published: bool, attempts: int, duration_ms: int, by: Caller
) -> RatifiedCommit:
    """The index's form of a commit that this instance decided for the caller `by`."""
    txn = ready.transaction
    proposal = txn.proposal
    record = CommitRecord(
        version=ready.version,
        timestamp=ready.timestamp,
        transaction_id=proposal.transaction_id,
        # Of commitInfo: hashing every action again under the row lock would give the same.
        body_digest=proposal.digest() if proposal.staged else body_digest(ready.commit_info),
        content_sha256=sha256_of(ready.content),
        operation=proposal.operation,
        operation_parameters=proposal.operation_parameters,
        operation_metrics=proposal.operation_metrics,
        isolation_level=txn.isolation_level,
        is_blind_append=txn.is_blind_append,
        read_version=txn.read.version if txn.read.version >= 0 else None,
        rebased_over=ready.version - txn.read.version - 1,
        engine_info=ready.commit_info.engine_info,
        user_metadata=proposal.user_metadata,
        tags=ready.commit_info.tags or {},
        foreign=False,
        metrics=metrics_of(ready.actions, attempts=attempts, duration_ms=duration_ms),
        principal=by.name,
        request_id=by.request_id,
    )
    return RatifiedCommit(
        record=record, actions=ready.actions, content=ready.content, published=published
    )


def metrics_of(actions: tuple[object, ...], *, attempts: int, duration_ms: int) -> CommitMetrics:
    """Counts and bytes of the file actions. A remove without a size counts no bytes."""
    adds = [action for action in actions if isinstance(action, Add)]
    removes = [action for action in actions if isinstance(action, Remove)]
    return CommitMetrics(
        num_added_files=len(adds),
        num_removed_files=len(removes),
        bytes_added=sum(add.size for add in adds),
        bytes_removed=sum(remove.size or 0 for remove in removes),
        attempts=attempts,
        duration_ms=duration_ms,
    )


async def occupy(
    log: Log, ready: ReadyCommit, limits: CommitLimits, *, faults: FaultPoints = NO_FAULTS
) -> DatedFile | None:
    """Put `<version>.json`. Returns None where the file has this commit's bytes then, and otherwise
    what it has.

    After a PUT without an answer, the version is read. Where nothing is there, the same PUT is sent
    again: the first PUT may still arrive, so the version is never given up while it is empty.

    Raises `CommitStateUnknown` after `limits.put_attempts` PUTs or `limits.put_s`, and
    `StorageUnavailable` where nothing can have been written.
    """
    try:
        async with asyncio.timeout(_patience_s(ready, limits.put_s)):
            return await _put(log, ready, limits.put_attempts, faults)
    except (StorageUnknown, TimeoutError) as error:
        # The last PUT may still arrive, as any PUT without an answer may.
        raise CommitStateUnknown(
            f"the object store did not say whether version {ready.version} was written",
            transaction_id=ready.transaction.proposal.transaction_id,
        ) from error


def _patience_s(ready: ReadyCommit, put_s: float) -> float:
    """How long `occupy` may take. A very large commit may take longer: the database was told to
    allow its section more time (`decide`)."""
    if ready.transaction.proposal.weight < offload.LONG:
        return put_s
    return put_s + len(ready.content) / PUT_BYTES_A_S


async def _put(
    log: Log, ready: ReadyCommit, attempts: int, faults: FaultPoints
) -> DatedFile | None:
    """As `occupy`. Raises `StorageUnknown` where nothing is known of the version."""
    log = with_faults(log, faults, {Log.put_if_absent: Step.O6_PUT})
    unanswered = False
    for _ in range(attempts):
        try:
            result = await log.put_if_absent(ready.version, ready.content)
            async with around(faults, Step.O7_CLASSIFY):
                if result is PutResult.CREATED:
                    return None
                found = await log.read_dated(ready.version)
        except StorageUnknown:
            unanswered = True
            continue
        except StorageUnavailable as error:
            if unanswered:
                raise StorageUnknown(error.detail) from error
            raise
        if found is not None:
            return None if await is_same(ready.content, found.content) else found
    raise StorageUnknown(f"version {ready.version} was put without an answer")
