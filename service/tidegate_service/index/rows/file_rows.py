"""Rows of `files`: opened by an add, closed by a remove or by the add that replaces them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.codec import encode
from tidegate_service.index.postgres.parameters import Parameter, byteas, int8s, jsons, texts, uuids
from tidegate_service.index.postgres.pipeline import Query, Statement
from tidegate_service.index.rows.effects import FileKey
from tidegate_service.index.rows.newest import newest_row
from tidegate_service.index.rows.partitions import partition_key, values_text

T = TypeVar("T")

ROWS = 5_000
"""Rows a statement: enough for speed, few enough for the arrays' memory."""
ROWS_BYTES = 2 * 1024 * 1024
"""Of the log lines of a statement's rows. The event loop packs them in ten milliseconds."""

FILES_KEY = "files_key"
"""The unique constraint of live files (`index.schema.tables`)."""

# Ends the life of what is live among the named files, and counts it off their tables. The lateral
# queries with their LIMITs cannot be turned around: each named file costs one index scan,
# and so does each table. Plain joins leave the planner the choice to read all that is live in the
# table, and with the row estimates of a growing table it takes that. The order, of one value, has
# the index read backward, past the dead copies that `newest` tells of.
CLOSE = Statement(f"""
    WITH named AS MATERIALIZED (
        SELECT live.row_id, file.version, file.deletion_timestamp
        FROM unnest($1, $2, $3, $4, $5)
            AS file (table_id, path, dv_id, version, deletion_timestamp)
        CROSS JOIN LATERAL (
            SELECT files.ctid AS row_id
            FROM files
            WHERE files.table_id = file.table_id
              AND files.path = file.path
              AND files.dv_id = file.dv_id
              AND files.removed_version IS NULL
            ORDER BY files.removed_version DESC
            LIMIT 1
        ) AS live
    ), closed AS (
        UPDATE files
        SET removed_version = named.version, deletion_timestamp = named.deletion_timestamp
        FROM named
        WHERE files.ctid = named.row_id
        RETURNING files.table_id, files.size
    ), counted AS MATERIALIZED (
        SELECT holder.row_id, of_table.files, of_table.size
        FROM (
            SELECT table_id, count(*) AS files, sum(size) AS size FROM closed GROUP BY table_id
        ) AS of_table
        CROSS JOIN LATERAL (
            {newest_row("of_table.table_id", "ctid AS row_id")}
        ) AS holder
    )
    UPDATE tables
    SET num_files = tables.num_files - counted.files,
        size_bytes = tables.size_bytes - counted.size
    FROM counted
    WHERE tables.ctid = counted.row_id
""")

_OPEN = Statement("""
    INSERT INTO files (
        table_id, path, dv_id, added_version, size, partition_values, action, partition
    )
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
""")


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a version does to one file: an add opens it, None only closes it. `deleted_ms` is when
    a remove says that it was removed."""

    table_id: UUID
    version: int
    key: FileKey
    add: Add | None
    deleted_ms: int | None = None


def close(changes: Sequence[FileChange]) -> Query:
    """Close what is live of these files, added ones included: one that is live already is
    replaced. At most `ROWS`, each named once."""
    return Query(CLOSE, *_named(changes), _deleted(changes))


def open_(changes: Sequence[FileChange]) -> list[Query]:
    """Write the rows of the added files, if there are any. At most `ROWS`."""
    return _opening(_added(changes))


def close_and_open(changes: Sequence[FileChange]) -> list[Query]:
    """`close`, which has to come first, and `open_`."""
    named, added = _named(changes), _added(changes)
    opening = _opening(added, named if len(added) == len(changes) else None)
    return [Query(CLOSE, *named, _deleted(changes)), *opening]


def _deleted(changes: Sequence[FileChange]) -> Parameter:
    return int8s([change.deleted_ms for change in changes])


def _added(changes: Sequence[FileChange]) -> list[tuple[FileChange, Add]]:
    return [(change, change.add) for change in changes if change.add is not None]


def _named(changes: Sequence[FileChange]) -> tuple[Parameter, ...]:
    """Whose files they are, of which path and vector, and of which version the change is."""
    return (
        uuids([change.table_id for change in changes]),
        texts([change.key[0] for change in changes]),
        texts([change.key[1] for change in changes]),
        int8s([change.version for change in changes]),
    )


def _opening(
    added: Sequence[tuple[FileChange, Add]], named: tuple[Parameter, ...] | None = None
) -> list[Query]:
    """`named` are the first columns, where somebody has packed them already."""
    if not added:
        return []
    return [
        Query(
            _OPEN,
            *(named or _named([change for change, _ in added])),
            int8s([add.size for _, add in added]),
            jsons([values_text(add.partition_values) for _, add in added]),
            byteas([encode(add) for _, add in added]),
            texts([partition_key(add.partition_values) for _, add in added]),
        )
    ]


def pieces(changes: Iterable[FileChange], **limits: int) -> Iterator[Sequence[FileChange]]:
    """As many at a time as one statement takes, by their number and by their bytes; `limits` are
    those of `sized`."""
    return sized(changes, lambda change: 0 if change.add is None else len(change.add.raw), **limits)


def sized(
    items: Iterable[T],
    bytes_of: Callable[[T], int],
    *,
    most_rows: int = ROWS,
    most_bytes: int = ROWS_BYTES,
) -> Iterator[Sequence[T]]:
    """The same of anything. What comes is taken as it is needed."""
    piece: list[T] = []
    size = 0
    for item in items:
        more = bytes_of(item)
        if piece and (len(piece) == most_rows or size + more > most_bytes):
            yield piece
            piece, size = [], 0
        piece.append(item)
        size += more
    if piece:
        yield piece


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many rows at a time as one statement takes."""
    for start in range(0, len(items), ROWS):
        yield items[start : start + ROWS]
