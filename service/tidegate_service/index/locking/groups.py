"""Locking the rows of several tables at once, for commits that are decided together.

The first statements of every group go to Postgres as one pipeline: the locks, then the clock, then
the look-up of the transaction ids. Each is a statement of its own, since a statement that waited
for a lock sees the data from before the wait.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.prepare.live_files import Assumed
from tidegate_service.core.observe.telemetry import Telemetry
from tidegate_service.core.ports.records import LONG_METADATA, TableRecord
from tidegate_service.index.locking.assumptions import look_up
from tidegate_service.index.locking.section import PostgresCommitSection
from tidegate_service.index.locking.unit_of_work import UnitOfWork
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.postgres.parameters import uuid, uuids
from tidegate_service.index.postgres.pipeline import Query, Statement, as_int, as_text, as_uuid
from tidegate_service.index.reading.used_ids import asking
from tidegate_service.index.rows.keys import key
from tidegate_service.index.rows.newest import newest_row
from tidegate_service.index.rows.table_rows import METADATA_BYTES, columns, table_of

LOCK = Statement(newest_row("$1", columns(), locking="FOR UPDATE"))

_IS_SHORT = f"{METADATA_BYTES} <= {LONG_METADATA}"

# A group of several tables never waits for a row: a table that is skipped gets a group of its own,
# which waits. So groups cannot wait for each other in a circle, either.
LOCK_FREE = Statement(f"""
    SELECT locked.*
    FROM unnest($1) AS asked (table_id)
    CROSS JOIN LATERAL ({
    newest_row("asked.table_id", columns(), where=_IS_SHORT, locking="FOR UPDATE SKIP LOCKED")
}) AS locked
""")

# Not the time of the transaction, which began before its locks were granted.
_CLOCK = Statement("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")

Asked = Mapping[UUID, Sequence[str]]
"""The transaction ids that will be looked up, by table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """The locked rows, the database's clock in ms, and which of the ids are in use."""

    tables: Sequence[TableRecord]
    now_ms: int
    used: frozenset[tuple[UUID, str]]


class PostgresCommitGroup:
    """Implements `core.ports.index.CommitGroup`."""

    def __init__(
        self,
        unit: UnitOfWork,
        locked: Locked,
        asked: Asked,
        *,
        database: str,
        telemetry: Telemetry,
    ) -> None:
        self._unit = unit
        self.sections: dict[str, PostgresCommitSection] = {}
        for table in locked.tables:
            table_id = UUID(table.id)
            self.sections[table.id] = PostgresCommitSection(
                unit,
                table,
                database=database,
                now_ms=locked.now_ms,
                unused=(
                    name for name in asked[table_id] if (table_id, key(name)) not in locked.used
                ),
                telemetry=telemetry,
            )

    @property
    def is_over(self) -> bool:
        return self._unit.saved or self._unit.broken or self._unit.is_half_made

    @property
    def is_saved(self) -> bool:
        return self._unit.saved and not self._unit.broken

    async def expect_assumptions(self, asked: Mapping[str, Mapping[str, Assumed]]) -> None:
        assumptions = {table_id: section.assumptions for table_id, section in self.sections.items()}
        await look_up(self._unit, asked, assumptions)

    async def save(self) -> None:
        await self._unit.save(f"tables {', '.join(s.table.name for s in self.sections.values())}")
        for section in self.sections.values():
            section.tell()


async def lock(connection: AsyncConnection, asked: Asked, *, wait: bool) -> Locked:
    """Lock the rows of these tables. With `wait` there is one table, and its lock is waited for.
    Otherwise rows that are locked elsewhere are left out. So is a table that does not exist."""
    ids = [(table_id, key(name)) for table_id, names in asked.items() for name in names]
    if wait:
        (only,) = asked
        locking = Query(LOCK, uuid(only))
    else:
        locking = Query(LOCK_FREE, uuids(list(asked)))
    using = asking(ids)
    rows, clock, used = await pipeline.run(
        await driver_of(connection), [locking, Query(_CLOCK), using]
    )
    return Locked(
        tables=[table_of(row) for row in rows],
        now_ms=as_int(clock[0][0]),
        used=frozenset((as_uuid(row[0]), as_text(row[1])) for row in used),
    )
