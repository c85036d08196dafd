"""A store that tells of every read, and of how many of versions are under way."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.content import Content, LogFile
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile, Log, Storage


async def _nothing(version: int) -> None:
    """What nobody watches goes on."""


async def _nothing_more() -> None:
    """The same."""


class WatchedStorage:
    """The real storage; `reading` is awaited before each read of a version, or look for one, and
    may raise in its place, `listing` before a listing or a checkpoint is read. `reads` are the
    versions that were asked for, `looks` those that were looked for, `puts` those that were
    written."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.reading: Callable[[int], Awaitable[None]] = _nothing
        self.listing: Callable[[], Awaitable[None]] = _nothing_more
        self.reads: list[int] = []
        self.looks: list[int] = []
        self.puts: list[int] = []
        self.under_way = 0
        self.most_under_way = 0

    def log(self, location: str, *, who: str | None = None) -> Log:
        return _WatchedLog(self._storage.log(location, who=who), self)

    async def probe(self) -> None:
        await self._storage.probe()


class _WatchedLog:
    def __init__(self, log: Log, storage: WatchedStorage) -> None:
        self._log = log
        self._storage = storage

    async def read(self, version: int) -> bytes | LogFile | None:
        found = await self.read_dated(version)
        return None if found is None else found.content

    async def read_dated(self, version: int) -> DatedFile | None:
        watched = self._storage
        watched.reads.append(version)
        watched.under_way += 1
        watched.most_under_way = max(watched.most_under_way, watched.under_way)
        try:
            await watched.reading(version)
            return await self._log.read_dated(version)
        finally:
            watched.under_way -= 1

    async def holds(self, version: int) -> bool:
        self._storage.looks.append(version)
        await self._storage.reading(version)
        return await self._log.holds(version)

    async def put_if_absent(self, version: int, content: Content) -> PutResult:
        self._storage.puts.append(version)
        return await self._log.put_if_absent(version, content)

    async def put_in_order(
        self, commits: Sequence[tuple[int, Content]], *, within_s: float
    ) -> Sequence[PutResult]:
        self._storage.puts += [version for version, _ in commits]
        return await self._log.put_in_order(commits, within_s=within_s)

    async def holds_anything(self, *, but_version: int | None = None) -> bool:
        return await self._log.holds_anything(but_version=but_version)

    async def entries(self, *, behind: int | None = None) -> AsyncIterator[Sequence[LogEntry]]:
        await self._storage.listing()
        async for entries in self._log.entries(behind=behind):
            yield entries

    async def staged(self, versions: range) -> AsyncIterator[Sequence[LogEntry]]:
        await self._storage.listing()
        async for entries in self._log.staged(versions):
            yield entries

    async def read_staged(self, name: str, *, most_bytes: int) -> bytes | LogFile | None:
        return await self._log.read_staged(name, most_bytes=most_bytes)

    async def read_file(self, name: str, *, most_bytes: int | None = None) -> bytes | None:
        return await self._log.read_file(name, most_bytes=most_bytes)

    async def checkpoint_actions(self, name: str) -> AsyncIterator[Sequence[Action]]:
        await self._storage.listing()
        async for actions in self._log.checkpoint_actions(name):
            yield actions
