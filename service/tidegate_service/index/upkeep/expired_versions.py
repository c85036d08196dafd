"""Versions that leave the index once their log was cleaned up, a batch in a transaction.

A batch moves `first_version` under the lock of the table's row, so that whoever holds that lock,
and every query that looks at `first_version`, sees all of it or nothing. Rows of removed files are
no part of it: no snapshot from `first_version` on has them, so they go afterwards, without a lock.
"""

from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Row, TextClause, Uuid, bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.ports.upkeep.expired import Files, RowKey, Versions
from tidegate_service.index.access import audit
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres.connections import Connections
from tidegate_service.index.tables import metadata_ids

_BEHIND = 2**63 - 1
"""In the place of the version that a live file was not removed at."""


def _of_table(statement: str, *numbers: str) -> TextClause:
    named = (bindparam(name, type_=BigInteger) for name in numbers)
    return text(statement).bindparams(bindparam("table_id", type_=Uuid), *named)


# Commits wait behind this lock, so it is given up where it does not come soon.
_IMPATIENT = text("SELECT set_config('lock_timeout', '2000', true)")
_LOCKED = _of_table("""
    SELECT name, first_version, published_version, epoch FROM tables
    WHERE id = :table_id AND state = 'active' FOR NO KEY UPDATE
""")
_BATCH = _of_table(
    """
    SELECT least(
        (
            SELECT max(version) + 1
            FROM (
                SELECT version, size, sum(size) OVER (ORDER BY version) AS so_far
                FROM (
                    SELECT version, coalesce(octet_length(content), 0) AS size FROM commits
                    WHERE table_id = :table_id AND version >= :first AND version < :below
                    ORDER BY version LIMIT :most
                ) AS page
            ) AS sized
            WHERE so_far - size < :most_bytes
        ), (
            SELECT version FROM metadata_versions
            WHERE table_id = :table_id AND version > :first
            ORDER BY version OFFSET :most_metadata LIMIT 1
        )
    )
""",
    "first",
    "below",
)
# What a long transaction id is stands in the details alone (`rows/keys.py`).
_KEEP_IDS = _of_table(
    """
    INSERT INTO past_commits (
        table_id, version, timestamp, transaction_id, body_digest, content_sha256, isolation_level,
        is_blind_append, read_version, rebased_over, is_foreign, num_added_files,
        num_removed_files, bytes_added, bytes_removed, attempts, duration_ms, details, principal,
        request_id
    )
    SELECT
        table_id, version, timestamp, transaction_id, body_digest, content_sha256, isolation_level,
        is_blind_append, read_version, rebased_over, is_foreign, num_added_files,
        num_removed_files, bytes_added, bytes_removed, attempts, duration_ms,
        CASE WHEN starts_with(transaction_id, 'sha256:') THEN details ELSE '{}' END, principal,
        request_id
    FROM commits
    WHERE table_id = :table_id AND version < :first AND transaction_id IS NOT NULL
""",
    "first",
)
_DROP_METADATA = _of_table(
    """
    DELETE FROM metadata_versions WHERE table_id = :table_id AND version < (
        SELECT max(version) FROM metadata_versions
        WHERE table_id = :table_id AND version <= :first
    )
""",
    "first",
)
_DROP_DOMAINS = _of_table(
    "DELETE FROM removed_domains WHERE table_id = :table_id AND removed_version <= :first",
    "first",
)
# There is one base at a time, and the version behind the last one that goes refers to that: the new
# base becomes one when the others are gone, and what refers to them is looked for after that.
_DROP_COMMITS = _of_table(
    """
    WITH dropped AS (
        DELETE FROM commits WHERE table_id = :table_id AND version < :first RETURNING version
    )
    UPDATE commits SET previous_version = NULL
    WHERE table_id = :table_id AND version = :first AND (SELECT count(*) FROM dropped) > 0
""",
    "first",
)
_MOVE = _of_table(
    "UPDATE tables SET first_version = :first WHERE id = :table_id",
    "first",
)
# From the first batch on the row says that the index of this epoch was cut.
_MARK = _of_table(
    """
    INSERT INTO table_upkeep AS known (table_id, kind, epoch, version)
    VALUES (:table_id, :kind, :epoch, :before)
    ON CONFLICT (table_id, kind) DO UPDATE SET
        epoch = excluded.epoch,
        version = CASE WHEN known.epoch = excluded.epoch
            THEN greatest(known.version, excluded.version) ELSE excluded.version END
""",
    "epoch",
    "before",
)

# The page is read off an index. A file that is live again has a later row, which stays.
_DROP_FILES = _of_table(
    """
    WITH page AS MATERIALIZED (
        SELECT path, dv_id, removed_version FROM files
        WHERE table_id = :table_id AND (path, dv_id, removed_version) > (:path, :dv_id, :removed)
        ORDER BY path, dv_id, removed_version
        LIMIT :most
    ), expired AS MATERIALIZED (
        SELECT found.row_id
        FROM page
        JOIN tables ON tables.id = :table_id AND page.removed_version < tables.first_version
        CROSS JOIN LATERAL (
            SELECT files.ctid AS row_id FROM files
            WHERE files.table_id = :table_id AND files.path = page.path
                AND files.dv_id = page.dv_id AND files.removed_version = page.removed_version
                AND coalesce(files.deletion_timestamp, 0) < :removed_before_ms
            LIMIT 1
        ) AS found
    ), dropped AS (
        DELETE FROM files WHERE ctid = ANY (ARRAY (SELECT row_id FROM expired)) RETURNING 1
    )
    SELECT path, dv_id, removed_version,
        (SELECT count(*) FROM page) AS found, (SELECT count(*) FROM dropped) AS dropped
    FROM page ORDER BY path DESC, dv_id DESC, removed_version DESC NULLS FIRST LIMIT 1
""",
    "removed",
    "removed_before_ms",
)
_DROP_TOMBSTONES = _of_table(
    """
    DELETE FROM tombstones WHERE ctid = ANY (ARRAY (
        SELECT ctid FROM tombstones
        WHERE table_id = :table_id AND deletion_timestamp < :removed_before_ms
        LIMIT :most
    ))
""",
    "removed_before_ms",
)


class ExpiredCalls:
    """Implements `core.ports.upkeep.expired.ExpiredIndex`."""

    _connections: Connections
    _limits: IndexLimits

    async def drop_versions(
        self, table_id: str, kind: str, *, below: int, epoch: int
    ) -> Versions | None:
        identity = UUID(table_id)
        return await self._connections.write(
            lambda c: _drop_versions(
                c, identity, str(kind), below=below, epoch=epoch, limits=self._limits
            )
        )

    async def drop_files(
        self, table_id: str, *, removed_before_ms: int, after: RowKey | None
    ) -> Files:
        path, dv_id, removed = after or ("", "", -1)
        asked = {
            "table_id": UUID(table_id),
            "path": path,
            "dv_id": dv_id,
            "removed": removed,
            "removed_before_ms": removed_before_ms,
            "most": self._limits.expired_files,
        }

        async def drop(connection: AsyncConnection) -> Files:
            row = (await connection.execute(_DROP_FILES, asked)).one_or_none()
            if row is None:
                return Files(after=None, dropped=0)
            removed = _BEHIND if row.removed_version is None else row.removed_version
            is_last = row.found < self._limits.expired_files
            after = None if is_last else (row.path, row.dv_id, removed)
            return Files(after=after, dropped=row.dropped)

        return await self._connections.write(drop)

    async def drop_tombstones(self, table_id: str, *, removed_before_ms: int) -> bool:
        asked = {
            "table_id": UUID(table_id),
            "removed_before_ms": removed_before_ms,
            "most": self._limits.expired_tombstones,
        }

        async def drop(connection: AsyncConnection) -> bool:
            return (await connection.execute(_DROP_TOMBSTONES, asked)).rowcount == asked["most"]

        return await self._connections.write(drop)


async def _drop_versions(
    connection: AsyncConnection,
    table_id: UUID,
    kind: str,
    *,
    below: int,
    epoch: int,
    limits: IndexLimits,
) -> Versions | None:
    await connection.execute(_IMPATIENT)
    row = (await connection.execute(_LOCKED, {"table_id": table_id})).one_or_none()
    if row is None or row.epoch != epoch:
        return None
    below = min(below, row.published_version)
    if below <= row.first_version:
        return Versions(first=row.first_version, dropped=0)
    first = await _first_after_batch(connection, table_id, row, below, limits)
    values = {"table_id": table_id, "first": first}
    await audit.keep_unnamed_commits(connection, table_id, row.name, before=first)
    await connection.execute(_KEEP_IDS, values)
    await metadata_ids.keep(connection, table_id, before=first)
    await connection.execute(_DROP_METADATA, values)
    await connection.execute(_DROP_DOMAINS, values)
    await connection.execute(_DROP_COMMITS, values)
    await connection.execute(_MOVE, values)
    mark = {"table_id": table_id, "kind": kind, "epoch": epoch, "before": row.first_version}
    await connection.execute(_MARK, mark)
    return Versions(first=first, dropped=first - row.first_version)


async def _first_after_batch(
    connection: AsyncConnection, table_id: UUID, row: Row[Any], below: int, limits: IndexLimits
) -> int:
    asked = {
        "table_id": table_id,
        "first": row.first_version,
        "below": below,
        "most": limits.expired_versions,
        "most_bytes": limits.expired_bytes,
        "most_metadata": limits.expired_metadata,
    }
    first: int = (await connection.execute(_BATCH, asked)).scalar_one()
    return first
