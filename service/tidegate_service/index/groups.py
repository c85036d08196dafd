"""Locking the rows of several tables at once, for commits that are decided together.

The first statements of every group go to the server as one pipeline: the locks, then the clock and
the look-up of the transaction ids, each a statement of its own, since one that waited for a lock
shows what was there before the wait.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.records import TableRecord
from tidegate_service.core.telemetry import Telemetry
from tidegate_service.index.arrays import texts, uuids
from tidegate_service.index.connections import driver_of
from tidegate_service.index.keys import key
from tidegate_service.index.rows import TABLE_COLUMNS, table_of
from tidegate_service.index.section import PostgresCommitSection
from tidegate_service.index.unit_of_work import UnitOfWork

_LOCK = f"SELECT {', '.join(TABLE_COLUMNS)} FROM tables WHERE id = %s FOR UPDATE"

# A group of several tables never waits for one of them: who is skipped is waited for alone. So
# groups cannot wait for each other in a circle, either.
_LOCK_FREE = f"""
    SELECT {", ".join(TABLE_COLUMNS)} FROM tables
    WHERE id = ANY (%s) ORDER BY id FOR UPDATE SKIP LOCKED
"""

# Not the transaction's time, which began before its locks were granted.
_CLOCK = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"

# Each id costs one look into three indexes; the LIMITs keep the planner from turning that around.
USED_IDS = """
    SELECT asked.table_id, asked.transaction_id
    FROM unnest(%s, %s) AS asked (table_id, transaction_id)
    CROSS JOIN LATERAL (
        (SELECT 1 FROM commits AS c WHERE c.table_id = asked.table_id
            AND c.transaction_id = asked.transaction_id LIMIT 1)
        UNION ALL
        (SELECT 1 FROM past_commits AS c WHERE c.table_id = asked.table_id
            AND c.transaction_id = asked.transaction_id LIMIT 1)
        UNION ALL
        (SELECT 1 FROM aborted_transactions AS c WHERE c.table_id = asked.table_id
            AND c.transaction_id = asked.transaction_id LIMIT 1)
    ) AS known
"""

Asked = Mapping[UUID, Sequence[str]]
"""The transaction ids that will be asked for, by table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """The rows that are locked now, the database's clock in ms, and which ids are in use."""

    tables: Sequence[TableRecord]
    now_ms: int
    used: frozenset[tuple[UUID, str]]


class PostgresCommitGroup:
    """Implements `core.ports.CommitGroup`."""

    def __init__(
        self, unit: UnitOfWork, locked: Locked, asked: Asked, *, telemetry: Telemetry
    ) -> None:
        self._unit = unit
        self.sections: dict[str, PostgresCommitSection] = {}
        for table in locked.tables:
            table_id = UUID(table.id)
            self.sections[table.id] = PostgresCommitSection(
                unit,
                table,
                now_ms=locked.now_ms,
                unused=(
                    name for name in asked[table_id] if (table_id, key(name)) not in locked.used
                ),
                telemetry=telemetry,
            )

    @property
    def is_over(self) -> bool:
        return self._unit.saved or self._unit.broken

    @property
    def is_saved(self) -> bool:
        return self._unit.saved and not self._unit.broken

    async def save(self) -> None:
        await self._unit.save(f"tables {', '.join(s.table.name for s in self.sections.values())}")
        for section in self.sections.values():
            section.tell()


async def lock(connection: AsyncConnection, asked: Asked, *, wait: bool) -> Locked:
    """Lock the rows of these tables: with `wait` the only one's, whoever holds it, else those
    that nobody holds. A table that is not there is left out."""
    driver = await driver_of(connection)
    ids = [(table_id, key(name)) for table_id, names in asked.items() for name in names]
    async with driver.pipeline():
        if wait:
            (only,) = asked
            rows = await driver.execute(_LOCK, (only,))
        else:
            rows = await driver.execute(_LOCK_FREE, (uuids(list(asked)),))
        clock = await driver.execute(_CLOCK)
        used = await driver.execute(
            USED_IDS,
            (uuids([table_id for table_id, _ in ids]), texts([name for _, name in ids])),
        )
        tables = [table_of(row) for row in await rows.fetchall()]
        ((now_ms,),) = await clock.fetchall()
        return Locked(tables=tables, now_ms=now_ms, used=frozenset(await used.fetchall()))
