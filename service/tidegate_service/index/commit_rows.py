"""Rows of `commits`, written column by column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from tidegate_service.core.records import CommitRecord, RatifiedCommit
from tidegate_service.index.keys import key
from tidegate_service.index.parameters import (
    Parameter,
    bools,
    byteas,
    int8s,
    jsons,
    texts,
    uuids,
)
from tidegate_service.index.pipeline import Query, Statement
from tidegate_service.index.rows import compressed


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCommit:
    """A commit to write; `is_base` where it is the table's first row. `stored` is its content as
    it is stored, where somebody has made that already."""

    table_id: UUID
    commit: RatifiedCommit
    is_base: bool
    stored: bytes | None = None


def insert(new: Sequence[NewCommit]) -> Query:
    """Write the rows; those of one table in the order of their versions."""
    contents = [
        one.stored if one.commit.content is None else one.stored or compressed(one.commit.content)
        for one in new
    ]
    return Query(_INSERT, *_columns(new, contents).values())


def _columns(new: Sequence[NewCommit], contents: Sequence[bytes | None]) -> dict[str, Parameter]:
    commits = [one.commit for one in new]
    records = [commit.record for commit in commits]
    metrics = [record.metrics for record in records]
    return {
        "table_id": uuids([one.table_id for one in new]),
        "version": int8s([record.version for record in records]),
        "previous_version": int8s(
            [None if one.is_base else one.commit.record.version - 1 for one in new]
        ),
        "timestamp": int8s([record.timestamp for record in records]),
        "transaction_id": texts(
            [
                None if record.transaction_id is None else key(record.transaction_id)
                for record in records
            ]
        ),
        "body_digest": texts([record.body_digest for record in records]),
        "content_sha256": texts([record.content_sha256 for record in records]),
        "isolation_level": texts([record.isolation_level for record in records]),
        "is_blind_append": bools([record.is_blind_append for record in records]),
        "read_version": int8s([record.read_version for record in records]),
        "rebased_over": int8s([record.rebased_over for record in records]),
        "is_foreign": bools([record.foreign for record in records]),
        "num_added_files": int8s([counted.num_added_files for counted in metrics]),
        "num_removed_files": int8s([counted.num_removed_files for counted in metrics]),
        "bytes_added": texts([str(counted.bytes_added) for counted in metrics]),
        "bytes_removed": texts([str(counted.bytes_removed) for counted in metrics]),
        "attempts": int8s([counted.attempts for counted in metrics]),
        "duration_ms": int8s([counted.duration_ms for counted in metrics]),
        "principal": texts([record.principal for record in records]),
        "request_id": texts([record.request_id for record in records]),
        "details": jsons([_details(record) for record in records]),
        "published": bools([commit.published for commit in commits]),
        "content_held": bools([not commit.published for commit in commits]),
        "content": byteas(contents),
    }


def _details(record: CommitRecord) -> bytes:
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
    return msgspec.json.encode(details)


def _statement() -> str:
    columns = list(_columns((), ()))
    # Sums of what writers claim may be larger than any integer type, so they come as text.
    values = [f"CAST({c} AS numeric)" if c.startswith("bytes_") else c for c in columns]
    places = [f"${at}" for at in range(1, len(columns) + 1)]
    return f"""
        INSERT INTO commits ({", ".join(columns)})
        SELECT {", ".join(values)}
        FROM unnest({", ".join(places)}) AS written ({", ".join(columns)})
    """


_INSERT = Statement(_statement())
