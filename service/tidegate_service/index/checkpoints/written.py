"""The checkpoints that were written: rows of `checkpoints`, `checkpoint_sidecars` and
`checkpoint_parts`."""

from uuid import UUID

from sqlalchemy import BigInteger, Uuid, bindparam, delete, insert, select, text
from sqlalchemy.dialects.postgresql import insert as insert_or_update
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.ports.checkpoints import (
    ChangedSidecars,
    KnownCheckpoint,
    Part,
    Sidecar,
)
from tidegate_service.index.checkpoints.digests import FILE_HASH, digest_of
from tidegate_service.index.postgres.connections import ONE_MOMENT
from tidegate_service.index.schema.checkpoints import (
    checkpoint_parts,
    checkpoint_sidecars,
    checkpoints,
)
from tidegate_service.index.schema.tables import tables

# The index on versions can be read as a bitmap alone, which connections do without by themselves
# (`postgres.engine`): a million files would be gone through for the few that changed.
_BY_VERSIONS = text("SELECT set_config('enable_bitmapscan', 'on', true)")

_DIFFERENCE = digest_of(f"""
    sum({FILE_HASH} * CASE
        WHEN added_version <= :since THEN -1.0
        WHEN removed_version <= :version THEN 0
        ELSE 1
    END)
""")
# Each sidecar is looked up by each key that changed: few of the files, or most of the work is to
# write nearly all of them anyway. A file that came and went between the two versions counts for
# nothing.
_CHANGED = text(f"""
    WITH changed AS MATERIALIZED (
        SELECT path, dv_id, added_version, removed_version FROM files
        WHERE table_id = :table_id AND added_version > :since AND added_version <= :version
        UNION
        SELECT path, dv_id, added_version, removed_version FROM files
        WHERE table_id = :table_id AND removed_version > :since AND removed_version <= :version
    ), sidecars AS (
        SELECT sidecar.*
        FROM (SELECT DISTINCT path, dv_id FROM changed) AS each
        CROSS JOIN LATERAL (
            SELECT after_path, after_dv_id FROM checkpoint_sidecars
            WHERE checkpoint_sidecars.table_id = :table_id
                AND (after_path, after_dv_id) < (each.path, each.dv_id)
            ORDER BY after_path DESC, after_dv_id DESC
            LIMIT 1
        ) AS sidecar
        -- Files that were removed before the index's first version may have no row any more.
        UNION
        SELECT after_path, after_dv_id FROM checkpoint_sidecars
        WHERE table_id = :table_id
            AND (SELECT first_version > :since + 1 FROM tables WHERE id = :table_id)
    )
    SELECT array_agg(after_path) AS paths, array_agg(after_dv_id) AS dv_ids, (
        SELECT {_DIFFERENCE}
        FROM changed
    ) AS digest
    FROM sidecars
""").bindparams(
    bindparam("table_id", type_=Uuid),
    bindparam("since", type_=BigInteger),
    bindparam("version", type_=BigInteger),
)


async def known_checkpoint(connection: AsyncConnection, table_id: UUID) -> KnownCheckpoint | None:
    # One statement, so both tables at one moment.
    query = (
        select(checkpoints, *(c for c in checkpoint_sidecars.c if c.name != "table_id"))
        .outerjoin(checkpoint_sidecars, checkpoint_sidecars.c.table_id == checkpoints.c.table_id)
        .where(checkpoints.c.table_id == table_id)
        .order_by(checkpoint_sidecars.c.after_path, checkpoint_sidecars.c.after_dv_id)
    )
    rows = (await connection.execute(query)).all()
    if not rows:
        return None
    # A moment later they may be of the next one, whose version they have.
    parts = (
        select(checkpoint_parts)
        .where(
            checkpoint_parts.c.table_id == table_id, checkpoint_parts.c.version == rows[0].version
        )
        .order_by(checkpoint_parts.c.number)
    )
    return KnownCheckpoint(
        version=rows[0].version,
        epoch=rows[0].epoch,
        kind=rows[0].kind,
        shape=rows[0].shape,
        sidecars=[
            Sidecar(
                after=(row.after_path, row.after_dv_id),
                name=row.name,
                size=row.size,
                modified_ms=row.modified_at,
                num_adds=row.num_adds,
                num_removes=row.num_removes,
                digest=row.digest,
            )
            for row in rows
            if row.name is not None
        ],
        parts=[
            Part(
                name=row.name,
                size=row.size,
                num_adds=row.num_adds,
                num_removes=row.num_removes,
                through=row.through,
            )
            for row in await connection.execute(parts)
        ],
    )


async def changed_sidecars(
    connection: AsyncConnection, table_id: UUID, known: KnownCheckpoint, *, version: int
) -> ChangedSidecars | None:
    """`core.ports.checkpoints.CheckpointIndex.changed_sidecars`."""
    await connection.execute(ONE_MOMENT)
    await connection.execute(_BY_VERSIONS)
    # What changed is looked up among the rows that are there now.
    if await known_checkpoint(connection, table_id) != known:
        return None
    values = {"table_id": table_id, "since": known.version, "version": version}
    row = (await connection.execute(_CHANGED, values)).one()
    after = zip(row.paths or (), row.dv_ids or (), strict=True)
    return ChangedSidecars(after=frozenset(after), digest=row.digest)


async def keep_checkpoint(
    connection: AsyncConnection, table_id: UUID, written: KnownCheckpoint
) -> None:
    """Nothing of a table that is gone, or has a later one; what is equally new is kept, too, since
    it may be of another kind."""
    row = {
        "table_id": table_id,
        "version": written.version,
        "epoch": written.epoch,
        "kind": written.kind,
        "shape": written.shape,
    }
    there = select(tables.c.id).where(tables.c.id == table_id).with_for_update(key_share=True)
    if (await connection.execute(there)).one_or_none() is None:
        return
    statement = insert_or_update(checkpoints).values(row)
    moved = await connection.execute(
        statement.on_conflict_do_update(
            index_elements=[checkpoints.c.table_id],
            set_={name: statement.excluded[name] for name in row if name != "table_id"},
            where=(checkpoints.c.version <= statement.excluded.version)
            | (checkpoints.c.epoch != statement.excluded.epoch),
        ).returning(checkpoints.c.version)
    )
    if moved.one_or_none() is None:
        return
    for rows in (checkpoint_sidecars, checkpoint_parts):
        await connection.execute(delete(rows).where(rows.c.table_id == table_id))
    if written.sidecars:
        await connection.execute(
            insert(checkpoint_sidecars),
            [
                {
                    "table_id": table_id,
                    "after_path": one.after[0],
                    "after_dv_id": one.after[1],
                    "name": one.name,
                    "size": one.size,
                    "modified_at": one.modified_ms,
                    "num_adds": one.num_adds,
                    "num_removes": one.num_removes,
                    "digest": one.digest,
                }
                for one in written.sidecars
            ],
        )
    if written.parts:
        await connection.execute(
            insert(checkpoint_parts),
            [
                {
                    "table_id": table_id,
                    "version": written.version,
                    "number": number,
                    "name": part.name,
                    "size": part.size,
                    "num_adds": part.num_adds,
                    "num_removes": part.num_removes,
                    "through": part.through,
                }
                for number, part in enumerate(written.parts, start=1)
            ],
        )
