"""Faults between the commit path and the real store: answers lost, writes refused.

These wrap the real storage and pass every call on; a fault changes only what the caller learns
of it, or keeps one write from being made. Each fault is used once, in order.
"""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from enum import Enum

from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.content import Content, LogFile
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.ports.checkpoints import CheckpointFiles
from tidegate_service.core.ports.store.data_files import DataFiles
from tidegate_service.core.ports.store.expired import ExpiredLog
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.manifests import Manifests
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile, Log, Storage
from tidegate_service.storage.roots import one_by_one


class Fault(Enum):
    """What happens to the next PUT of a commit file."""

    NONE = "passes through"
    ANSWER_LOST = "written, but the caller is not told"
    LOST = "not written, and the caller is not told"
    REFUSED = "not written, and the caller is told so"
    HELD = "on its way; written once `FaultyStorage.deliver` is called, and the caller is not told"


class FaultyStorage:
    """A `Storage` whose PUTs meet the scripted faults, then none."""

    def __init__(self, storage: Storage, faults: Iterable[Fault] = ()) -> None:
        self._storage = storage
        self.faults = deque(faults)
        # Told of the version before each PUT.
        self.before: Callable[[int], None] = lambda version: None
        self._held: list[tuple[Log, int, Content]] = []

    def log(self, location: str, *, who: str | None = None) -> Log:
        return FaultyLog(self._storage.log(location, who=who), self, self._held)

    def checkpoints(self, location: str, *, who: str | None = None) -> CheckpointFiles:
        return self._storage.checkpoints(location, who=who)

    def expired(self, location: str) -> ExpiredLog:
        return self._storage.expired(location)

    def manifests(self, location: str) -> Manifests:
        return self._storage.manifests(location)

    def data_files(self, location: str, **of: object) -> DataFiles:
        return self._storage.data_files(location, **of)

    async def deliver(self) -> list[PutResult]:
        """What became of every PUT that was held, now that they arrive, in their order."""
        held, self._held[:] = list(self._held), []
        return [await log.put_if_absent(version, content) for log, version, content in held]

    async def probe(self) -> None:
        if self.faults and self.faults[0] is Fault.REFUSED:
            raise StorageUnavailable("the store is down")
        await self._storage.probe()


class FaultyLog:
    def __init__(
        self, log: Log, storage: FaultyStorage, held: list[tuple[Log, int, Content]]
    ) -> None:
        self._log = log
        self._storage = storage
        self._held = held

    async def put_if_absent(self, version: int, content: Content) -> PutResult:
        self._storage.before(version)
        faults = self._storage.faults
        fault = faults.popleft() if faults else Fault.NONE
        if fault is Fault.REFUSED:
            raise StorageUnavailable("the store is down")
        if fault is Fault.LOST:
            raise StorageUnknown("the request was lost")
        if fault is Fault.HELD:
            self._held.append((self._log, version, content))
            raise StorageUnknown("no answer yet")
        result = await self._log.put_if_absent(version, content)
        if fault is Fault.ANSWER_LOST:
            raise StorageUnknown("the answer was lost")
        return result

    async def put_in_order(
        self, commits: Sequence[tuple[int, Content]], *, within_s: float
    ) -> Sequence[PutResult]:
        return await one_by_one(self.put_if_absent, commits, within_s=within_s)

    async def put_checksum(self, version: int, content: bytes) -> PutResult:
        return await self._log.put_checksum(version, content)

    async def put_compacted(self, first: int, last: int, content: bytes) -> PutResult:
        return await self._log.put_compacted(first, last, content)

    async def read(self, version: int) -> bytes | LogFile | None:
        found = await self.read_dated(version)
        return None if found is None else found.content

    async def read_dated(self, version: int) -> DatedFile | None:
        return await self._log.read_dated(version)

    async def holds(self, version: int) -> bool:
        return await self._log.holds(version)

    async def read_staged(self, name: str, *, most_bytes: int) -> bytes | LogFile | None:
        return await self._log.read_staged(name, most_bytes=most_bytes)

    def staged(self, versions: range) -> AsyncIterator[Sequence[LogEntry]]:
        return self._log.staged(versions)

    async def holds_anything(self, *, but_version: int | None = None) -> bool:
        return await self._log.holds_anything(but_version=but_version)

    def entries(self, *, behind: int | None = None) -> AsyncIterator[Sequence[LogEntry]]:
        return self._log.entries(behind=behind)

    async def read_file(self, name: str, *, most_bytes: int | None = None) -> bytes | None:
        return await self._log.read_file(name, most_bytes=most_bytes)

    def checkpoint_actions(self, name: str) -> AsyncIterator[Sequence[Action]]:
        return self._log.checkpoint_actions(name)
