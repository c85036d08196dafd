"""Rows of `tables` as prepared statements read them (`index.postgres.pipeline`).

Each commit and each look-up of a table begins with one. To build a query of SQLAlchemy for it, and
to have it planned, costs several times as much as to read the row.
"""

from typing import Any

from tidegate_service.core.ports.records import TableHead, TableRecord, TableState
from tidegate_service.index.postgres.pipeline import Row, as_bool, as_int, as_text, as_uuid
from tidegate_service.index.rows.records import cause_of, metadata_of, protocol_of

# Of what is kept outside the row, its length is known without reading it.
METADATA_BYTES = "coalesce(octet_length(protocol), 0) + coalesce(octet_length(metadata), 0)"


def columns(*, where: str = "true") -> str:
    """Those of a row; protocol and metadata are null unless the condition holds."""
    return f"""
        id, name, location, catalog_managed, state, state_reason, latest_version,
        published_version, latest_timestamp, num_files, CAST(size_bytes AS text), first_version,
        epoch, quarantine_cause, {METADATA_BYTES},
        CASE WHEN {where} THEN protocol END, CASE WHEN {where} THEN metadata END
    """


def head_of(row: Row) -> TableHead:
    """A row of `columns`."""
    return TableHead(**_head(row))


def table_of(row: Row) -> TableRecord:
    """The same with the protocol and metadata."""
    protocol, metadata = row[15], row[16]
    return TableRecord(
        **_head(row),
        protocol=None if protocol is None else protocol_of(protocol),
        metadata=None if metadata is None else metadata_of(metadata),
    )


def _head(row: Row) -> dict[str, Any]:
    state = as_text(row[4])
    return {
        "id": str(as_uuid(row[0])),
        "name": as_text(row[1]),
        "location": as_text(row[2]),
        "catalog_managed": as_bool(row[3]),
        "state": TableState(state),
        "state_reason": None if row[5] is None else as_text(row[5]),
        "quarantine_cause": cause_of(state, None if row[13] is None else as_text(row[13])),
        "latest_version": as_int(row[6]),
        "published_version": as_int(row[7]),
        "latest_timestamp": as_int(row[8]),
        "num_files": as_int(row[9]),
        "size_bytes": int(as_text(row[10])),
        "first_version": as_int(row[11]),
        "epoch": as_int(row[12]),
        "metadata_bytes": as_int(row[14]),
    }
