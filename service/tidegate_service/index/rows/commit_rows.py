"""Rows of `commits`.

Their many small columns go to the server as one JSON array, since packing an array for each of them
costs more than everything else about a row. Beside it go the contents, which are bytes, and the
details, which may hold U+0000: as a whole `json` takes it, inside of another one it does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from tidegate_protocol.log.weights import has_more_values
from tidegate_service.core.ports.records import CommitRecord, RatifiedCommit
from tidegate_service.index.postgres.parameters import byteas, jsons, records
from tidegate_service.index.postgres.pipeline import Query, Statement
from tidegate_service.index.rows.keys import key
from tidegate_service.index.rows.records import compressed

LONG_DETAILS = 128 * 1024
"""In bytes; what a proposal may say is shorter, with whatever is added to it."""
MANY_DETAILS = 8_000
"""In values; a proposal may say no more than half as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommit:
    """A commit to write; `is_base` where it is the table's first row. `stored` is its content as
    it is stored, where somebody has made that already."""

    table_id: UUID
    commit: RatifiedCommit
    is_base: bool
    stored: bytes | None = None


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    """The columns but `details` and `content`. Sums of what writers claim may be larger than any
    integer type, so they are texts."""

    table_id: UUID
    version: int
    previous_version: int | None
    timestamp: int
    transaction_id: str | None
    body_digest: str | None
    content_sha256: str | None
    isolation_level: str | None
    is_blind_append: bool
    read_version: int | None
    rebased_over: int
    is_foreign: bool
    num_added_files: int
    num_removed_files: int
    bytes_added: str
    bytes_removed: str
    attempts: int
    duration_ms: int
    principal: str | None
    request_id: str | None
    published: bool
    content_held: bool


_TYPES = {int: "bigint", int | None: "bigint", bool: "boolean", UUID: "uuid"}
_OTHER_TYPES = {"bytes_added": "numeric", "bytes_removed": "numeric"}


def insert(new: Sequence[NewCommit]) -> Query:
    """Write the rows; those of one table in the order of their versions."""
    contents = [
        one.stored if one.commit.content is None else one.stored or compressed(one.commit.content)
        for one in new
    ]
    details = [_details(one.commit.record) for one in new]
    return Query(_INSERT, records([_row(one) for one in new]), jsons(details), byteas(contents))


def _row(new: NewCommit) -> _Row:
    commit = new.commit
    record = commit.record
    metrics = record.metrics
    transaction_id = record.transaction_id
    return _Row(
        table_id=new.table_id,
        version=record.version,
        previous_version=None if new.is_base else record.version - 1,
        timestamp=record.timestamp,
        transaction_id=None if transaction_id is None else key(transaction_id),
        body_digest=record.body_digest,
        content_sha256=record.content_sha256,
        isolation_level=record.isolation_level,
        is_blind_append=record.is_blind_append,
        read_version=record.read_version,
        rebased_over=record.rebased_over,
        is_foreign=record.foreign,
        num_added_files=metrics.num_added_files,
        num_removed_files=metrics.num_removed_files,
        bytes_added=str(metrics.bytes_added),
        bytes_removed=str(metrics.bytes_removed),
        attempts=metrics.attempts,
        duration_ms=metrics.duration_ms,
        principal=record.principal,
        request_id=record.request_id,
        published=commit.published,
        content_held=not commit.published,
    )


def columns(table_id: UUID, record: CommitRecord) -> dict[str, Any]:
    """The values of a row by the names of its columns, for one that is no version."""
    commit = RatifiedCommit(record=record, actions=(), content=None, published=True)
    row = _row(NewCommit(table_id=table_id, commit=commit, is_base=True))
    return {
        **msgspec.structs.asdict(row),
        "bytes_added": record.metrics.bytes_added,
        "bytes_removed": record.metrics.bytes_removed,
        "details": msgspec.json.decode(_details(record)),
    }


def _details(record: CommitRecord) -> bytes:
    """What a commit of another writer says at length is left out, but for its operation: the log
    has it, and a page of rows is decoded where everybody's requests are."""
    details = _all_details(record)
    encoded = msgspec.json.encode(details)
    if len(encoded) <= LONG_DETAILS and not has_more_values(details, encoded, MANY_DETAILS):
        return encoded
    nothing: dict[str, Any] = {"operation_parameters": {}, "operation_metrics": {}, "tags": {}}
    texts = {"engine_info": None, "user_metadata": None}
    return msgspec.json.encode(details | nothing | texts)


def _all_details(record: CommitRecord) -> dict[str, Any]:
    details: dict[str, Any] = {
        "operation": record.operation,
        "operation_parameters": record.operation_parameters,
        "operation_metrics": record.operation_metrics,
        "engine_info": record.engine_info,
        "user_metadata": record.user_metadata,
        "tags": record.tags,
    }
    transaction_id = record.transaction_id
    if transaction_id is not None and key(transaction_id) != transaction_id:
        details["transaction_id"] = transaction_id
    return details


def _statement() -> str:
    fields = msgspec.structs.fields(_Row)
    names = ", ".join(field.name for field in fields)
    columns = ", ".join(
        f"{field.name} {_OTHER_TYPES.get(field.name) or _TYPES.get(field.type, 'text')}"
        for field in fields
    )
    return f"""
        INSERT INTO commits ({names}, details, content)
        SELECT * FROM ROWS FROM (json_to_recordset($1) AS ({columns}), unnest($2, $3))
    """


_INSERT = Statement(_statement())
