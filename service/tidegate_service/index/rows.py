"""Rows of the index as the records that use cases see, and back."""

from typing import Any, TypeVar
from uuid import UUID

import msgspec
import zstandard
from sqlalchemy import Row

from tidegate_protocol.actions import Action, Add, DomainMetadata, Metadata, Protocol, Txn
from tidegate_protocol.codec import decode_lines
from tidegate_protocol.commits import summarize
from tidegate_protocol.transaction import IsolationLevel, ReadState, Winner
from tidegate_service.core.records import (
    CommitMetrics,
    CommitRecord,
    RatifiedCommit,
    TableRecord,
    TableState,
)
from tidegate_service.index.keys import key
from tidegate_service.index.schema import commits, past_commits

# Everything of a commit but its bytes, which may be megabytes.
COMMIT_COLUMNS = [column for column in commits.c if column.name != "content"]
RECORD_COLUMNS = [column.name for column in past_commits.c]

Known = TypeVar("Known", bound=msgspec.Struct)


class _Line(
    msgspec.Struct,
    kw_only=True,
    rename={"metadata": "metaData", "domain_metadata": "domainMetadata"},
):
    """A stored log line; it was checked when it came, so it is read without doing so again."""

    add: Add | None = None
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txn: Txn | None = None
    domain_metadata: DomainMetadata | None = None


_LINES = msgspec.json.Decoder(_Line)


def table_record(row: Row[*tuple[Any, ...]]) -> TableRecord:
    """A row of `tables`."""
    return TableRecord(
        id=str(row.id),
        name=row.name,
        location=row.location,
        catalog_managed=row.catalog_managed,
        state=TableState(row.state),
        state_reason=row.state_reason,
        latest_version=row.latest_version,
        published_version=row.published_version,
        latest_timestamp=row.latest_timestamp,
        protocol=None if row.protocol is None else protocol_of(row.protocol),
        metadata=None if row.metadata is None else metadata_of(row.metadata),
        num_files=row.num_files,
        size_bytes=int(row.size_bytes),
        first_version=row.first_version,
        epoch=row.epoch,
    )


def commit_record(row: Row[*tuple[Any, ...]]) -> CommitRecord:
    """A row of `COMMIT_COLUMNS`."""
    details = row.details
    return CommitRecord(
        version=row.version,
        timestamp=row.timestamp,
        transaction_id=details.get("transaction_id", row.transaction_id),
        body_digest=row.body_digest,
        content_sha256=row.content_sha256,
        operation=details["operation"],
        operation_parameters=details["operation_parameters"],
        operation_metrics=details["operation_metrics"],
        isolation_level=IsolationLevel(row.isolation_level) if row.isolation_level else None,
        is_blind_append=row.is_blind_append,
        read_version=row.read_version,
        rebased_over=row.rebased_over,
        engine_info=details["engine_info"],
        user_metadata=details["user_metadata"],
        tags=details["tags"],
        foreign=row.is_foreign,
        metrics=CommitMetrics(
            num_added_files=row.num_added_files,
            num_removed_files=row.num_removed_files,
            bytes_added=int(row.bytes_added),
            bytes_removed=int(row.bytes_removed),
            attempts=row.attempts,
            duration_ms=row.duration_ms,
        ),
        principal=row.principal,
        request_id=row.request_id,
    )


def commit_values(table_id: UUID, commit: RatifiedCommit, *, is_base: bool) -> dict[str, Any]:
    """The row of `commits` for a ratified commit; `is_base` for the table's first one."""
    record = commit.record
    metrics = record.metrics
    details: dict[str, Any] = {
        "operation": record.operation,
        "operation_parameters": dict(record.operation_parameters),
        "operation_metrics": dict(record.operation_metrics),
        "engine_info": record.engine_info,
        "user_metadata": record.user_metadata,
        "tags": dict(record.tags),
    }
    transaction_id = None if record.transaction_id is None else key(record.transaction_id)
    if transaction_id != record.transaction_id:
        details["transaction_id"] = record.transaction_id
    return {
        "table_id": table_id,
        "version": record.version,
        "previous_version": None if is_base else record.version - 1,
        "timestamp": record.timestamp,
        "transaction_id": transaction_id,
        "body_digest": record.body_digest,
        "content_sha256": record.content_sha256,
        "isolation_level": record.isolation_level and record.isolation_level.value,
        "is_blind_append": record.is_blind_append,
        "read_version": record.read_version,
        "rebased_over": record.rebased_over,
        "is_foreign": record.foreign,
        "num_added_files": metrics.num_added_files,
        "num_removed_files": metrics.num_removed_files,
        "bytes_added": metrics.bytes_added,
        "bytes_removed": metrics.bytes_removed,
        "attempts": metrics.attempts,
        "duration_ms": metrics.duration_ms,
        "principal": record.principal,
        "request_id": record.request_id,
        "details": details,
        "published": commit.published,
        "content_held": not commit.published,
        "content": None if commit.content is None else compressed(commit.content),
    }


def read_state(version: int, row: Row[*tuple[Any, ...]]) -> ReadState:
    """A row of `metadata_versions` as the state at a version at or after it."""
    return ReadState(
        version=version, protocol=protocol_of(row.protocol), metadata=metadata_of(row.metadata)
    )


def winner(row: Row[*tuple[Any, ...]]) -> Winner:
    """A row of version, timestamp and content."""
    actions: tuple[Action, ...] = tuple(decode_lines(expanded(row.content)))
    return summarize(row.version, actions, timestamp_fallback=row.timestamp)


def compressed(content: bytes) -> bytes:
    return zstandard.compress(content)


def expanded(stored: bytes) -> bytes:
    return zstandard.decompress(stored)


def add_of(raw: bytes) -> Add:
    return _known(_LINES.decode(raw).add, raw)


def protocol_of(raw: bytes) -> Protocol:
    return _known(_LINES.decode(raw).protocol, raw)


def metadata_of(raw: bytes) -> Metadata:
    return _known(_LINES.decode(raw).metadata, raw)


def domain_of(raw: bytes) -> DomainMetadata:
    return _known(_LINES.decode(raw).domain_metadata, raw)


def txn_of(raw: bytes) -> Txn:
    return _known(_LINES.decode(raw).txn, raw)


def _known(action: Known | None, raw: bytes) -> Known:
    if action is None:
        raise ValueError("a column of the index holds another kind of action than its own")
    msgspec.structs.force_setattr(action, "raw", raw)
    return action
