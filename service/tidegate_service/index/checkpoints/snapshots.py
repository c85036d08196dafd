"""Snapshots for checkpoints. Postgres joins a page's lines: a million rows one by one would cost
this process more than all else about a checkpoint."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, Uuid, bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.base.problems import Code
from tidegate_service.core.errors import IndexUnavailable, NotFound, Refused
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.checkpoints import (
    FileRows,
    PathKey,
    SnapshotHead,
)
from tidegate_service.index.checkpoints import small_actions
from tidegate_service.index.checkpoints.digests import FILE_HASH, digest_of
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres.binary import binary_rows
from tidegate_service.index.postgres.connections import ONE_MOMENT, Connections
from tidegate_service.index.reading.counting import counted
from tidegate_service.index.rows.records import metadata_of, protocol_of

# Of application transactions and domains, as many are looked at as are one too many.
_HEAD = text("""
    SELECT head.latest_version, head.published_version, head.first_version, head.epoch,
        CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) AS now_ms,
        asked.version, state.protocol, state.metadata, here.content_sha256,
        asked.version < head.latest_version AND (
            EXISTS (SELECT FROM (
                SELECT version FROM app_transactions
                WHERE app_transactions.table_id = head.id LIMIT :more
            ) AS later WHERE later.version > asked.version)
            OR EXISTS (SELECT FROM (
                SELECT version FROM domain_metadata
                WHERE domain_metadata.table_id = head.id LIMIT :more
            ) AS later WHERE later.version > asked.version)
            OR EXISTS (SELECT FROM removed_domains AS later
                WHERE later.table_id = head.id AND later.removed_version > asked.version
                    AND later.version > asked.version)
        ) AS later,
        small.number AS small_number, small.bytes AS small_bytes,
        coalesce((SELECT version FROM table_upkeep WHERE table_upkeep.table_id = head.id
            AND table_upkeep.kind = :expiry AND table_upkeep.epoch = head.epoch), -1) AS expired,
        CASE WHEN asked.version = head.latest_version THEN head.num_files ELSE (
            SELECT count(*) FROM files
            WHERE files.table_id = head.id AND files.added_version <= asked.version
                AND (files.removed_version IS NULL OR files.removed_version > asked.version)
        ) END AS num_files
    FROM tables AS head
    CROSS JOIN LATERAL (SELECT coalesce(:version, head.latest_version) AS version) AS asked
    CROSS JOIN LATERAL (
        SELECT count(*) AS number, coalesce(sum(size), 0) AS bytes FROM (
            (SELECT octet_length(action) AS size FROM app_transactions
                WHERE app_transactions.table_id = head.id LIMIT :more)
            UNION ALL
            (SELECT octet_length(action) FROM domain_metadata
                WHERE domain_metadata.table_id = head.id LIMIT :more)
            UNION ALL
            (SELECT octet_length(action) FROM removed_domains
                WHERE removed_domains.table_id = head.id AND asked.version < head.latest_version
                    AND removed_version > asked.version LIMIT :more)
        ) AS each
    ) AS small
    LEFT JOIN commits AS here ON here.table_id = head.id AND here.version = asked.version
    LEFT JOIN LATERAL (
        SELECT protocol, metadata FROM metadata_versions
        WHERE metadata_versions.table_id = head.id AND metadata_versions.version <= asked.version
        ORDER BY metadata_versions.version DESC LIMIT 1
    ) AS state ON true
    WHERE head.id = :table_id
""").bindparams(
    bindparam("table_id", type_=Uuid),
    bindparam("version", type_=BigInteger),
    bindparam("expiry", UpkeepKind.EXPIRED_VERSIONS.value),
)

_NOW = text("""
    SELECT head.published_version, head.epoch, here.content_sha256, here.version
    FROM tables AS head
    LEFT JOIN commits AS here ON here.table_id = head.id AND here.version = :version
    WHERE head.id = :table_id
""").bindparams(bindparam("table_id", type_=Uuid), bindparam("version", type_=BigInteger))

# A file that was removed and is live again, or was removed again since, has a later row. What an
# index does not hold any more of when a version was, is older than anything is kept for.
_PAGE = """
    WITH page AS MATERIALIZED (
        SELECT found.*,
            sum(octet_length(action)) OVER (
                ORDER BY path, dv_id ROWS UNBOUNDED PRECEDING
            ) AS so_far
        FROM (
            (
                SELECT file.path, file.dv_id, file.added_version, file.action,
                    removed.ms AS removed_ms
                FROM files AS file
                CROSS JOIN LATERAL (
                    SELECT CASE WHEN file.removed_version <= %(version)s THEN coalesce(
                        file.deletion_timestamp,
                        (SELECT timestamp FROM commits WHERE commits.table_id = %(table_id)s
                            AND commits.version = file.removed_version),
                        0
                    ) END AS ms
                ) AS removed
                WHERE file.table_id = %(table_id)s
                    AND (file.path, file.dv_id) > (%(after_path)s, %(after_dv_id)s)
                    {through_file}
                    AND file.added_version <= %(version)s
                    AND (removed.ms IS NULL OR (removed.ms > %(removed_after_ms)s AND NOT EXISTS (
                        SELECT FROM files AS later
                        WHERE later.table_id = %(table_id)s
                            AND later.path = file.path AND later.dv_id = file.dv_id
                            AND later.added_version BETWEEN file.removed_version AND %(version)s
                    )))
                ORDER BY file.path, file.dv_id LIMIT %(most)s
            )
            UNION ALL
            (
                SELECT gone.path, gone.dv_id, NULL, gone.action, gone.deletion_timestamp
                FROM tombstones AS gone
                WHERE gone.table_id = %(table_id)s
                    AND (gone.path, gone.dv_id) > (%(after_path)s, %(after_dv_id)s)
                    {through_gone}
                    AND gone.deletion_timestamp > %(removed_after_ms)s
                    AND NOT EXISTS (
                        SELECT FROM files AS later
                        WHERE later.table_id = %(table_id)s
                            AND later.path = gone.path AND later.dv_id = gone.dv_id
                            AND later.added_version <= %(version)s
                    )
                ORDER BY gone.path, gone.dv_id LIMIT %(most)s
            )
        ) AS found
        ORDER BY path, dv_id LIMIT %(most)s
    ), kept AS MATERIALIZED (
        SELECT * FROM page WHERE so_far - octet_length(action) < %(most_bytes)s
    ), last AS (
        SELECT path, dv_id FROM kept ORDER BY path DESC, dv_id DESC LIMIT 1
    )
    SELECT
        (SELECT epoch FROM tables WHERE id = %(table_id)s) AS epoch,
        (SELECT first_version FROM tables WHERE id = %(table_id)s) AS first_version,
        (SELECT count(*) FROM page) AS found,
        (SELECT path FROM last) AS last_path,
        (SELECT dv_id FROM last) AS last_dv_id,
        count(*) AS rows,
        count(*) FILTER (WHERE removed_ms IS NULL) AS num_adds,
        {digest} AS digest,
        string_agg(action, '\\x0a'::bytea) FILTER (WHERE removed_ms IS NULL) AS adds,
        array_agg(removed_ms) FILTER (WHERE removed_ms IS NOT NULL) AS removed_ms,
        array_agg(action) FILTER (WHERE removed_ms IS NOT NULL) AS removed
    FROM kept
"""
_DIGEST = digest_of(f"sum({FILE_HASH}) FILTER (WHERE removed_ms IS NULL)")
_TO_THE_END = _PAGE.format(digest=_DIGEST, through_file="", through_gone="")
_UP_TO = _PAGE.format(
    digest=_DIGEST,
    through_file="AND (file.path, file.dv_id) <= (%(through_path)s, %(through_dv_id)s)",
    through_gone="AND (gone.path, gone.dv_id) <= (%(through_path)s, %(through_dv_id)s)",
)


class _Page(NamedTuple):
    epoch: int | None
    first_version: int | None
    found: int
    last_path: str | None
    last_dv_id: str | None
    rows: int
    num_adds: int
    digest: int
    adds: bytes | None
    removed_ms: list[int] | None
    removed: list[bytes] | None


async def snapshot_head(
    connection: AsyncConnection, table_id: UUID, version: int | None, limits: IndexLimits
) -> SnapshotHead:
    """`core.ports.checkpoints.CheckpointIndex.snapshot_head`, as of one moment."""
    await connection.execute(ONE_MOMENT)
    values = {"table_id": table_id, "version": version, "more": limits.small_actions.number + 1}
    row = (await connection.execute(_HEAD, values)).one_or_none()
    if row is None:
        raise NotFound("the table was forgotten meanwhile", code=Code.TABLE_NOT_FOUND)
    if not row.first_version <= row.version <= row.latest_version:
        raise NotFound(
            f"version {row.version} is not held; those from {row.first_version} to "
            f"{row.latest_version} are",
            code=Code.VERSION_NOT_FOUND,
        )
    if row.later:
        raise Refused(
            f"applications or domains were written since version {row.version}, and what they "
            "were at it is not held any more; the latest version can be checkpointed",
            code=Code.INVALID_REQUEST,
        )
    is_latest = row.version == row.latest_version
    small_actions.check_few(row.small_number, row.small_bytes, limits.small_actions)
    return SnapshotHead(
        version=row.version,
        latest_version=row.latest_version,
        published_version=row.published_version,
        first_version=row.first_version,
        epoch=row.epoch,
        now_ms=row.now_ms,
        content_sha256=row.content_sha256,
        protocol=protocol_of(row.protocol),
        metadata=metadata_of(row.metadata),
        transactions=await small_actions.transactions(connection, table_id, limits),
        domains=await small_actions.domains(
            connection,
            table_id,
            None if is_latest else row.version,
            limits,
        ),
        num_files=row.num_files,
        # They do behind the first version, and until the run that moved it has noted its end.
        dropped=f"{row.first_version} {row.expired}",
        counted=await counted(connection, table_id, None, limits.counting) if is_latest else None,
    )


async def is_published(connection: AsyncConnection, table_id: UUID, head: SnapshotHead) -> bool:
    values = {"table_id": table_id, "version": head.version}
    row = (await connection.execute(_NOW, values)).one_or_none()
    if row is None:
        raise NotFound("the table was forgotten meanwhile", code=Code.TABLE_NOT_FOUND)
    is_it = (row.epoch, row.version, row.content_sha256)
    if is_it != (head.epoch, head.version, head.content_sha256):
        raise _another(head.version)
    return bool(row.published_version >= head.version)


async def file_rows(
    connections: Connections,
    table_id: UUID,
    head: SnapshotHead,
    *,
    removed_after_ms: int,
    after: PathKey,
    through: PathKey | None,
    limits: IndexLimits,
) -> AsyncIterator[FileRows]:
    def reading(after: PathKey) -> asyncio.Task[tuple[FileRows, bool]]:
        page = _page(
            table_id,
            head,
            removed_after_ms=removed_after_ms,
            after=after,
            through=through,
            limits=limits,
        )
        return asyncio.create_task(connections.read(page), name="checkpoint-page")

    # The next page is read while this one is written.
    coming = reading(after)
    try:
        is_last = False
        while not is_last:
            page, is_last = await coming
            if not is_last:
                coming = reading(page.last)
            if page.count:
                yield page
    finally:
        coming.cancel()


def _page(
    table_id: UUID,
    head: SnapshotHead,
    *,
    removed_after_ms: int,
    after: PathKey,
    through: PathKey | None,
    limits: IndexLimits,
) -> Callable[[AsyncConnection], Awaitable[tuple[FileRows, bool]]]:
    values: dict[str, object] = {
        "table_id": table_id,
        "version": head.version,
        # No time is before 1970 that files are removed at.
        "removed_after_ms": max(removed_after_ms, -1),
        "after_path": after[0],
        "after_dv_id": after[1],
        "most": limits.snapshot_files_a_page,
        "most_bytes": limits.snapshot_page_bytes,
    }
    if through is not None:
        values |= {"through_path": through[0], "through_dv_id": through[1]}

    async def read(connection: AsyncConnection) -> tuple[FileRows, bool]:
        query = _TO_THE_END if through is None else _UP_TO
        (found,) = await binary_rows(connection, query, values)
        row = _Page(*found)
        if row.epoch != head.epoch:
            raise _another(head.version)
        if row.first_version is None or row.first_version > head.version:
            raise IndexUnavailable(
                f"version {head.version} expired while its checkpoint was written"
            )
        page = FileRows(
            adds=row.adds or b"",
            num_adds=row.num_adds,
            tombstones=list(zip(row.removed_ms or (), row.removed or (), strict=True)),
            last=(row.last_path or "", row.last_dv_id or ""),
            digest=row.digest,
        )
        return page, row.found < limits.snapshot_files_a_page and row.found == row.rows

    return read


def _another(version: int) -> IndexUnavailable:
    return IndexUnavailable(
        f"version {version} is not what it was when its checkpoint was begun: the index was made "
        "anew, or the database set back"
    )
