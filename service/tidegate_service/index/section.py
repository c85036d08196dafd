"""A commit section: one Postgres transaction that holds one table's row lock."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from sqlalchemy import func, insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_protocol.actions import PartitionValues
from tidegate_protocol.transaction import ReadState, Winner
from tidegate_service.core.errors import CommitStateUnknown
from tidegate_service.core.records import (
    Aborted,
    CommitRecord,
    RatifiedCommit,
    TableRecord,
    TableState,
)
from tidegate_service.index import reads, writes
from tidegate_service.index.failures import is_certain_rollback, translated
from tidegate_service.index.keys import key
from tidegate_service.index.rows import table_record
from tidegate_service.index.schema import aborted_transactions, tables


class PostgresCommitSection:
    """Implements `core.ports.CommitSection`; made by `PostgresIndex` with the row locked.

    `broken` says that the connection must not be used again: a statement on it failed, or its
    COMMIT got no answer. `answer_timeout_s` ends the wait for a database that went silent,
    which its own timeouts cannot.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        table: TableRecord,
        *,
        now_ms: int,
        answer_timeout_s: float,
    ) -> None:
        self.table = table
        self.now_ms = now_ms
        self.broken = False
        self._connection = connection
        self._id = UUID(table.id)
        self._answer_timeout_s = answer_timeout_s
        self._saved = False

    async def transaction(self, transaction_id: str) -> CommitRecord | Aborted | None:
        async with self._statements() as connection:
            return await reads.transaction(connection, self._id, transaction_id)

    async def state_at(self, version: int) -> ReadState | None:
        async with self._statements() as connection:
            return await reads.state_at(connection, self._id, version)

    async def winners(self, after: int, through: int) -> Sequence[Winner] | None:
        if after >= through:
            return ()
        async with self._statements() as connection:
            return await reads.winners(connection, self._id, after=after, through=through)

    async def partition_values(self, path: str, version: int) -> PartitionValues | None:
        async with self._statements() as connection:
            return await reads.partition_values(connection, self._id, path, version)

    async def append(self, commit: RatifiedCommit) -> None:
        head, version = self.table, commit.record.version
        if version != head.latest_version + 1:
            raise ValueError(f"version {version} does not follow {head.latest_version}")
        if commit.published and head.published_version != head.latest_version:
            raise ValueError(
                f"version {version} cannot be published while {head.published_version} is the "
                "last version that is"
            )
        if not commit.published and not head.catalog_managed:
            raise ValueError(f"version {version} of a plain table must lie in its log already")
        async with self._statements() as connection:
            self.table = await writes.append(connection, head, commit)

    async def abort(self, transaction_id: str) -> None:
        known = await self.transaction(transaction_id)
        if isinstance(known, CommitRecord):
            raise ValueError(f"the transaction has landed as version {known.version}")
        if known is None:
            async with self._statements() as connection:
                await connection.execute(
                    insert(aborted_transactions).values(
                        table_id=self._id, transaction_id=key(transaction_id)
                    )
                )

    async def quarantine(self, reason: str) -> None:
        async with self._statements() as connection:
            row = (
                await connection.execute(
                    update(tables)
                    .where(tables.c.id == self._id)
                    .values(quarantined(reason))
                    .returning(*tables.c)
                )
            ).one()
            self.table = table_record(row)

    async def save(self) -> None:
        self._check_usable()
        self._saved = True
        try:
            async with asyncio.timeout(self._answer_timeout_s):
                await self._connection.commit()
        except Exception as error:
            self.broken = True
            if is_certain_rollback(error):
                with translated():
                    raise
            raise CommitStateUnknown(
                f"the database did not say whether a commit to table {self.table.name} succeeded"
            ) from error
        except BaseException:
            self.broken = True
            raise

    @asynccontextmanager
    async def _statements(self) -> AsyncIterator[AsyncConnection]:
        self._check_usable()
        try:
            with translated():
                async with asyncio.timeout(self._answer_timeout_s):
                    yield self._connection
        except BaseException:
            # Postgres takes nothing more in this transaction, and who knows what else is amiss.
            self.broken = True
            raise

    def _check_usable(self) -> None:
        if self.broken or self._saved:
            raise RuntimeError("the commit section is over: it was saved, or a statement failed")


def quarantined(reason: str) -> dict[str, object]:
    """The values that quarantine a row of `tables`; the first reason stays."""
    # A reason quotes what was found; U+0000 is what Postgres cannot store of that.
    text = reason.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return {
        "state": TableState.QUARANTINED.value,
        "state_reason": func.coalesce(tables.c.state_reason, text),
    }
