"""A commit section: one Postgres transaction that holds one table's row lock."""

import logging
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from sqlalchemy import insert, update

from tidegate_protocol.log.actions import Action, Add, LogicalFile, PartitionValues
from tidegate_protocol.log.content import Content, LogFile
from tidegate_protocol.prepare.live_files import FileAssumptions
from tidegate_protocol.proposal.transaction import ReadState, WinningCommit
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.access.roles import SERVICE
from tidegate_service.core.log.files.log_file import SpooledFile
from tidegate_service.core.observe.telemetry import SILENT, Phase, Telemetry
from tidegate_service.core.ports.forgotten import KeptPlaces, Recalled
from tidegate_service.core.ports.records import (
    Aborted,
    CommitRecord,
    ForgottenTable,
    QuarantineCause,
    RatifiedCommit,
    TableRecord,
    TableState,
)
from tidegate_service.core.sharing import offload
from tidegate_service.index.access.audit import record_change
from tidegate_service.index.locking.assumptions import AssumptionsOfTable
from tidegate_service.index.locking.unit_of_work import UnitOfWork
from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.reading import live_files, reads
from tidegate_service.index.reading.contents import content_of
from tidegate_service.index.reading.live_files import partition_values
from tidegate_service.index.reading.states import state_in
from tidegate_service.index.reading.stored_winners import read_winners
from tidegate_service.index.reading.used_ids import unused
from tidegate_service.index.rows.effects import FileKey, effects_of
from tidegate_service.index.rows.keys import key
from tidegate_service.index.schema.tables import aborted_transactions
from tidegate_service.index.tables import forgotten, metadata_ids, rebuilding
from tidegate_service.index.writing.snapshot import BaseLoad, date_back, date_in_order, take_time
from tidegate_service.index.writing.writes import Counts, Staged

logger = logging.getLogger("tidegate.index")

_FILES_PER_BATCH = 5_000


class PostgresCommitSection:
    """Implements `core.ports.index.CommitSection`. `PostgresIndex` makes it with the row locked.

    `unused` are the transaction ids that were looked up, and not found, when the lock was granted.
    """

    def __init__(
        self,
        unit: UnitOfWork,
        table: TableRecord,
        *,
        database: str,
        now_ms: int,
        unused: Iterable[str] = (),
        telemetry: Telemetry = SILENT,
    ) -> None:
        self.table = table
        self.database = database
        self.now_ms = now_ms
        self._unit = unit
        self._id = UUID(table.id)
        self._unused = set(unused)
        self._telemetry = telemetry
        self.assumptions = AssumptionsOfTable(unit, self._id, table.latest_version)
        self._takes_time = False
        self._foreign = 0
        self._quarantined_for: str | None = None

    async def transaction(self, transaction_id: str) -> CommitRecord | Aborted | None:
        if transaction_id in self._unused:
            return None
        async with self._unit.statements() as connection:
            return await reads.transaction(connection, self._id, transaction_id)

    async def expect(self, transaction_ids: Sequence[str]) -> None:
        async with self._unit.statements() as connection:
            driver = await driver_of(connection)
            self._unused |= await unused(driver, self._id, transaction_ids)

    async def state_at(self, version: int, *, most_bytes: int | None = None) -> ReadState | None:
        return await state_in(self._unit.statements, self._id, version, most_bytes)

    async def winners(
        self, after: int, through: int, *, most_bytes: int | None = None
    ) -> Sequence[WinningCommit] | None:
        bounded = partial(read_winners, most_bytes=most_bytes, limits=self._unit.limits)
        return await bounded(self._unit.statements, self._id, after, through)

    async def partition_values(
        self, path: str, version: int, *, vector: str | None = None
    ) -> PartitionValues | None:
        async with self._unit.statements() as connection:
            file = key(path), key(vector or "")
            return await partition_values(connection, self._id, file, version)

    async def content(self, version: int) -> Content | None:
        async with self._unit.statements() as connection:
            return await content_of(connection, self._unit.limits, self._id, version, is_held=True)

    async def stored_content(self, version: int) -> bytes | LogFile | None:
        async with self._unit.statements() as connection:
            return await content_of(connection, self._unit.limits, self._id, version)

    async def kept(self, version: int) -> tuple[str | None, int]:
        async with self._unit.statements() as connection:
            return await reads.kept(connection, self._id, version)

    async def answered(self) -> tuple[int, int]:
        async with self._unit.statements() as connection:
            return await reads.answered(connection, self._id)

    async def row_id_high_water_mark(self) -> int:
        async with self._unit.statements() as connection:
            return await reads.row_id_high_water_mark(connection, self._id)

    async def live_files(self, version: int) -> AsyncIterator[Sequence[Add]]:
        after: FileKey = ("", "")
        is_last = False
        page_of = partial(live_files.files_page, limit=_FILES_PER_BATCH, limits=self._unit.limits)
        while not is_last:
            async with self._unit.statements() as connection:
                page = await page_of(connection, self._id, version, after=after)
            assert page is not None, "the section holds the table's row"
            batch, after, is_last = page
            yield batch

    async def broken(
        self, transaction_id: str, assumptions: FileAssumptions, version: int
    ) -> Collection[LogicalFile]:
        return await self.assumptions.broken(transaction_id, assumptions, version)

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
        effects = await offload.run(
            commit.weight,
            effects_of,
            commit.actions,
            not isinstance(commit.content, SpooledFile),
        )
        staged = Staged(table_id=self._id, before=head, commit=commit, effects=effects)
        self.table = self._unit.stage(staged, self._counted)
        self.assumptions.follow(effects)
        if commit.record.transaction_id is not None:
            self._unused.discard(commit.record.transaction_id)
        self._foreign += commit.record.foreign
        if self._unit.is_full:
            with self._telemetry.phase(Phase.SAVE):
                await self._unit.flush()
            if self._takes_time:
                await self.take_time()

    def write_ahead(self) -> None:
        self._unit.write_ahead()

    async def flush(self) -> None:
        await self._unit.flush()

    def defer_saving(self) -> None:
        self._unit.defer_saving()

    def allow_saving(self) -> None:
        self._unit.allow_saving()

    def unstage(self, count: int, head: TableRecord) -> None:
        self._unit.unstage(count)
        self.table = head

    def _counted(self, _: UUID, counts: Counts) -> None:
        num_files, size_bytes = counts
        self.table = replace(self.table, num_files=num_files, size_bytes=size_bytes)

    async def take_time(self) -> None:
        self._takes_time = True
        async with self._unit.statements() as connection:
            await take_time(connection)

    async def load_base(
        self, commit: RatifiedCommit, actions: AsyncIterator[Sequence[Action]]
    ) -> None:
        if self.table.latest_version != -1:
            raise ValueError(f"the table is at version {self.table.latest_version} already")
        load = BaseLoad(self._id, commit)
        async with self._unit.statements() as connection:
            await load.begin(connection)
        async for batch in actions:
            async with self._unit.statements() as connection:
                await load.write(connection, batch)
                await take_time(connection)
        async with self._unit.statements() as connection:
            self.table = await load.finish(connection)

    async def date_back(self, before: int) -> None:
        async with self._unit.statements() as connection:
            self.table = await date_back(connection, self._id, before)

    async def date_in_order(self) -> None:
        async with self._unit.statements() as connection:
            await date_in_order(connection, self._id)

    async def abort(self, transaction_id: str) -> None:
        self._unused.discard(transaction_id)
        known = await self.transaction(transaction_id)
        if isinstance(known, CommitRecord):
            raise ValueError(f"the transaction has landed as version {known.version}")
        aborted = {"table_id": self._id, "transaction_id": key(transaction_id)}
        async with self._unit.statements() as connection:
            if known is None:
                await connection.execute(insert(aborted_transactions).values(aborted))
            elif known.unfenced_after is not None:
                await connection.execute(
                    update(aborted_transactions)
                    .where(*(aborted_transactions.c[name] == of for name, of in aborted.items()))
                    .values(unfenced_after=None)
                )

    async def record_change(self, change: Change) -> None:
        async with self._unit.statements() as connection:
            await record_change(connection, change, table_id=self._id, table_name=self.table.name)

    async def quarantine(self, reason: str, cause: QuarantineCause = QuarantineCause.LOG) -> None:
        if self.table.state is not TableState.QUARANTINED:
            await self.record_change(Change(deed=Deed.QUARANTINE, by=SERVICE))
        async with self._unit.statements() as connection:
            self.table = await rebuilding.quarantine(connection, self._id, reason, cause)
        self._quarantined_for = reason

    async def release(self) -> None:
        async with self._unit.statements() as connection:
            self.table = await rebuilding.release(connection, self._id)

    async def keep_unpublished(self) -> None:
        await rebuilding.keep_unpublished(self._unit.statements, self.table, self._unit.limits)

    async def kept_unpublished(self, version: int) -> bytes | LogFile | None:
        async with self._unit.statements() as connection:
            return await rebuilding.kept_unpublished(connection, self._unit.limits, version)

    async def reset(self) -> None:
        self._unused.clear()
        self.assumptions.clear()
        self._unit.is_half_made = True
        await self.take_time()
        async with self._unit.statements() as connection:
            await rebuilding.put_aside(connection, self._id)
            await metadata_ids.keep(connection, self._id)
        async with self._unit.statements() as connection:
            await rebuilding.drop_state(connection, self._id)
        after = self.table.latest_version
        while after >= self.table.first_version:
            # The newest commits first: each is referenced by the one after it.
            after -= rebuilding.COMMITS_AT_ONCE
            async with self._unit.statements() as connection:
                await rebuilding.drop_commits(connection, self._id, after=after)
                await take_time(connection)
        async with self._unit.statements() as connection:
            self.table = await rebuilding.reset(connection, self._id)

    async def rewritten(self) -> int | None:
        async with self._unit.statements() as connection:
            return await rebuilding.rewritten(connection, self._id)

    async def restore_ids(self) -> Sequence[tuple[int, str]]:
        async with self._unit.statements() as connection:
            lost = await rebuilding.restore_ids(connection, self._id)
        self._unit.is_half_made = False
        return lost

    async def forgotten(
        self,
        metadata_ids: Collection[str] | None = None,
        *,
        catalog_managed: bool | None = None,
        most: int | None = None,
    ) -> Sequence[ForgottenTable]:
        here = self.table.location
        async with self._unit.statements() as connection:
            return await forgotten.at(connection, here, metadata_ids, catalog_managed, most)

    async def metadata_ids(self) -> Collection[str]:
        async with self._unit.statements() as connection:
            return await metadata_ids.of_versions(connection, self._id)

    async def kept_places(self, scopes: Sequence[str]) -> KeptPlaces:
        async with self._unit.statements() as connection:
            return await forgotten.kept_places(connection, self.table.location, scopes)

    async def recall(self, table: ForgottenTable) -> Recalled:
        return await forgotten.recall(self._unit.statements, self.table, table, self._unit.limits)

    async def keep_landed(self, record: CommitRecord) -> None:
        async with self._unit.statements() as connection:
            await rebuilding.keep_landed(connection, self._id, record)

    async def save(self) -> None:
        await self._unit.save(f"table {self.table.name}")
        self.tell()

    def tell(self) -> None:
        """Log and count the foreign commits and the quarantine of this section, once they are
        certain."""
        if self._foreign:
            self._telemetry.foreign_commits(self._foreign)
            head = self.table.latest_version
            logger.info(
                "foreign commits were read into the index",
                extra={"table": self.table.name, "versions": self._foreign, "head": head},
            )
        if self._quarantined_for is not None:
            self._telemetry.quarantined()
            about = {"table": self.table.name, "reason": self._quarantined_for}
            logger.error("the table was quarantined", extra=about)
