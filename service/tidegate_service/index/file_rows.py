"""Rows of `files`: opened by an add, closed by a remove or by the add that replaces them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from tidegate_protocol.actions import Add
from tidegate_protocol.codec import encode
from tidegate_service.index.effects import FileKey
from tidegate_service.index.parameters import byteas, int8s, jsons, texts, uuids
from tidegate_service.index.partitions import partition_key, values_text
from tidegate_service.index.pipeline import Query, Row, Statement, as_int, as_text, as_uuid

T = TypeVar("T")

ROWS = 5_000
"""Rows a statement: enough for speed, few enough for the arrays' memory."""

# Ends the life of what is live among the named files, and says how much that was. The lateral
# query with its LIMIT cannot be turned around: each named file costs one look into the index.
# A plain join leaves the planner the choice to read all that is live in the table, and with
# the row estimates of a growing table it takes that.
CLOSE = Statement("""
    WITH named AS MATERIALIZED (
        SELECT live.row_id, file.version
        FROM unnest($1, $2, $3, $4) AS file (table_id, path, dv_id, version)
        CROSS JOIN LATERAL (
            SELECT files.ctid AS row_id
            FROM files
            WHERE files.table_id = file.table_id
              AND files.path = file.path
              AND files.dv_id = file.dv_id
              AND files.removed_version IS NULL
            LIMIT 1
        ) AS live
    ), closed AS (
        UPDATE files SET removed_version = named.version
        FROM named
        WHERE files.ctid = named.row_id
        RETURNING files.table_id, files.size
    )
    SELECT table_id, count(*), CAST(sum(size) AS text) FROM closed GROUP BY table_id
""")

_OPEN = Statement("""
    INSERT INTO files (
        table_id, path, dv_id, added_version, size, partition_values, stats, action, partition
    )
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9)
""")


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a version does to one file: an add opens it, None only closes it."""

    table_id: UUID
    version: int
    key: FileKey
    add: Add | None


def close(changes: Sequence[FileChange]) -> Query:
    """Close what is live of these files, added ones included: one that is live already is
    replaced. At most `ROWS`, each named once. `count` reads the answer."""
    return Query(
        CLOSE,
        uuids([change.table_id for change in changes]),
        texts([change.key[0] for change in changes]),
        texts([change.key[1] for change in changes]),
        int8s([change.version for change in changes]),
    )


def open_(changes: Sequence[FileChange]) -> list[Query]:
    """Write the rows of the added files, if there are any. At most `ROWS`."""
    added = [(change, change.add) for change in changes if change.add is not None]
    if not added:
        return []
    return [
        Query(
            _OPEN,
            uuids([change.table_id for change, _ in added]),
            texts([change.key[0] for change, _ in added]),
            texts([change.key[1] for change, _ in added]),
            int8s([change.version for change, _ in added]),
            int8s([add.size for _, add in added]),
            jsons([values_text(add.partition_values) for _, add in added]),
            texts([add.stats for _, add in added]),
            byteas([encode(add) for _, add in added]),
            texts([partition_key(add.partition_values) for _, add in added]),
        )
    ]


@dataclass(slots=True)
class Closed:
    """How many files of a table were closed, and how many bytes they had."""

    files: int = 0
    size: int = 0


def count(closed: Mapping[UUID, Closed], rows: Sequence[Row]) -> None:
    """Add what `close` says to the sums."""
    for table_id, files, size in rows:
        of_table = closed[as_uuid(table_id)]
        of_table.files += as_int(files)
        of_table.size += int(as_text(size))


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many rows at a time as one statement takes."""
    for start in range(0, len(items), ROWS):
        yield items[start : start + ROWS]
