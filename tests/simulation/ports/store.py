"""`core.ports.index.Storage` and `Log` in memory, and what others do in the same places.

A PUT has its effect when it arrives: that may be long after whoever sent it was told that nothing
is known of it, or has died. Nothing that was ever in a log is forgotten, so that a judge can tell
what was there before others cleaned up.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from tests.simulation.ports.network import Answering, Network
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.content import Content, LogFile, whole
from tidegate_protocol.log.file_names import Unknown, commit_name, parse, staged_version
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.log.files.log_file import OversizedFile
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import DatedFile, UnreadableFile

__all__ = ["Folder", "MemoryLog", "MemoryStorage", "Store", "StoreFaults"]

ENTRIES_A_BATCH = 1000
_FOLDERS_OF_A_LOG = ("_sidecars", "_staged_commits", "_commits")


@dataclass(slots=True)
class Folder:
    """One table's `_delta_log`. `written` are all versions that ever were in it in its life, with
    when they came; `rewritten` are those that came twice with other bytes. `checkpoints` are what
    such files hold."""

    files: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    written: dict[int, tuple[bytes, float]] = field(default_factory=dict)
    rewritten: list[int] = field(default_factory=list)
    checkpoints: dict[str, Sequence[Action]] = field(default_factory=dict)
    deleted_s: float = -1.0

    @property
    def end(self) -> int:
        """The newest version of it; -1 where there is none."""
        return max(self.written, default=-1)


class Store:
    """All folders, by the location of their table; `former` are those that were deleted."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.folders: dict[str, Folder] = {}
        self.former: dict[str, list[Folder]] = {}
        self.under_way = 0
        """How many PUTs have been sent and have not arrived; whoever waits for one may be dead."""
        self.late = 0
        """How many PUTs are on their way that nobody waits for any more."""

    def folder(self, location: str) -> Folder:
        return self.folders.setdefault(location, Folder())

    def put(self, location: str, version: int, content: bytes) -> PutResult:
        name, folder = commit_name(version), self.folder(location)
        if name in folder.files:
            return PutResult.EXISTS
        folder.files[name] = content, self.now()
        before = folder.written.get(version)
        if before is not None and before[0] != content:
            folder.rewritten.append(version)
        else:
            folder.written[version] = content, self.now()
        return PutResult.CREATED

    def arrives(self, location: str, version: int, content: bytes) -> None:
        """A PUT that was given up."""
        self.late -= 1
        self.put(location, version, content)

    def plant(self, location: str, name: str, content: bytes) -> None:
        """A file by somebody who knows nothing of the service."""
        self.folder(location).files[name] = content, self.now()

    def is_deleted(self, location: str) -> bool:
        """Whether there was a log that was deleted, and nobody has made another one since."""
        return bool(self.former.get(location)) and 0 not in self.folder(location).written

    def delete(self, location: str) -> None:
        """The folder and all in it, by its owner."""
        folder = self.folders.pop(location, None)
        if folder is not None:
            folder.deleted_s = self.now()
            self.former.setdefault(location, []).append(folder)


class StoreFaults:
    """What a PUT meets, as likelihoods: success, an answer that is lost after it or before it, a
    refusal, a PUT that arrives late, and a "taken" that is not so. `reads` are of a read that
    fails."""

    def __init__(
        self, puts: tuple[float, ...] = (1.0,), reads: tuple[float, float] = (1.0, 0.0)
    ) -> None:
        self.puts = puts
        self.reads = reads


NO_STORE_FAULTS = StoreFaults()
_MEETS = (
    "and is answered",
    "and its answer is lost",
    "but no: it is lost",
    "which is down",
    "but no: it is late",
    "which says that it is taken",
)
LATE_S = (0.2, 8.0, 40.0, 100.0)
"""How late a PUT may be."""


class MemoryStorage:
    """One instance's way to the store."""

    def __init__(
        self,
        store: Store,
        network: Network,
        *,
        faults: StoreFaults = NO_STORE_FAULTS,
        clock_ms: Callable[[float], int] = lambda seconds: int(seconds * 1000),
    ) -> None:
        self._store = store
        self._network = network
        self.faults = faults
        self._clock_ms = clock_ms

    def log(self, location: str, *, who: str | None = None) -> "MemoryLog":
        return MemoryLog(self._store, self._network, location, self.faults, self._clock_ms)

    async def probe(self) -> None:
        await self._network.call(lambda: None, what="store")


class MemoryLog:
    def __init__(
        self,
        store: Store,
        network: Network,
        location: str,
        faults: StoreFaults,
        clock_ms: Callable[[float], int],
    ) -> None:
        self._store = store
        self._network = network
        self._location = location
        self._faults = faults
        self._clock_ms = clock_ms

    async def put_if_absent(self, version: int, content: Content) -> PutResult:
        data = content if isinstance(content, bytes) else whole(content)
        # Here the instance may be stopped, with all that it has decided.
        await self._network.rest("put")

        def arrived(answer: Answering) -> None:
            self._store.under_way -= 1
            self._put(version, data, answer)

        self._store.under_way += 1
        result = await self._network.request(arrived, what="put")
        assert isinstance(result, PutResult)
        return result

    def _put(self, version: int, data: bytes, answer: Answering) -> None:
        faults, store, place = self._faults.puts, self._store, self._location
        what = 0 if len(faults) == 1 else self._network.choices.pick("store.put", faults)
        self._network.note("a PUT of version ", version, " arrives at the store, ", _MEETS[what])
        if what == 0:
            answer(store.put(place, version, data), None)
        elif what == 1:
            store.put(place, version, data)
            answer(None, StorageUnknown("the answer was lost"))
        elif what == 2:
            answer(None, StorageUnknown("the request was lost"))
        elif what == 3:
            answer(None, StorageUnavailable("the store is down"))
        elif what == 4:
            late_s = LATE_S[self._network.choices.among("store.late", len(LATE_S))]
            store.late += 1
            self._network.after(late_s, lambda: self._arrives(version, data))
            answer(None, StorageUnknown("no answer yet"))
        else:
            answer(PutResult.EXISTS, None)

    def _arrives(self, version: int, data: bytes) -> None:
        self._network.note("the late PUT of version ", version, " arrives")
        self._store.arrives(self._location, version, data)

    async def put_in_order(
        self, commits: Sequence[tuple[int, Content]], *, within_s: float
    ) -> Sequence[PutResult]:
        until = self._network.now() + within_s
        results: list[PutResult] = []
        for version, content in commits:
            if results and self._network.now() >= until:
                break
            try:
                results.append(await self.put_if_absent(version, content))
            except (StorageUnavailable, StorageUnknown):
                if results:
                    break
                raise
            if results[-1] is PutResult.EXISTS:
                break
        return results

    def _files(self) -> dict[str, tuple[bytes, float]]:
        folder = self._store.folders.get(self._location)
        return {} if folder is None else folder.files

    async def read(self, version: int) -> bytes | None:
        return await self._read(commit_name(version))

    async def read_dated(self, version: int) -> DatedFile | None:
        content = await self.read(version)
        file = self._files().get(commit_name(version))
        if content is None or file is None:
            return None
        return DatedFile(content, self._clock_ms(file[1]))

    async def holds(self, version: int) -> bool:
        return await self.read(version) is not None

    async def read_staged(self, name: str, *, most_bytes: int) -> bytes | LogFile | None:
        found = await self._read(f"_staged_commits/{name}")
        if found is None or len(found) <= most_bytes:
            return found
        return OversizedFile(len(found), "it is longer than was said")

    async def _read(self, name: str) -> bytes | None:
        def found() -> bytes | None:
            if self._faults.reads[1] and self._network.choices.pick(
                "store.read", self._faults.reads
            ):
                raise StorageUnavailable("the store is down")
            file = self._files().get(name)
            return None if file is None else file[0]

        return await self._network.call(found, what="get")

    async def holds_anything(self, *, but_version: int | None = None) -> bool:
        but = None if but_version is None else commit_name(but_version)

        def any_of_a_log() -> bool:
            return any(is_of_a_log(name) and name != but for name in self._files())

        return await self._network.call(any_of_a_log, what="list")

    def entries(self, *, behind: int | None = None) -> AsyncIterator[Sequence[LogEntry]]:
        after = "" if behind is None else commit_name(behind)
        return self._listed("", lambda name: name > after)

    def staged(self, versions: range) -> AsyncIterator[Sequence[LogEntry]]:
        return self._listed("_staged_commits/", lambda name: staged_version(name) in versions)

    async def _listed(
        self, folder: str, is_wanted: Callable[[str], bool]
    ) -> AsyncIterator[Sequence[LogEntry]]:
        def listed() -> list[LogEntry]:
            inside = {
                name.removeprefix(folder): file
                for name, file in self._files().items()
                if name.startswith(folder)
            }
            return [
                LogEntry(name=name, size=len(content), modified_ms=self._clock_ms(modified_s))
                for name, (content, modified_s) in sorted(inside.items(), key=_bytes_of)
                if "/" not in name and is_wanted(name)
            ]

        found = await self._network.call(listed, what="list")
        for start in range(0, len(found), ENTRIES_A_BATCH):
            yield found[start : start + ENTRIES_A_BATCH]

    async def read_file(self, name: str, *, most_bytes: int | None = None) -> bytes | None:
        if not name or "/" in name or name in (".", ".."):
            raise UnreadableFile(f"{name!r} is no file of the log's folder")
        content = await self._read(name)
        if content is not None and most_bytes is not None and len(content) > most_bytes:
            raise UnreadableFile(f"{name!r} has more than {most_bytes} bytes")
        return content

    async def checkpoint_actions(self, name: str) -> AsyncIterator[Sequence[Action]]:
        def actions() -> Sequence[Action] | None:
            folder = self._store.folders.get(self._location)
            return None if folder is None else folder.checkpoints.get(name)

        found = await self._network.call(actions, what="get")
        if found is None:
            raise UnreadableFile(f"there is no checkpoint {name}")
        yield found


def is_of_a_log(name: str) -> bool:
    folder, is_below, _ = name.partition("/")
    return folder in _FOLDERS_OF_A_LOG if is_below else not isinstance(parse(name), Unknown)


def _bytes_of(file: tuple[str, object]) -> bytes:
    return file[0].encode()
