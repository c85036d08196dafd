"""How the upkeep of tables stands, in Postgres."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Row, TextClause, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from tidegate_protocol.base.problems import Code
from tidegate_service.core.access.audit import Change
from tidegate_service.core.errors import NotFound
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.ports.checkpoints import Counted
from tidegate_service.core.ports.upkeep.upkeep import (
    AT_NEW_METADATA,
    Done,
    Due,
    Page,
    UpkeepRecord,
)
from tidegate_service.index.access import audit
from tidegate_service.index.limits import DEFAULTS, IndexLimits
from tidegate_service.index.postgres.connections import ONE_MOMENT, Connections
from tidegate_service.index.reading.counting import counted
from tidegate_service.index.rows.newest import newest_row
from tidegate_service.index.schema.tables import tables
from tidegate_service.index.upkeep import changes
from tidegate_service.index.upkeep.expired_versions import ExpiredCalls

# Nothing is written of tables at rest, and nothing indexed of what each commit moves: a look goes
# on where the last one ended, over so many rows at a time. Downward, and from one table to the next
# (`index.rows.newest`).
_PAGE = text("""
    WITH RECURSIVE page (id) AS (
        (SELECT id FROM tables WHERE id < :before ORDER BY id DESC LIMIT 1)
        UNION ALL
        SELECT (SELECT id FROM tables WHERE id < page.id ORDER BY id DESC LIMIT 1)
        FROM page WHERE page.id IS NOT NULL
    )
    SELECT id FROM page WHERE id IS NOT NULL LIMIT :limit
""")
_HEAD = newest_row("asked.id", "id, name, state, epoch, first_version, published_version")
_ALL_DUE = f"""
    SELECT tables.id, regexp_replace(tables.name, '[.][^.]*$', '') AS scope, each.kind,
        published_version - greatest(first_version - 1,
        CASE WHEN table_upkeep.epoch = tables.epoch THEN version END) AS behind,
        each.kind = :checkpoint AND EXISTS (
            SELECT FROM checkpoint_parts JOIN checkpoints USING (table_id, version)
            WHERE table_id = tables.id) AS takes_over
    FROM (SELECT DISTINCT id FROM unnest(CAST(:ids AS uuid[])) AS listed (id)) AS asked
    CROSS JOIN LATERAL ({_HEAD}) AS tables
    CROSS JOIN unnest(CAST(:kinds AS text[])) AS each (kind)
    LEFT JOIN table_upkeep ON table_upkeep.table_id = tables.id AND table_upkeep.kind = each.kind
    WHERE state = 'active' AND published_version >= 0
      AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
      AND (table_upkeep.table_id IS NULL OR table_upkeep.epoch <> tables.epoch
           OR due_version <= published_version OR due_at <= clock_timestamp()
           OR (due_version IS NULL AND due_at IS NULL)
           OR (due_version = :at_new_metadata AND version < published_version AND EXISTS (
                SELECT FROM metadata_versions AS changed WHERE changed.table_id = tables.id
                    AND changed.version > table_upkeep.version
                    AND changed.version <= published_version)))
"""
_DUE = text(_ALL_DUE).bindparams(at_new_metadata=AT_NEW_METADATA, checkpoint=UpkeepKind.CHECKPOINT)
_SOME_DUE = text(f"""
    SELECT id, scope, kind, behind, takes_over
    FROM (
        SELECT *, row_number() OVER (alike ORDER BY behind DESC) AS by_distance,
            row_number() OVER (alike ORDER BY random()) AS by_lot
        FROM ({_ALL_DUE}) AS due
        WINDOW alike AS (PARTITION BY scope, kind, takes_over)
    ) AS numbered
    WHERE by_distance = 1 OR by_lot = 1
""").bindparams(at_new_metadata=AT_NEW_METADATA, checkpoint=UpkeepKind.CHECKPOINT)
_CLAIM = text("""
    WITH head AS (
        SELECT id, epoch, published_version FROM tables WHERE id = :table_id AND state = 'active'
    )
    INSERT INTO table_upkeep AS known (table_id, kind, epoch, version, claimed_by, claimed_until)
    SELECT id, :kind, epoch, -1, :by, clock_timestamp() + :for_s * interval '1 second' FROM head
    ON CONFLICT (table_id, kind) DO UPDATE SET
        epoch = excluded.epoch,
        version = CASE WHEN known.epoch = excluded.epoch THEN known.version ELSE -1 END,
        due_version = CASE WHEN known.epoch = excluded.epoch THEN known.due_version END,
        due_at = CASE WHEN known.epoch = excluded.epoch THEN known.due_at END,
        claimed_by = excluded.claimed_by,
        claimed_until = excluded.claimed_until
    -- Of a row without either, whoever began it first was cut off.
    WHERE (known.claimed_until IS NULL OR known.claimed_until < clock_timestamp())
      AND (known.epoch <> excluded.epoch OR known.due_at <= clock_timestamp()
           OR known.due_version <= (SELECT published_version FROM head)
           OR (known.due_at IS NULL AND known.due_version IS NULL)
           OR (known.due_version = :at_new_metadata AND EXISTS (
                SELECT FROM metadata_versions AS changed WHERE changed.table_id = known.table_id
                    AND changed.version > known.version
                    AND changed.version <= (SELECT published_version FROM head))))
    RETURNING version, done_at, failures, trouble
""").bindparams(at_new_metadata=AT_NEW_METADATA)
_CLAIM_NOW = text("""
    INSERT INTO table_upkeep AS known (table_id, kind, epoch, version, claimed_by, claimed_until)
    SELECT id, :kind, epoch, -1, :by, clock_timestamp() + :for_s * interval '1 second'
    FROM tables WHERE id = :table_id
    ON CONFLICT (table_id, kind) DO UPDATE SET
        claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until
    WHERE known.claimed_until IS NULL OR known.claimed_until < clock_timestamp()
    RETURNING 1
""")
_EXTEND_CLAIM = text("""
    UPDATE table_upkeep SET claimed_until = clock_timestamp() + :for_s * interval '1 second'
    WHERE table_id = :table_id AND kind = :kind AND claimed_by = :by
""")
_DONE = text("""
    UPDATE table_upkeep SET
        version = :version, done_at = clock_timestamp(), failures = 0, trouble = :trouble,
        due_version = :due_version,
        due_at = clock_timestamp() + CAST(:due_in_s AS float8) * interval '1 second',
        claimed_by = NULL, claimed_until = NULL
    WHERE table_id = :table_id AND kind = :kind AND claimed_by = :by
""")
_FAILED = text("""
    UPDATE table_upkeep SET
        failures = failures + 1, trouble = :trouble, due_version = NULL,
        due_at = clock_timestamp() + :due_in_s * interval '1 second',
        claimed_by = NULL, claimed_until = NULL
    WHERE table_id = :table_id AND kind = :kind AND claimed_by = :by
""")
_RELEASE_CLAIM = text("""
    UPDATE table_upkeep SET claimed_by = NULL, claimed_until = NULL
    WHERE table_id = :table_id AND kind = :kind AND claimed_by = :by
""")
_STANDING = text("""
    SELECT kind, version, done_at, failures, trouble
    FROM table_upkeep JOIN tables ON tables.id = table_id
    WHERE table_id = :table_id AND table_upkeep.epoch = tables.epoch
      AND due_version IS DISTINCT FROM :at_new_metadata
""").bindparams(at_new_metadata=AT_NEW_METADATA)
_HAS_CLAIM = text("""
    SELECT 1 FROM table_upkeep
    WHERE table_id = :table_id AND kind = :kind AND claimed_by = :by
""")
_CLAIMED = text("""
    SELECT coalesce(claimed_until >= clock_timestamp(), false) FROM table_upkeep
    WHERE table_id = :table_id AND kind = :kind FOR UPDATE
""")
_SET_BACK = text("""
    UPDATE table_upkeep SET version = :to, due_at = clock_timestamp()
    WHERE table_id = :table_id AND kind = :kind AND version > :to
""")
_RECORD_DONE = text("""
    INSERT INTO table_upkeep AS known (table_id, kind, epoch, version, done_at)
    SELECT id, :kind, epoch, :version, clock_timestamp() FROM tables WHERE id = :table_id
    ON CONFLICT (table_id, kind) DO UPDATE SET
        epoch = excluded.epoch, done_at = excluded.done_at,
        version = CASE WHEN known.epoch = excluded.epoch
            THEN greatest(known.version, excluded.version) ELSE excluded.version END
""")
_AWAKEN = text("""
    UPDATE table_upkeep SET due_version = version + 1
    WHERE kind = :kind AND due_version = :at_new_metadata
""").bindparams(at_new_metadata=AT_NEW_METADATA)
_ENABLE = text("""
    WITH new AS (
        INSERT INTO hooks (name, enabled_at) VALUES (:name, clock_timestamp())
        ON CONFLICT (name) DO NOTHING RETURNING enabled_at
    )
    SELECT enabled_at FROM new UNION ALL SELECT enabled_at FROM hooks WHERE name = :name
""")
_AFTER_ALL = UUID(int=2**128 - 1)


class PostgresUpkeep(ExpiredCalls):
    """Implements `core.ports.upkeep.upkeep.UpkeepIndex` on an engine of `engine.create_engine`."""

    def __init__(
        self, engine: AsyncEngine, *, answer_timeout_s: float = 20.0, limits: IndexLimits = DEFAULTS
    ) -> None:
        self._connections = Connections(engine, answer_timeout_s=answer_timeout_s)
        self._limits = limits

    async def due(
        self,
        kinds: Sequence[str],
        *,
        after: str | None,
        also: Sequence[str],
        limit: int,
        some: bool = False,
    ) -> Page:
        before = _AFTER_ALL if after is None else UUID(after)

        async def find(connection: AsyncConnection) -> Page:
            page = await connection.execute(_PAGE, {"before": before, "limit": limit})
            ids = [row.id for row in page]
            last = str(ids[-1]) if ids and len(ids) == limit else None
            of_these = [*ids, *map(UUID, also)]
            asked = {"kinds": list(map(str, kinds)), "ids": of_these}
            found = await connection.execute(_SOME_DUE if some else _DUE, asked)
            due = [
                Due(
                    table_id=str(row.id),
                    scope=row.scope,
                    kind=row.kind,
                    behind=row.behind,
                    takes_over=row.takes_over,
                )
                for row in found
            ]
            return Page(due=due, last=last)

        return await self._connections.read(find)

    async def claim(
        self, table_id: str, kind: str, *, by: str, for_s: float
    ) -> UpkeepRecord | None:
        asked = {"table_id": UUID(table_id), "kind": str(kind), "by": by, "for_s": for_s}

        async def claim(connection: AsyncConnection) -> UpkeepRecord | None:
            row = (await connection.execute(_CLAIM, asked)).one_or_none()
            return None if row is None else _record(row)

        return await self._connections.write(claim)

    async def extend_claim(self, table_id: str, kind: str, *, by: str, for_s: float) -> None:
        await self._change(_EXTEND_CLAIM, table_id, kind, by, for_s=for_s)

    async def claim_now(self, table_id: str, kind: str, *, by: str, for_s: float) -> bool:
        identity = UUID(table_id)
        asked = {"table_id": identity, "kind": str(kind), "by": by, "for_s": for_s}

        async def claim(connection: AsyncConnection) -> bool:
            if (await connection.execute(_CLAIM_NOW, asked)).one_or_none() is not None:
                return True
            there = select(tables.c.id).where(tables.c.id == identity)
            if (await connection.execute(there)).one_or_none() is None:
                raise NotFound(f"there is no table {table_id} any more", code=Code.TABLE_NOT_FOUND)
            return False

        return await self._connections.write(claim)

    async def release_claim(self, table_id: str, kind: str, *, by: str) -> None:
        await self._change(_RELEASE_CLAIM, table_id, kind, by)

    async def done(self, table_id: str, kind: str, done: Done, *, by: str) -> None:
        await self._change(
            _DONE,
            table_id,
            kind,
            by,
            version=done.version,
            trouble=done.trouble,
            due_version=done.due_version,
            due_in_s=done.due_in_s,
        )

    async def failed(
        self, table_id: str, kind: str, trouble: str, *, by: str, again_in_s: float
    ) -> None:
        await self._change(_FAILED, table_id, kind, by, trouble=trouble, due_in_s=again_in_s)

    async def standing(self, table_id: str) -> Mapping[str, UpkeepRecord]:
        async def find(connection: AsyncConnection) -> Mapping[str, UpkeepRecord]:
            rows = await connection.execute(_STANDING, {"table_id": UUID(table_id)})
            return {row.kind: _record(row) for row in rows}

        return await self._connections.read(find)

    async def counted(self, table_id: str, version: int | None = None) -> Counted | None:
        async def find(connection: AsyncConnection) -> Counted | None:
            await connection.execute(ONE_MOMENT)
            return await counted(connection, UUID(table_id), version, self._limits.counting)

        return await self._connections.read(find)

    async def has_claim(self, table_id: str, kind: str, *, by: str) -> bool:
        asked = {"table_id": UUID(table_id), "kind": str(kind), "by": by}

        async def find(connection: AsyncConnection) -> bool:
            return (await connection.execute(_HAS_CLAIM, asked)).one_or_none() is not None

        return await self._connections.read(find)

    async def set_back(self, table_id: str, kind: str, *, to: int) -> bool:
        asked = {"table_id": UUID(table_id), "kind": str(kind)}

        async def set_back(connection: AsyncConnection) -> bool:
            if (await connection.execute(_CLAIMED, asked)).scalar_one_or_none():
                return False
            await connection.execute(_SET_BACK, {**asked, "to": to})
            return True

        return await self._connections.write(set_back)

    async def record_done(self, table_id: str, kind: str, version: int) -> None:
        asked = {"table_id": UUID(table_id), "kind": str(kind), "version": version}
        await self._connections.write(lambda c: c.execute(_RECORD_DONE, asked))

    async def changed_metadata(self, table_id: str, *, after: int) -> int | None:
        identity = UUID(table_id)
        return await self._connections.read(
            lambda c: changes.changed_metadata(c, identity, after=after)
        )

    async def touched_partitions(
        self, table_id: str, *, after: int, through: int
    ) -> Sequence[str] | None:
        identity = UUID(table_id)
        return await self._connections.read(
            lambda c: changes.touched_partitions(c, identity, after=after, through=through)
        )

    async def enable_hook(self, name: str) -> int:
        async def enable(connection: AsyncConnection) -> int:
            enabled = (await connection.execute(_ENABLE, {"name": name})).scalars().first()
            if enabled is None:
                # Another instance enabled it meanwhile: the next statement sees its row.
                enabled = (await connection.execute(_ENABLE, {"name": name})).scalars().one()
            return int(enabled.timestamp() * 1000)

        return await self._connections.write(enable)

    async def awaken(self, kind: str) -> None:
        await self._connections.write(lambda c: c.execute(_AWAKEN, {"kind": kind}))

    async def record_change(self, table_id: str, change: Change) -> None:
        identity = UUID(table_id)

        async def record(connection: AsyncConnection) -> None:
            named = select(tables.c.name).where(tables.c.id == identity)
            name = (await connection.execute(named)).scalar_one_or_none()
            if name is None:
                raise NotFound(f"there is no table {table_id} any more", code=Code.TABLE_NOT_FOUND)
            await audit.record_change(connection, change, table_id=identity, table_name=name)

        await self._connections.write(record)

    async def _change(
        self, statement: TextClause, table_id: str, kind: str, by: str, **values: object
    ) -> None:
        asked = {"table_id": UUID(table_id), "kind": str(kind), "by": by, **values}
        await self._connections.write(lambda c: c.execute(statement, asked))


def _record(row: Row[Any]) -> UpkeepRecord:
    done_ms = None if row.done_at is None else int(row.done_at.timestamp() * 1000)
    return UpkeepRecord(
        version=row.version, done_ms=done_ms, failures=row.failures, trouble=row.trouble
    )
