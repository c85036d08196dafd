"""`core.ports.index.CommitSection` and `CommitGroup` over the database in memory."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tests.simulation.ports.kept import recall
from tests.simulation.ports.old_ids import restore_ids, rewritten
from tests.simulation.ports.reads import kept_places, no_longer
from tests.simulation.ports.rows import Rows
from tests.simulation.ports.unit import MemoryUnit
from tidegate_protocol.log.actions import Action, Add, LogicalFile, PartitionValues, file_key
from tidegate_protocol.prepare.live_files import Assumed, FileAssumptions
from tidegate_protocol.proposal.transaction import ReadState, WinningCommit
from tidegate_service.core.access.audit import Change
from tidegate_service.core.ports.forgotten import KeptPlaces, Recalled
from tidegate_service.core.ports.index import TakesLong
from tidegate_service.core.ports.records import (
    Aborted,
    CommitRecord,
    ForgottenTable,
    QuarantineCause,
    RatifiedCommit,
    TableRecord,
)
from tidegate_service.index.rows.effects import effects_of


class MemoryCommitSection:
    """`unused` are transaction ids that were looked for and not found when the lock was granted."""

    def __init__(
        self,
        unit: MemoryUnit,
        table: TableRecord,
        *,
        now_ms: int,
        unused: Iterable[str] = (),
    ) -> None:
        self.table = table
        self.now_ms = now_ms
        self.database = unit.session.database
        self._unit = unit
        self._unused = set(unused)
        self._held: Mapping[int, bytes] = {}

    def _rows(self) -> Rows:
        rows = self._unit.session.rows(self.table.id)
        assert rows is not None, "the section holds the table's row"
        return rows

    def _changing(self) -> Rows:
        return self._unit.session.changing(self.table.id)

    async def _changed(self, change: Callable[[], object]) -> None:
        """Make a change, and see the row with the same statement: behind it, the session may be
        over, and the row another's."""

        def seen() -> TableRecord:
            change()
            return self._rows().record

        self.table = await self._unit.statement(seen)

    async def transaction(self, transaction_id: str) -> CommitRecord | Aborted | None:
        if transaction_id in self._unused:
            return None
        return await self._unit.statement(lambda: self._rows().transaction(transaction_id))

    async def expect(self, transaction_ids: Sequence[str]) -> None:
        def unused() -> set[str]:
            rows = self._rows()
            return {name for name in transaction_ids if rows.transaction(name) is None}

        self._unused |= await self._unit.statement(unused)

    async def state_at(self, version: int, *, most_bytes: int | None = None) -> ReadState | None:
        state = await self._unit.statement(lambda: self._rows().state_at(version))
        return no_longer(state, most_bytes)

    async def winners(
        self, after: int, through: int, *, most_bytes: int | None = None
    ) -> Sequence[WinningCommit] | None:
        if after >= through:
            return ()

        found, size = await self._unit.statement(lambda: self._rows().winners(after, through))
        if most_bytes is not None and size > most_bytes:
            raise TakesLong
        return found

    async def partition_values(
        self, path: str, version: int, *, vector: str | None = None
    ) -> PartitionValues | None:
        found = await self._unit.statement(lambda: self._rows().file_at(path, version))
        return None if found is None else found.partition_values

    async def content(self, version: int) -> bytes | None:
        return await self._unit.statement(lambda: self._rows().content(version))

    async def stored_content(self, version: int) -> bytes | None:
        def found() -> bytes | None:
            commit = self._rows().commit(version)
            return None if commit is None or commit.content is None else bytes(commit.content)

        return await self._unit.statement(found)

    async def answered(self) -> tuple[int, int]:
        return await self._unit.statement(lambda: self._rows().answered)

    async def kept(self, version: int) -> tuple[str | None, int]:
        def found() -> tuple[str | None, int]:
            commit = self._rows().commit(version)
            assert commit is not None
            return commit.record.content_sha256, len(commit.content or b"")

        return await self._unit.statement(found)

    async def row_id_high_water_mark(self) -> int:
        return await self._unit.statement(lambda: self._rows().row_id_high_water_mark)

    async def live_files(self, version: int) -> AsyncIterator[Sequence[Add]]:
        yield await self._unit.statement(lambda: self._rows().live(version))

    async def broken(
        self, transaction_id: str, assumptions: FileAssumptions, version: int
    ) -> Collection[LogicalFile]:
        live = await self._unit.statement(lambda: self._rows().live(version))
        return assumptions.broken({file_key(add) for add in live})

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
        self.table = self._unit.stage((head, commit, effects_of(commit.actions)), self._counted)
        if commit.record.transaction_id is not None:
            self._unused.discard(commit.record.transaction_id)
        if self._unit.is_full:
            await self._unit.flush()

    def _counted(self, record: TableRecord) -> None:
        self.table = replace(self.table, num_files=record.num_files, size_bytes=record.size_bytes)

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

    async def take_time(self) -> None:
        await self._unit.statement(self._unit.session.take_time)

    async def load_base(
        self, commit: RatifiedCommit, actions: AsyncIterator[Sequence[Action]]
    ) -> None:
        if self.table.latest_version != -1:
            raise ValueError(f"the table is at version {self.table.latest_version} already")
        batches = [batch async for batch in actions]
        await self._changed(lambda: self._changing().write_base(commit, batches))

    async def date_back(self, before: int) -> None:
        await self._changed(lambda: self._changing().date_back(before))

    async def date_in_order(self) -> None:
        await self._unit.statement(lambda: self._changing().date_in_order())

    async def abort(self, transaction_id: str) -> None:
        self._unused.discard(transaction_id)
        known = await self.transaction(transaction_id)
        if isinstance(known, CommitRecord):
            raise ValueError(f"the transaction has landed as version {known.version}")

        def close() -> None:
            self._changing().tombstones[transaction_id] = None

        await self._unit.statement(close)

    async def record_change(self, change: Change) -> None:
        await self._unit.statement(lambda: None)

    async def quarantine(self, reason: str, cause: QuarantineCause = QuarantineCause.LOG) -> None:
        await self._changed(lambda: self._changing().quarantine(reason, cause))

    async def release(self) -> None:
        await self._changed(lambda: self._changing().release())

    async def keep_unpublished(self) -> None:
        def held() -> dict[int, bytes]:
            rows = self._rows()
            return {
                commit.record.version: bytes(commit.content or b"")
                for commit in rows.commits
                if commit.record.version > rows.record.published_version
            }

        self._held = await self._unit.statement(held)

    async def kept_unpublished(self, version: int) -> bytes | None:
        return self._held.get(version)

    async def reset(self) -> None:
        self._unused.clear()
        self._unit.is_half_made = True
        await self._changed(lambda: self._changing().reset())

    async def rewritten(self) -> int | None:
        return await self._unit.statement(lambda: rewritten(self._rows()))

    async def restore_ids(self) -> Sequence[tuple[int, str]]:
        lost = await self._unit.statement(lambda: restore_ids(self._changing()))
        self._unit.is_half_made = False
        return lost

    async def forgotten(
        self,
        metadata_ids: Collection[str] | None = None,
        *,
        catalog_managed: bool | None = None,
        most: int | None = None,
    ) -> Sequence[ForgottenTable]:
        def found() -> list[ForgottenTable]:
            kept = self._unit.session.kept_at(self.table.location)
            wanted = None if metadata_ids is None else frozenset(metadata_ids)
            here = [k.table for k in kept if wanted is None or wanted & k.metadata_ids]
            here = [t for t in here if catalog_managed in (None, t.catalog_managed)]
            return sorted(here, key=lambda table: -table.forgotten_ms)[:most]

        return await self._unit.statement(found)

    async def kept_places(self, scopes: Sequence[str]) -> KeptPlaces:
        return await self._unit.statement(
            lambda: kept_places(self._unit.session.kept.values(), self.table.location, scopes)
        )

    async def metadata_ids(self) -> Collection[str]:
        return await self._unit.statement(lambda: self._rows().metadata_ids)

    async def recall(self, table: ForgottenTable) -> Recalled:
        def recalled() -> Recalled:
            return recall(self._changing(), self._unit.session.take_kept(table.id))

        return await self._unit.statement(recalled)

    async def keep_landed(self, record: CommitRecord) -> None:
        assert record.transaction_id is not None, "it has an id"
        name = record.transaction_id

        def keep() -> None:
            self._changing().past[name] = record

        await self._unit.statement(keep)

    async def save(self) -> None:
        await self._unit.save(f"table {self.table.name}")


class MemoryCommitGroup:
    """Of the tables whose rows its unit holds."""

    def __init__(
        self,
        unit: MemoryUnit,
        tables: Sequence[TableRecord],
        asked: Mapping[str, Sequence[str]],
        used: frozenset[tuple[str, str]],
        *,
        now_ms: int,
    ) -> None:
        self._unit = unit
        self.sections: dict[str, MemoryCommitSection] = {
            table.id: MemoryCommitSection(
                unit,
                table,
                now_ms=now_ms,
                unused=(name for name in asked[table.id] if (table.id, name) not in used),
            )
            for table in tables
        }

    @property
    def is_over(self) -> bool:
        return self._unit.saved or self._unit.broken or self._unit.is_half_made

    @property
    def is_saved(self) -> bool:
        return self._unit.saved and not self._unit.broken

    async def expect_assumptions(self, asked: Mapping[str, Mapping[str, Assumed]]) -> None:
        await self._unit.statement(lambda: None)

    async def save(self) -> None:
        await self._unit.save(f"tables {', '.join(s.table.name for s in self.sections.values())}")
