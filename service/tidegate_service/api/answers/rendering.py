"""Answers made from the core's values."""

from collections.abc import Mapping
from dataclasses import asdict
from urllib.parse import quote

from msgspec import UNSET, Raw, structs
from starlette.responses import Response

from tidegate_protocol.features.idle_properties import warnings_of
from tidegate_protocol.log.actions import Metadata, Protocol
from tidegate_protocol.log.codec import encode
from tidegate_service.api.answers.types import (
    CommitAnswer,
    ConflictCheckAnswer,
    CreatedAnswer,
    HistoryEntry,
    LostAnswer,
    MetricsAnswer,
    RebuiltAnswer,
    TableAnswer,
    TotalsAnswer,
    TransactionAnswer,
    UnknownIdsAnswer,
    answer,
)
from tidegate_service.api.answers.upkeep import HookAnswer, OpeningAnswer, UpkeepAnswer
from tidegate_service.api.http.request.requests import PREFIX
from tidegate_service.core.commit.transaction_ids import TransactionStatus
from tidegate_service.core.maintenance.rebuilding import Rebuilt
from tidegate_service.core.observe.telemetry import HOOK, UpkeepKind
from tidegate_service.core.ports.outcomes import Committed, NothingToCommit, WouldCommit
from tidegate_service.core.ports.records import CommitMetrics, CommitRecord, TableHead, TableRecord
from tidegate_service.core.ports.upkeep.upkeep import UpkeepRecord
from tidegate_service.core.upkeep.opening import Opening
from tidegate_service.core.vacuum.commits import VACUUM


def table_url(table: TableHead) -> str:
    return f"{PREFIX}/tables/{quote(table.name)}"


def commit_url(table: TableHead, version: int) -> str:
    return f"{table_url(table)}/commits/{version}"


def table_answer(table: TableRecord) -> TableAnswer:
    return TableAnswer(
        id=table.id,
        name=table.name,
        location=table.location,
        catalog_managed=table.catalog_managed,
        state=table.state,
        state_reason=table.state_reason,
        first_version=table.first_version,
        latest_version=table.latest_version,
        published_version=table.published_version,
        latest_timestamp=table.latest_timestamp,
        num_files=table.num_files,
        size_bytes=table.size_bytes,
        protocol=action_body(table.protocol),
        metadata=action_body(table.metadata),
    )


def created_answer(table: TableRecord) -> CreatedAnswer:
    configuration = {} if table.metadata is None else table.metadata.configuration
    warnings = list(warnings_of(configuration)) or UNSET
    return CreatedAnswer(**structs.asdict(table_answer(table)), warnings=warnings)


def rebuilt_answer(rebuilt: Rebuilt) -> RebuiltAnswer:
    lost = [
        LostAnswer(version=one.version, transaction_id=one.transaction_id) for one in rebuilt.lost
    ]
    unknown = rebuilt.unknown
    return RebuiltAnswer(
        **structs.asdict(table_answer(rebuilt.table)),
        lost=lost,
        unknown_ids=None
        if unknown is None
        else UnknownIdsAnswer(
            first_version=unknown.first_version, last_version=unknown.last_version
        ),
    )


def upkeep_answer(
    table: TableHead, standing: Mapping[str, UpkeepRecord], opening: Opening | None
) -> UpkeepAnswer:
    def version(kind: str) -> int | None:
        record = standing.get(kind)
        return None if record is None or record.version < 0 else record.version

    def at(kind: str) -> int | None:
        record = standing.get(kind)
        return None if record is None else record.done_ms

    def behind(kind: str) -> int:
        done = version(kind)
        return max(0, table.published_version - (-1 if done is None else done))

    return UpkeepAnswer(
        table=table.name,
        checkpoint_version=version(UpkeepKind.CHECKPOINT),
        checkpoint_at=at(UpkeepKind.CHECKPOINT),
        commits_after_checkpoint=behind(UpkeepKind.CHECKPOINT),
        checksum_version=version(UpkeepKind.CHECKSUM),
        checksum_at=at(UpkeepKind.CHECKSUM),
        cleaned_up_before=version(UpkeepKind.CLEAN_UP),
        clean_up_at=at(UpkeepKind.CLEAN_UP),
        compaction_version=version(UpkeepKind.COMPACTION),
        compaction_at=at(UpkeepKind.COMPACTION),
        dropped_before=version(UpkeepKind.EXPIRED_VERSIONS),
        dropped_at=at(UpkeepKind.EXPIRED_VERSIONS),
        vacuum_version=version(VACUUM),
        vacuum_at=at(VACUUM),
        opening=None if opening is None else OpeningAnswer(**asdict(opening)),
        hooks={
            kind.removeprefix(HOOK): HookAnswer(
                version=version(kind),
                at=record.done_ms,
                commits_behind=behind(kind),
                failures=record.failures,
            )
            for kind, record in sorted(standing.items())
            if kind.startswith(HOOK)
        },
        troubles={
            kind: record.trouble
            for kind, record in sorted(standing.items())
            if record.trouble is not None
        },
    )


def commit_body(outcome: Committed) -> CommitAnswer:
    record = outcome.record
    if record.transaction_id is None:
        raise AssertionError("a commit that was found by its transaction id has one")
    return CommitAnswer(
        table=outcome.table.name,
        version=record.version,
        read_version=record.read_version,
        transaction_id=record.transaction_id,
        timestamp=record.timestamp,
        isolation_level=record.isolation_level,
        is_blind_append=record.is_blind_append,
        rebased_over=record.rebased_over,
        published=outcome.published,
        replayed=outcome.replayed,
        metrics=_metrics(record.metrics),
        check_ms=outcome.check_ms,
        totals=None if outcome.totals is None else TotalsAnswer(**asdict(outcome.totals)),
    )


def committed_answer(outcome: Committed) -> Response:
    """201 with the commit's place; 200 where an earlier request landed it."""
    return answer(
        commit_body(outcome),
        200 if outcome.replayed else 201,
        location=commit_url(outcome.table, outcome.record.version),
    )


def transaction_answer(status: TransactionStatus) -> Response:
    landed = None if status.landed is None else commit_body(status.landed)
    return answer(
        TransactionAnswer(
            transaction_id=status.transaction_id,
            state=status.state,
            version=None if landed is None else landed.version,
            commit=landed,
        )
    )


def skipped_answer(outcome: NothingToCommit) -> Response:
    body = CommitAnswer(
        table=outcome.table.name,
        version=None,
        read_version=outcome.read_version,
        transaction_id=outcome.transaction_id,
        timestamp=None,
        isolation_level=None,
        is_blind_append=False,
        rebased_over=0,
        published=False,
        replayed=False,
        metrics=MetricsAnswer(
            num_added_files=0,
            num_removed_files=0,
            bytes_added=0,
            bytes_removed=0,
            attempts=1,
            duration_ms=0,
        ),
        check_ms=None,
        totals=None,
    )
    return answer(body)


def check_answer(outcome: WouldCommit | NothingToCommit | Committed) -> Response:
    if isinstance(outcome, Committed):
        record = outcome.record
        if record.transaction_id is None:
            raise AssertionError("a commit that was found by its transaction id has one")
        return answer(
            ConflictCheckAnswer(
                table=outcome.table.name,
                committed=True,
                version=record.version,
                read_version=record.read_version,
                transaction_id=record.transaction_id,
                isolation_level=record.isolation_level,
                is_blind_append=record.is_blind_append,
                rebased_over=record.rebased_over,
            )
        )
    if isinstance(outcome, NothingToCommit):
        return answer(
            ConflictCheckAnswer(
                table=outcome.table.name,
                committed=False,
                version=None,
                read_version=outcome.read_version,
                transaction_id=outcome.transaction_id,
                isolation_level=None,
                is_blind_append=False,
                rebased_over=0,
            )
        )
    return answer(
        ConflictCheckAnswer(
            table=outcome.table.name,
            committed=False,
            version=outcome.version,
            read_version=outcome.read_version,
            transaction_id=outcome.transaction_id,
            isolation_level=outcome.isolation_level,
            is_blind_append=outcome.is_blind_append,
            rebased_over=outcome.rebased_over,
        )
    )


def history_entry(record: CommitRecord) -> HistoryEntry:
    return HistoryEntry(
        version=record.version,
        timestamp=record.timestamp,
        transaction_id=record.transaction_id,
        operation=record.operation,
        operation_parameters=dict(record.operation_parameters),
        operation_metrics=dict(record.operation_metrics),
        isolation_level=record.isolation_level,
        is_blind_append=record.is_blind_append,
        read_version=record.read_version,
        rebased_over=record.rebased_over,
        engine_info=record.engine_info,
        user_metadata=record.user_metadata,
        tags=dict(record.tags),
        foreign=record.foreign,
        content_sha256=record.content_sha256,
        metrics=_metrics(record.metrics),
    )


def action_body(action: Protocol | Metadata | None) -> Raw:
    """The action without the object that names its kind, every field kept."""
    if action is None:
        return Raw(b"null")
    line = encode(action)
    # An object with one key: what is megabytes long is not read again for it.
    return Raw(line[line.index(b":") + 1 : line.rindex(b"}")])


def _metrics(metrics: CommitMetrics) -> MetricsAnswer:
    return MetricsAnswer(
        num_added_files=metrics.num_added_files,
        num_removed_files=metrics.num_removed_files,
        bytes_added=metrics.bytes_added,
        bytes_removed=metrics.bytes_removed,
        attempts=metrics.attempts,
        duration_ms=metrics.duration_ms,
    )
