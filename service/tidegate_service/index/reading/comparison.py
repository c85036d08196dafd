"""What the index says of one version, compared with the actions that made it.

By induction over a table's versions this proves its snapshots: each version opened the files it
adds, with the bytes it gave them, closed those it names, and touched no other.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from sqlalchemy import TextClause, Uuid, bindparam, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import (
    Action,
    DomainMetadata,
    Metadata,
    PartitionValues,
    Protocol,
    Txn,
)
from tidegate_protocol.log.codec import encode
from tidegate_service.core.ports.comparison import Comparison, FileCounts
from tidegate_service.index.rows.effects import Effects, effects_of
from tidegate_service.index.rows.file_rows import chunks
from tidegate_service.index.rows.partitions import filled_in_key, partition_key, values_text
from tidegate_service.index.rows.records import expanded
from tidegate_service.index.schema.tables import commits, metadata_versions

_MOST_NAMED = 5
"""Files that one difference names; the rest is counted."""


def _by_table(statement: str) -> TextClause:
    return text(statement).bindparams(bindparam("table_id", type_=Uuid))


_OF_FILES = _by_table("""
    SELECT file.path,
           file.action IS NULL
               OR coalesce(bool_or(
                   life.added_version = :version
                   AND life.action = file.action
                   AND (life.stats IS NULL OR life.stats = file.stats)
                   AND CAST(life.partition_values AS text) = file.partition_values
                   AND coalesce(life.partition IN (file.key, file.filled_in_key), true)
               ), false) AS opened,
           count(*) FILTER (WHERE life.removed_version = :version) AS closed,
           coalesce(bool_or(
               life.added_version < :version
               AND (life.removed_version IS NULL OR life.removed_version > :version)
           ), false) AS survived
    FROM unnest(
        CAST(:paths AS text[]), CAST(:dv_ids AS text[]), CAST(:actions AS bytea[]),
        CAST(:stats AS text[]), CAST(:partition_values AS text[]), CAST(:keys AS text[]),
        CAST(:filled_in_keys AS text[])
    ) AS file (path, dv_id, action, stats, partition_values, key, filled_in_key)
    LEFT JOIN LATERAL (
        SELECT added_version, removed_version, action, stats, partition_values, partition
        FROM files
        WHERE files.table_id = :table_id
          AND files.path = file.path
          AND files.dv_id = file.dv_id
    ) AS life ON true
    GROUP BY file.path, file.dv_id, file.action
""")

# One pass over the table's files answers for a whole page of versions.
_COUNTS = _by_table("""
    SELECT version, sum(opened) AS opened, sum(closed) AS closed
    FROM (
        SELECT added_version AS version, 1 AS opened, 0 AS closed FROM files
        WHERE table_id = :table_id AND added_version BETWEEN :first AND :last
        UNION ALL
        SELECT removed_version, 0, 1 FROM files
        WHERE table_id = :table_id AND removed_version BETWEEN :first AND :last
    ) AS change
    GROUP BY version
""")

_HEAD = _by_table("""
    SELECT tables.latest_version, tables.first_version, tables.num_files,
           tables.size_bytes, tables.protocol, tables.metadata, live.files, live.bytes,
           state.protocol AS protocol_then,
           state.metadata AS metadata_then, (
               SELECT count(*) FROM commits
               WHERE table_id = :table_id
                 AND version BETWEEN tables.first_version AND tables.latest_version
           ) AS versions
    FROM tables
    CROSS JOIN (
        SELECT count(*) AS files, coalesce(sum(size), 0) AS bytes
        FROM files WHERE table_id = :table_id AND removed_version IS NULL
    ) AS live
    LEFT JOIN LATERAL (
        SELECT protocol, metadata FROM metadata_versions
        WHERE table_id = :table_id ORDER BY version DESC LIMIT 1
    ) AS state ON true
    WHERE tables.id = :table_id
""")

_APP_TRANSACTIONS = _by_table("""
    SELECT written.key FROM unnest(CAST(:keys AS text[]), CAST(:actions AS bytea[]))
        AS written (key, action)
    LEFT JOIN app_transactions AS held
        ON held.table_id = :table_id AND held.app_id = written.key
    WHERE held.version IS NULL OR held.version < :version
       OR (held.version = :version AND held.action <> written.action)
""")

_DOMAINS = _by_table("""
    SELECT written.key FROM unnest(CAST(:keys AS text[]), CAST(:actions AS bytea[]))
        AS written (key, action)
    JOIN domain_metadata AS held ON held.table_id = :table_id AND held.domain = written.key
    WHERE held.version < :version OR (held.version = :version AND held.action <> written.action)
""")


async def stored_content(connection: AsyncConnection, table_id: UUID, version: int) -> bytes | None:
    """The bytes that the index keeps of a version, published or not."""
    query = select(commits.c.content).where(
        commits.c.table_id == table_id, commits.c.version == version
    )
    stored = (await connection.execute(query)).scalar_one_or_none()
    return None if stored is None else expanded(stored)


async def file_counts(
    connection: AsyncConnection, table_id: UUID, first: int, last: int
) -> dict[int, FileCounts]:
    rows = await connection.execute(_COUNTS, {"table_id": table_id, "first": first, "last": last})
    return {row.version: FileCounts(int(row.opened), int(row.closed)) for row in rows}


async def compare(
    connection: AsyncConnection, table_id: UUID, version: int, actions: Sequence[Action]
) -> Comparison:
    effects = effects_of(actions)
    files, closed = await _files(connection, table_id, version, effects)
    opened = sum(add is not None for add in effects.files.values())
    found = files + await _keyed(connection, table_id, version, effects)
    found += await _state(connection, table_id, version, effects)
    return Comparison(differences=tuple(found), counts=FileCounts(opened, closed))


async def _files(
    connection: AsyncConnection, table_id: UUID, version: int, effects: Effects
) -> tuple[list[str], int]:
    unopened, surviving, closed = [], [], 0
    for chunk in chunks(list(effects.files.items())):
        rows = await connection.execute(
            _OF_FILES,
            {
                "table_id": table_id,
                "version": version,
                "paths": [path for (path, _), _ in chunk],
                "dv_ids": [dv_id for (_, dv_id), _ in chunk],
                "actions": [None if add is None else encode(add) for _, add in chunk],
                # What scans prune by, where it is not what they read in the action.
                "stats": [None if add is None else add.stats for _, add in chunk],
                **_partition_columns(
                    [None if add is None else add.partition_values for _, add in chunk]
                ),
            },
        )
        for row in rows:
            closed += row.closed
            if not row.opened:
                unopened.append(row.path)
            if row.survived:
                surviving.append(row.path)
    found = []
    if unopened:
        found.append(f"files it adds are missing or differ: {_some(unopened)}")
    if surviving:
        found.append(f"files it removes or replaces live on: {_some(surviving)}")
    return found, closed


def _partition_columns(
    partitions: Sequence[PartitionValues | None],
) -> dict[str, list[str | None]]:
    return {
        "partition_values": [
            None if values is None else values_text(values).decode() for values in partitions
        ],
        "keys": [None if values is None else partition_key(values) for values in partitions],
        "filled_in_keys": [
            None if values is None else filled_in_key(values) for values in partitions
        ],
    }


async def _keyed(
    connection: AsyncConnection, table_id: UUID, version: int, effects: Effects
) -> list[str]:
    found = []
    kept = {key: action for key, action in effects.domains.items() if not action.removed}
    written: tuple[tuple[str, TextClause, Mapping[str, Txn | DomainMetadata]], ...] = (
        ("application transactions", _APP_TRANSACTIONS, effects.txns),
        ("domains", _DOMAINS, kept),
    )
    for what, query, actions in written:
        for chunk in chunks(list(actions.items())):
            rows = await connection.execute(
                query,
                {
                    "table_id": table_id,
                    "version": version,
                    "keys": [key for key, _ in chunk],
                    "actions": [encode(action) for _, action in chunk],
                },
            )
            if differing := list(rows.scalars()):
                found.append(f"{what} it sets are missing or differ: {_some(differing)}")
    return found


async def _state(
    connection: AsyncConnection, table_id: UUID, version: int, effects: Effects
) -> list[str]:
    query = select(metadata_versions.c.protocol, metadata_versions.c.metadata).where(
        metadata_versions.c.table_id == table_id, metadata_versions.c.version == version
    )
    row = (await connection.execute(query)).one_or_none()
    expected: tuple[tuple[str, Protocol | Metadata | None], ...] = (
        ("protocol", effects.protocol),
        ("metadata", effects.metadata),
    )
    return [
        f"the {name} it sets is missing or differs"
        for name, action in expected
        if action is not None and (row is None or getattr(row, name) != encode(action))
    ]


async def head_differences(connection: AsyncConnection, table_id: UUID) -> list[str]:
    """What the table's row says and the rows it sums up do not."""
    row = (await connection.execute(_HEAD, {"table_id": table_id})).one_or_none()
    if row is None:
        return []
    found = []
    if row.num_files != row.files or row.size_bytes != row.bytes:
        found.append(
            f"the head counts {row.num_files} files of {row.size_bytes} bytes, and "
            f"{row.files} of {row.bytes} bytes are live"
        )
    if row.protocol != row.protocol_then or row.metadata != row.metadata_then:
        found.append("the head's protocol or metadata are not those that were set last")
    expected = row.latest_version - row.first_version + 1
    if row.versions != expected:
        found.append(f"expected {expected} versions up to the head, found {row.versions}")
    return found


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    named = ", ".join(excerpt(name) for name in names[:_MOST_NAMED])
    return named if more <= 0 else f"{named} and {more} more"
