"""`core.ports.index.Index` over the database in memory: the calls of the commit path, of publishing
and of maintenance. Scans and comparisons are not among them; nothing that is simulated makes them.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from tests.simulation.ports.kept import kept_of
from tests.simulation.ports.network import Answering, Network
from tests.simulation.ports.reads import MemoryReads, as_id, no_such_table
from tests.simulation.ports.rows import Rows, empty_record
from tests.simulation.ports.section import MemoryCommitGroup, MemoryCommitSection
from tests.simulation.ports.server import LOCK_TIMEOUT_S, Server, Session
from tests.simulation.ports.unit import NO_DATABASE_FAULTS, DatabaseFaults, MemoryUnit
from tidegate_service.core.access.roles import Caller
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.ports.records import NewTable, TableRecord, TableState, Waiting


class MemoryIndex(MemoryReads):
    """One instance's way to the database. `unsynced` is how likely the server takes a session that
    waits for its client for one that works: a pipeline without an end."""

    def __init__(
        self,
        server: Server,
        network: Network,
        *,
        faults: DatabaseFaults = NO_DATABASE_FAULTS,
        unsynced: float = 0.0,
    ) -> None:
        super().__init__(server, network)
        self.faults = faults
        self.unsynced = unsynced
        self._looks = 0

    @asynccontextmanager
    async def commit_section(
        self, table_id: str, *, who: str | None = None
    ) -> AsyncIterator[MemoryCommitSection]:
        """Whoever asks: there are as many as anybody may want."""
        session = self._server.session(self._network)
        unit = MemoryUnit(session, self.faults)
        try:
            rows, now_ms = await self._locked(session, table_id)
            if rows is None:
                raise no_such_table(table_id)
            yield MemoryCommitSection(unit, rows.record, now_ms=now_ms)
        finally:
            await unit.abandon()
            unit.close()

    @asynccontextmanager
    async def commit_group(
        self, asked: Mapping[str, Sequence[str]], *, wait: bool
    ) -> AsyncIterator[MemoryCommitGroup]:
        session = self._server.session(self._network)
        unit = MemoryUnit(session, self.faults)
        try:
            if wait:
                (only,) = asked
                one, now_ms = await self._locked(session, only)
                found = [one]
            else:
                found, now_ms = await self._network.call(
                    lambda: self._lock_free(session, sorted(asked)), what="lock"
                )
            tables = [rows for rows in found if rows is not None]
            used = frozenset(
                (rows.record.id, name)
                for rows in tables
                for name in asked[rows.record.id]
                if rows.transaction(name) is not None
            )
            yield MemoryCommitGroup(
                unit,
                [rows.record for rows in tables],
                asked,
                used,
                now_ms=now_ms,
            )
        finally:
            await unit.abandon()
            unit.close()

    @asynccontextmanager
    async def creation_section(
        self, table: NewTable, *, who: str | None = None
    ) -> AsyncIterator[MemoryCommitSection]:
        session = self._server.session(self._network)
        unit = MemoryUnit(session, self.faults)
        record = empty_record(table)

        def claim(answer: Answering) -> None:
            def claimed(_: object, error: BaseException | None) -> None:
                if error is None:
                    session.changed[table.id] = Rows(record)
                session.asked()
                answer(None, error)

            self._server.claim(session, table, claimed)
            self._network.after(LOCK_TIMEOUT_S, lambda: self._too_late(session, answer, table.id))

        try:
            await self._network.request(claim, what="lock")
            yield MemoryCommitSection(unit, record, now_ms=self._server.clock_ms())
        finally:
            await unit.abandon()
            unit.close()

    def _too_late(self, session: Session, answer: Answering, table_id: str) -> None:
        if not session.is_over and table_id not in session.changed:
            session.end()
            answer(None, lock_timeout())

    async def _locked(self, session: Session, table_id: str) -> tuple[Rows | None, int]:
        """The table's row once nobody else holds it, None where it is not there then, and the
        database's clock at that moment (ms)."""
        server, network = self._server, self._network

        def lock(answer: Answering) -> None:
            def granted() -> None:
                if not self._is_unsynced():
                    session.asked()
                answer((server.tables.get(table_id), server.clock_ms()), None)

            if session.is_over:
                answer(None, IndexUnavailable("the index database ended the session"))
            elif table_id not in server.tables:
                session.asked()
                answer((None, server.clock_ms()), None)
            else:
                server.lock(session, table_id, granted)
                if not session.locks:
                    ended = IndexUnavailable("the index database ended the session")
                    session.if_ended = lambda: answer(None, ended)
                    network.after(LOCK_TIMEOUT_S, lambda: too_late(answer))

        def too_late(answer: Answering) -> None:
            if server.give_up(session, table_id):
                session.if_ended = None
                session.end()
                answer(None, lock_timeout())

        found: tuple[Rows | None, int] = await network.request(lock, what="lock")
        return found

    def _is_unsynced(self) -> bool:
        rare = self.unsynced
        return bool(rare) and self._network.choices.pick("server.sync", (1 - rare, rare)) == 1

    def _lock_free(
        self, session: Session, table_ids: Sequence[str]
    ) -> tuple[list[Rows | None], int]:
        session.check()
        found: list[Rows | None] = []
        for table_id in table_ids:
            rows = self._server.tables.get(table_id)
            if rows is not None and not self._server.is_locked(table_id):
                self._server.lock(session, table_id, lambda: None)
                found.append(rows)
        if not self._is_unsynced():
            session.asked()
        return found, self._server.clock_ms()

    async def forget(self, table_id: str, *, by: Caller) -> bool:
        session = self._server.session(self._network)
        unit = MemoryUnit(session, self.faults)
        try:
            rows, now_ms = await self._locked(session, table_id)
            gone = rows is not None and (
                rows.record.published_version == rows.record.latest_version
            )
            if gone:

                def delete() -> None:
                    session.keep(kept_of(session.changing(table_id), at_ms=now_ms))
                    session.changed[table_id] = None

                await unit.run(delete)
            await unit.save(f"table {table_id}")
        finally:
            unit.close()
        return gone

    async def delete_forgotten(self, table_id: str, *, by: Caller) -> bool:
        session = self._server.session(self._network)
        unit = MemoryUnit(session, self.faults)
        name = as_id(table_id)
        try:
            gone = await unit.run(lambda: name in session.kept)
            if gone:
                await unit.run(lambda: session.take_kept(name))
            await unit.save(f"table {table_id}")
        finally:
            unit.close()
        return gone

    async def unpublished(self, *, limit: int) -> list[TableRecord]:
        def lagging() -> list[TableRecord]:
            found = [
                replace(record, protocol=None, metadata=None)
                for record in self._server.records()
                if record.catalog_managed
                and record.state is TableState.ACTIVE
                and record.published_version < record.latest_version
            ]
            # Every one has its turn, however small the limit.
            self._looks += 1
            first = self._looks % len(found) if found else 0
            return [*found[first:], *found[:first]][:limit]

        return await self._read(lagging)

    async def unpublished_versions(
        self, table_id: str, *, limit: int, at_once: bool = False
    ) -> Waiting:
        def waiting() -> Waiting:
            rows, database = self._server.tables.get(table_id), self._server.database
            if rows is None or rows.record.state is not TableState.ACTIVE:
                return Waiting(versions=(), behind=0, database=database)
            record = rows.record
            versions = [
                (commit.record.version, bytes(commit.content or b""))
                for commit in rows.commits
                if commit.record.version > record.published_version
            ]
            behind = len(versions)
            return Waiting(versions=versions[:limit], behind=behind, database=database)

        return await self._read(waiting)

    async def mark_published(
        self,
        table_id: str,
        first: int,
        last: int,
        *,
        database: str | None = None,
        at_once: bool = False,
    ) -> None:
        async with self._changing(table_id) as (unit, rows):
            if database not in (None, unit.session.database):
                raise IndexUnavailable(f"versions {first} to {last} are another database's")
            if rows is None:
                raise no_such_table(table_id)
            record = rows.record
            if last <= record.published_version:
                return
            if last > record.latest_version:
                raise ValueError(
                    f"version {last} does not exist: the latest is {record.latest_version}"
                )
            if not first - 1 <= record.published_version:
                raise ValueError(
                    f"version {first} cannot be published: the last that is, is "
                    f"{record.published_version}"
                )

            def mark() -> None:
                changing = unit.session.changing(table_id)
                changing.record = replace(changing.record, published_version=last)

            await unit.run(mark)
            await unit.save(f"table {table_id}")

    async def forget_content(self, table_id: str, *, through: int, at_once: bool = False) -> None:
        def forget() -> None:
            rows = self._server.tables.get(table_id)
            if rows is not None and not self._server.is_locked(table_id):
                rows = self._server.tables[table_id] = rows.copy()
                known = min(through, rows.record.published_version)
                rows.forgotten_through = max(rows.forgotten_through, known)

        await self._network.call(forget, what="sql")

    @asynccontextmanager
    async def _changing(self, table_id: str) -> AsyncIterator[tuple[MemoryUnit, Rows | None]]:
        """A change that can be made twice: one without an answer is one that failed."""
        session = self._server.session(self._network)
        unit = MemoryUnit(session, self.faults)
        try:
            rows, _ = await self._locked(session, table_id)
            yield unit, rows
        finally:
            unit.close()


def lock_timeout() -> IndexUnavailable:
    return IndexUnavailable("another transaction held the table's lock for too long")
