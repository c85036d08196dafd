"""Rows of the index as the records that use cases see, and back."""

import threading
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
import zstandard
from sqlalchemy import Row, func, literal

from tidegate_protocol.log.actions import Add, DomainMetadata, Metadata, Protocol, Txn
from tidegate_protocol.log.content import Content
from tidegate_protocol.proposal.transaction import IsolationLevel, WinningCommit
from tidegate_protocol.replay.commits import parse_commit, summarize
from tidegate_service.core.ports.records import (
    CommitMetrics,
    CommitRecord,
    QuarantineCause,
    TableHead,
    TableRecord,
    TableState,
)
from tidegate_service.index.schema.tables import commits, past_commits, tables

# Everything of a commit but its bytes, which may be megabytes.
COMMIT_COLUMNS = [column for column in commits.c if column.name != "content"]
_LONG_COLUMNS = (tables.c.protocol, tables.c.metadata)
# Of what is kept outside the row, its length is known without reading it.
_METADATA_BYTES = sum(
    (func.coalesce(func.octet_length(long), 0) for long in _LONG_COLUMNS), literal(0)
)
HEAD_COLUMNS = [
    *(column for column in tables.c if column.name not in {long.name for long in _LONG_COLUMNS}),
    _METADATA_BYTES.label("metadata_bytes"),
]
RECORD_COLUMNS = [column.name for column in past_commits.c]

_REMEMBERED_BYTES = 128 * 1024
"""An action that takes no more in memory is decoded once."""
_REMEMBERED = 512
_ENTRY_BYTES = 100

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
        **_head(row),
        protocol=None if row.protocol is None else protocol_of(row.protocol),
        metadata=None if row.metadata is None else metadata_of(row.metadata),
    )


def table_head(row: Row[*tuple[Any, ...]]) -> TableHead:
    """A row of `HEAD_COLUMNS`."""
    return TableHead(**_head(row), metadata_bytes=row.metadata_bytes)


def _head(row: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "name": row.name,
        "location": row.location,
        "catalog_managed": row.catalog_managed,
        "state": TableState(row.state),
        "state_reason": row.state_reason,
        "quarantine_cause": cause_of(row.state, row.quarantine_cause),
        "latest_version": row.latest_version,
        "published_version": row.published_version,
        "latest_timestamp": row.latest_timestamp,
        "num_files": row.num_files,
        "size_bytes": int(row.size_bytes),
        "first_version": row.first_version,
        "epoch": row.epoch,
    }


def cause_of(state: str, cause: str | None) -> QuarantineCause | None:
    """Of a row of `tables`. The release before leaves the cause of an earlier quarantine there."""
    is_quarantined = state == TableState.QUARANTINED.value
    return QuarantineCause(cause) if is_quarantined and cause is not None else None


def commit_record(row: Row[*tuple[Any, ...]]) -> CommitRecord:
    """A row of `COMMIT_COLUMNS`."""
    details = row.details
    return CommitRecord(
        version=row.version,
        timestamp=row.timestamp,
        transaction_id=details.get("transaction_id", row.transaction_id),
        body_digest=row.body_digest,
        content_sha256=row.content_sha256,
        # Of a version that expired, nothing of this is left.
        operation=details.get("operation"),
        operation_parameters=details.get("operation_parameters", {}),
        operation_metrics=details.get("operation_metrics", {}),
        isolation_level=IsolationLevel(row.isolation_level) if row.isolation_level else None,
        is_blind_append=row.is_blind_append,
        read_version=row.read_version,
        rebased_over=row.rebased_over,
        engine_info=details.get("engine_info"),
        user_metadata=details.get("user_metadata"),
        tags=details.get("tags", {}),
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


def winner(version: int, timestamp: int, stored: bytes | bytearray) -> WinningCommit:
    """Of a row's version, timestamp (ms) and content."""
    return summarize(version, parse_commit(expanded(stored)), timestamp=timestamp)


# Higher ones find little more in a million log lines.
_LEVEL_OF_LARGE = 1


class _Zstd(threading.local):
    """Making a compressor costs four times what it does to a small commit; none may be used by
    two threads at once."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor().compress
        self.decompress = zstandard.ZstdDecompressor().decompress


_ZSTD = _Zstd()


def compressed(content: Content) -> bytes:
    if isinstance(content, bytes):
        return _ZSTD.compress(content)
    compressor = zstandard.ZstdCompressor(level=_LEVEL_OF_LARGE).compressobj(size=len(content))
    pieces = [compressor.compress(piece) for piece in content.pieces()]
    return b"".join([*pieces, compressor.flush()])


def expanded(stored: bytes | bytearray) -> bytes:
    return _ZSTD.decompress(stored)


def add_of(raw: bytes) -> Add:
    return _known(_LINES.decode(raw).add, raw)


def protocol_of(raw: bytes) -> Protocol:
    return _small_protocol(raw) if _is_small(raw) else _protocol(raw)


def metadata_of(raw: bytes) -> Metadata:
    return _small_metadata(raw) if _is_small(raw) else _metadata(raw)


def _is_small(raw: bytes) -> bool:
    """Its text is held as a line and decoded. Of a map's entries there are no more than commas."""
    return 2 * len(raw) + _ENTRY_BYTES * raw.count(b",") <= _REMEMBERED_BYTES


def _protocol(raw: bytes) -> Protocol:
    return _known(_LINES.decode(raw).protocol, raw)


def _metadata(raw: bytes) -> Metadata:
    return _known(_LINES.decode(raw).metadata, raw)


# Every lock of a table's row brings these two along, and they hardly ever change.
_small_protocol = lru_cache(maxsize=_REMEMBERED)(_protocol)
_small_metadata = lru_cache(maxsize=_REMEMBERED)(_metadata)


def domain_of(raw: bytes) -> DomainMetadata:
    return _known(_LINES.decode(raw).domain_metadata, raw)


def txn_of(raw: bytes) -> Txn:
    return _known(_LINES.decode(raw).txn, raw)


def _known(action: Known | None, raw: bytes) -> Known:
    if action is None:
        raise ValueError("a column of the index holds another kind of action than its own")
    msgspec.structs.force_setattr(action, "raw", raw)
    return action
