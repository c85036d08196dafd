"""What the index in memory answers without a lock: what is committed, of one moment each."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

from tests.simulation.ports.kept import Kept
from tests.simulation.ports.network import Network
from tests.simulation.ports.rows import Rows
from tests.simulation.ports.server import Server, ascii_lower, places_overlap
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.row_tracking import NO_ROW_IDS
from tidegate_protocol.log.actions import Add, DomainMetadata, Txn
from tidegate_protocol.proposal.transaction import ReadState, WinningCommit
from tidegate_service.core.errors import IndexUnavailable, NotFound
from tidegate_service.core.ports.forgotten import KeptPlaces
from tidegate_service.core.ports.index import TakesLong
from tidegate_service.core.ports.records import (
    PAGE_BYTES,
    Aborted,
    CommitGlance,
    CommitRecord,
    ForgottenTable,
    Glance,
    TableHead,
    TableRecord,
)
from tidegate_service.core.ports.told import HeadsOnStandby

T = TypeVar("T")

WINNERS_A_PAGE = 2


class MemoryReads:
    """As the methods of `core.ports.index.Index` of the same names. There is no standby to wait
    for."""

    def __init__(self, server: Server, network: Network) -> None:
        self._server = server
        self._network = network

    async def table(self, ref: str) -> TableRecord | None:
        def find() -> TableRecord | None:
            rows = self._server.find(as_id(ref))
            return None if rows is None else rows.record

        return await self._read(find)

    async def glance(self, table_id: str) -> Glance | None:
        server = self._server

        def seen(rows: Rows) -> Glance:
            published = rows.commit(rows.record.published_version)
            return Glance(
                table=rows.record,
                published_sha256=None if published is None else published.record.content_sha256,
                now_ms=server.clock_ms(),
                database=server.database,
            )

        return await self._of(table_id, seen)

    async def head(self, ref: str) -> TableHead | None:
        return await self.table(ref)

    async def told_head(self, ref: str, *, known: HeadsOnStandby) -> TableHead | None:
        def find() -> TableRecord | None:
            rows = self._server.find(as_id(ref))
            return None if rows is None else self._told(rows.record, known)

        return await self._read(find)

    async def told_table(
        self, ref: str, *, known: HeadsOnStandby, most_metadata: int
    ) -> TableHead | None:
        return await self.told_head(ref, known=known)

    async def told_glance(self, table_id: str, *, known: HeadsOnStandby) -> Glance | None:
        glance = await self.glance(table_id)
        if glance is not None and glance.table.catalog_managed:
            known.remember(glance.table, database=glance.database)
        return glance

    async def tables(
        self,
        *,
        prefix: str,
        after: str | None,
        limit: int,
        known: HeadsOnStandby,
        within: Sequence[str] | None = None,
        most_bytes: int = PAGE_BYTES,
    ) -> list[TableRecord]:
        def page() -> list[TableRecord]:
            by_name = {record.name.lower(): record for record in self._server.records()}
            names = sorted(
                name
                for name in by_name
                if name.startswith(prefix.lower())
                and (after is None or name > after.lower())
                and (within is None or is_within(name, within))
            )
            return [self._told(by_name[name], known) for name in names[:limit]]

        return await self._read(page)

    async def transaction(
        self, table_id: str, transaction_id: str
    ) -> CommitRecord | Aborted | None:
        return await self._of(table_id, lambda rows: rows.transaction(transaction_id))

    async def commit(self, table_id: str, version: int) -> CommitRecord | None:
        found = await self.history(table_id, from_version=version, to_version=version, limit=1)
        return found[0] if found else None

    async def glance_at_commit(self, table_id: str, version: int) -> CommitGlance | None:
        found = await self.commit(table_id, version)
        if found is None:
            return None
        return CommitGlance(
            timestamp=found.timestamp,
            body_digest=found.body_digest,
            content_sha256=found.content_sha256,
        )

    async def content(self, table_id: str, version: int) -> bytes | None:
        return await self._of(table_id, lambda rows: rows.content(version))

    async def history(
        self, table_id: str, *, from_version: int | None, to_version: int | None, limit: int
    ) -> list[CommitRecord]:
        def history(rows: Rows) -> list[CommitRecord]:
            records = [commit.record for commit in reversed(rows.commits)]
            return [
                record
                for record in records
                if (from_version is None or record.version >= from_version)
                and (to_version is None or record.version <= to_version)
            ][:limit]

        return await self._of(table_id, history) or []

    async def state_at(
        self, table_id: str, version: int, *, most_bytes: int | None = None
    ) -> ReadState | None:
        state = await self._of(table_id, lambda rows: rows.state_at(version))
        return no_longer(state, most_bytes)

    async def is_used(self, table_id: str, transaction_id: str) -> bool:
        known = await self._of(table_id, lambda rows: rows.transaction(transaction_id))
        return known is not None

    async def row_id_high_water_mark(self, table_id: str) -> int:
        mark = await self._of(table_id, lambda rows: rows.row_id_high_water_mark)
        return NO_ROW_IDS if mark is None else mark

    async def winner_pages(
        self, table_id: str, after: int, through: int, *, most_bytes: int
    ) -> AsyncGenerator[Sequence[WinningCommit], None]:
        size = 0
        while after < through:
            last = min(after + WINNERS_A_PAGE, through)
            page = await self._of(table_id, partial(Rows.winners, after=after, through=last))
            if page is None or page[0] is None:
                return
            size += page[1]
            if size > most_bytes:
                raise TakesLong
            yield page[0]
            after = last

    async def version_at(self, table_id: str, timestamp_ms: int) -> int | None:
        def latest(rows: Rows) -> int | None:
            return max(
                (c.record.version for c in rows.commits if c.record.timestamp <= timestamp_ms),
                default=None,
            )

        return await self._of(table_id, latest)

    async def files(self, table_id: str, version: int) -> AsyncIterator[Sequence[Add]]:
        found = await self._of(as_id(table_id), lambda rows: (rows.record, rows.live(version)))
        if found is None:
            raise no_such_table(table_id)
        record, live = found
        if version < record.first_version:
            raise NotFound(
                f"version {version} of the table is not held any more; the first one is "
                f"{record.first_version}",
                code=Code.VERSION_NOT_FOUND,
            )
        if version > record.latest_version:
            raise IndexUnavailable("the database failed over since the version was asked for")
        if live:
            yield live

    async def app_transaction(
        self, table_id: str, app_id: str, *, known: HeadsOnStandby
    ) -> Txn | None:
        def find(rows: Rows) -> Txn | None:
            self._told(rows.record, known)
            return rows.txns.get(app_id)

        return await self._of(table_id, find)

    async def domain(
        self, table_id: str, domain: str, *, known: HeadsOnStandby
    ) -> DomainMetadata | None:
        def find(rows: Rows) -> DomainMetadata | None:
            self._told(rows.record, known)
            return rows.domains.get(domain)

        return await self._of(table_id, find)

    async def forgotten_tables(self, *, after: str | None, limit: int) -> list[ForgottenTable]:
        def page() -> list[ForgottenTable]:
            kept = self._server.kept
            ids = sorted(name for name in kept if after is None or name > as_id(after))
            return [kept[name].table for name in ids[:limit]]

        return await self._read(page)

    async def ping(self) -> None:
        await self._read(lambda: None)

    def _told(self, table: TableRecord, known: HeadsOnStandby) -> TableRecord:
        if table.catalog_managed:
            known.remember(table, database=self._server.database)
        return table

    async def _read(self, query: Callable[[], T]) -> T:
        return await self._network.call(query, what="sql")

    async def _of(self, table_id: str, query: Callable[[Rows], T]) -> T | None:
        def ask() -> T | None:
            rows = self._server.tables.get(table_id)
            return None if rows is None else query(rows)

        return await self._read(ask)


def as_id(ref: str) -> str:
    """The id as it is stored, where the reference is one."""
    try:
        return str(UUID(ref))
    except ValueError:
        return ref


def kept_places(kept: Iterable[Kept], location: str, scopes: Sequence[str]) -> KeptPlaces:
    near = [one.table for one in kept if places_overlap(one.table.location, location)]
    others = [table for table in near if not is_within(ascii_lower(table.name), scopes)]
    taken = {table.location for table in others}
    return KeptPlaces(
        others=bool(others),
        around=frozenset(
            table.location
            for table in near
            if location.startswith(f"{table.location}/") and table.location not in taken
        ),
    )


def is_within(name: str, scopes: Sequence[str]) -> bool:
    return any(name == scope or name.startswith(f"{scope}.") for scope in scopes)


def no_such_table(table_id: str) -> NotFound:
    return NotFound(f"there is no table {table_id}", code=Code.TABLE_NOT_FOUND)


def no_longer(state: ReadState | None, most_bytes: int | None) -> ReadState | None:
    """The state; raises `TakesLong` where its protocol and metadata have more bytes."""
    if most_bytes is not None and state is not None:
        told = (state.protocol, state.metadata)
        if sum(len(action.raw) for action in told if action is not None) > most_bytes:
            raise TakesLong
    return state
