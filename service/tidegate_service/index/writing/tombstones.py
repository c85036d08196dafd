"""Rows of `tombstones`."""

from collections.abc import Sequence
from uuid import UUID

from tidegate_protocol.log.actions import Remove
from tidegate_protocol.log.codec import encode
from tidegate_service.index.postgres.parameters import byteas, int8, int8s, texts, uuid
from tidegate_service.index.postgres.pipeline import Query, Statement
from tidegate_service.index.rows.effects import FileKey

# A checkpoint that names one file as removed twice, as no writer's does, protects it for as long as
# one of the two says.
_INSERT = Statement("""
    INSERT INTO tombstones (table_id, version, path, dv_id, deletion_timestamp, action)
    SELECT $1, $2, file.*
    FROM unnest($3, $4, $5, $6) AS file (path, dv_id, deletion_timestamp, action)
    ON CONFLICT (table_id, path, dv_id) DO UPDATE
    SET deletion_timestamp = greatest(
        tombstones.deletion_timestamp, excluded.deletion_timestamp
    )
""")


def insert_tombstones(
    table_id: UUID, version: int, removed: Sequence[tuple[FileKey, Remove]]
) -> Query:
    """Of the removes in the checkpoint of a table's first version. One that does not say when it
    was made protects nothing (Delta reads 0), and is kept all the same for whoever wants it."""
    return Query(
        _INSERT,
        uuid(table_id),
        int8(version),
        texts([path for (path, _), _ in removed]),
        texts([vector for (_, vector), _ in removed]),
        int8s([remove.deletion_timestamp or 0 for _, remove in removed]),
        byteas([encode(remove) for _, remove in removed]),
    )
