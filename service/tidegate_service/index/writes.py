"""What one commit writes. Every statement takes all the rows of its kind at once.

All of it runs under the lock of the table's row, in the transaction of a commit section. The
cost depends on the commit's own size: rows of `files` are found by key, never by reading on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

import msgspec
import psycopg
from sqlalchemy import Numeric, TextClause, Uuid, bindparam, insert, literal, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.actions import (
    Action,
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    file_key,
)
from tidegate_protocol.codec import encode
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.records import RatifiedCommit, TableRecord
from tidegate_service.index.keys import key
from tidegate_service.index.reads import FileKey
from tidegate_service.index.rows import commit_values, table_record
from tidegate_service.index.schema import commits, metadata_versions, tables

T = TypeVar("T")

# Rows a statement: enough for speed, few enough for the arrays' memory.
_ROWS = 5_000


def _by_table(statement: str) -> TextClause:
    return text(statement).bindparams(bindparam("table_id", type_=Uuid))


# Ends the life of what is live among the named files, and says how much that was. The lateral
# query with its LIMIT cannot be turned around: each named file costs one look into the index.
# A plain join leaves the planner the choice to read all that is live in the table, and with
# the row estimates of a growing table it takes that.
CLOSE_FILES = _by_table("""
    WITH named AS (
        SELECT live.row_id
        FROM unnest(CAST(:paths AS text[]), CAST(:dv_ids AS text[])) AS file (path, dv_id)
        CROSS JOIN LATERAL (
            SELECT files.ctid AS row_id
            FROM files
            WHERE files.table_id = :table_id
              AND files.path = file.path
              AND files.dv_id = file.dv_id
              AND files.removed_version IS NULL
            LIMIT 1
        ) AS live
    ), closed AS (
        UPDATE files SET removed_version = :version
        WHERE files.ctid = ANY (ARRAY (SELECT row_id FROM named))
        RETURNING files.size
    )
    SELECT count(*) AS files, coalesce(sum(size), 0) AS bytes FROM closed
""")

# COPY takes a sixth of the time of an INSERT from arrays, and no longer for a single row.
_OPEN_FILES = (
    "COPY files (table_id, path, dv_id, added_version, size, partition_values, stats, action) "
    "FROM STDIN (FORMAT BINARY)"
)
_OPEN_FILES_TYPES = ["uuid", "text", "text", "int8", "numeric", "json", "text", "bytea"]

# A commit's own keys are distinct, as ON CONFLICT wants them.
_SET_APP_TRANSACTIONS = _by_table("""
    INSERT INTO app_transactions (table_id, app_id, version, action)
    SELECT :table_id, app_id, :version, action
    FROM unnest(CAST(:keys AS text[]), CAST(:actions AS bytea[])) AS written (app_id, action)
    ON CONFLICT (table_id, app_id)
    DO UPDATE SET version = excluded.version, action = excluded.action
""")

_SET_DOMAINS = _by_table("""
    INSERT INTO domain_metadata (table_id, domain, version, action)
    SELECT :table_id, domain, :version, action
    FROM unnest(CAST(:keys AS text[]), CAST(:actions AS bytea[])) AS written (domain, action)
    ON CONFLICT (table_id, domain)
    DO UPDATE SET version = excluded.version, action = excluded.action
""")


_DROP_DOMAINS = _by_table("""
    DELETE FROM domain_metadata WHERE table_id = :table_id AND domain = ANY (CAST(:keys AS text[]))
""")


@dataclass(slots=True)
class Effects:
    """What is left of a commit's actions, in their order: the last one about a thing counts.

    A prepared commit names each thing once; a foreign one need not.
    """

    files: dict[FileKey, Add | None] = field(default_factory=dict)
    txns: dict[str, Txn] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None


def effects_of(actions: Sequence[Action]) -> Effects:
    effects = Effects()
    for action in actions:
        match action:
            case Add():
                effects.files[_file_key(action)] = action
            case Remove():
                effects.files[_file_key(action)] = None
            case Txn():
                effects.txns[key(action.app_id)] = action
            case DomainMetadata():
                effects.domains[key(action.domain)] = action
            case Protocol():
                effects.protocol = action
            case Metadata():
                effects.metadata = action
    return effects


async def append(
    connection: AsyncConnection, head: TableRecord, commit: RatifiedCommit
) -> TableRecord:
    """Write the version after `head` and return the new head.

    Raises `ServiceError` where the head is not where the lock's holder saw it: a defect.
    """
    table_id, version = UUID(head.id), commit.record.version
    effects = effects_of(commit.actions)
    values = commit_values(table_id, commit, is_base=head.latest_version == -1)
    await connection.execute(insert(commits).values(values))
    closed_files, closed_bytes = await _close_files(connection, table_id, version, effects)
    added = [(key, add) for key, add in effects.files.items() if add is not None]
    await open_files(connection, table_id, version, added)
    await set_app_transactions(connection, table_id, version, effects)
    await set_domains(connection, table_id, version, effects)
    changed = _encoded(protocol=effects.protocol, metadata=effects.metadata)
    if changed:
        state = _encoded(protocol=head.protocol, metadata=head.metadata) | changed
        await connection.execute(
            insert(metadata_versions).values(table_id=table_id, version=version, **state)
        )
    grown = sum(add.size for _, add in added) - closed_bytes
    moved = await connection.execute(
        update(tables)
        .where(tables.c.id == table_id, tables.c.latest_version == version - 1)
        .values(
            latest_version=version,
            published_version=version if commit.published else tables.c.published_version,
            latest_timestamp=commit.record.timestamp,
            num_files=tables.c.num_files + (len(added) - closed_files),
            size_bytes=tables.c.size_bytes + literal(grown, Numeric()),
            # Only what changed: a value that is set again is written again, however long.
            **changed,
        )
        .returning(*tables.c)
    )
    row = moved.one_or_none()
    if row is None:
        raise ServiceError(f"the head of table {head.id} is not at version {version - 1} any more")
    return table_record(row)


async def _close_files(
    connection: AsyncConnection, table_id: UUID, version: int, effects: Effects
) -> tuple[int, int]:
    # Added files too: one that is live already is replaced.
    files, size = 0, 0
    for keys in chunks(list(effects.files)):
        closed = await connection.execute(
            CLOSE_FILES,
            {
                "table_id": table_id,
                "version": version,
                "paths": [path for path, _ in keys],
                "dv_ids": [dv_id for _, dv_id in keys],
            },
        )
        row = closed.one()
        files += row.files
        size += int(row.bytes)
    return files, size


async def open_files(
    connection: AsyncConnection,
    table_id: UUID,
    version: int,
    added: Sequence[tuple[FileKey, Add]],
) -> None:
    if not added:
        return
    driver = (await connection.get_raw_connection()).driver_connection
    assert isinstance(driver, psycopg.AsyncConnection)
    # One COPY of a million rows would take longer than a statement may.
    for chunk in chunks(added):
        async with driver.cursor() as cursor, cursor.copy(_OPEN_FILES) as copy:
            copy.set_types(_OPEN_FILES_TYPES)
            for (path, dv_id), add in chunk:
                values = msgspec.json.encode(add.partition_values).decode()
                await copy.write_row(
                    (table_id, path, dv_id, version, add.size, values, add.stats, encode(add))
                )


async def set_app_transactions(
    connection: AsyncConnection, table_id: UUID, version: int, effects: Effects
) -> None:
    for chunk in chunks(list(effects.txns.items())):
        await connection.execute(
            _SET_APP_TRANSACTIONS,
            {
                "table_id": table_id,
                "version": version,
                "keys": [app_id for app_id, _ in chunk],
                "actions": [encode(txn) for _, txn in chunk],
            },
        )


async def set_domains(
    connection: AsyncConnection, table_id: UUID, version: int, effects: Effects
) -> None:
    removed = [domain for domain, action in effects.domains.items() if action.removed]
    if removed:
        await connection.execute(_DROP_DOMAINS, {"table_id": table_id, "keys": removed})
    written = [(domain, a) for domain, a in effects.domains.items() if not a.removed]
    for chunk in chunks(written):
        await connection.execute(
            _SET_DOMAINS,
            {
                "table_id": table_id,
                "version": version,
                "keys": [domain for domain, _ in chunk],
                "actions": [encode(action) for _, action in chunk],
            },
        )


def _file_key(action: Add | Remove) -> FileKey:
    path, vector = file_key(action)
    return key(path), "" if vector is None else key(vector)


def _encoded(**actions: Protocol | Metadata | None) -> dict[str, bytes]:
    return {name: encode(action) for name, action in actions.items() if action is not None}


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many rows at a time as one statement takes."""
    for start in range(0, len(items), _ROWS):
        yield items[start : start + _ROWS]
