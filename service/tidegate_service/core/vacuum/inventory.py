"""A listing that somebody else made, in the place of the store's own (Delta: USING INVENTORY)."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice

from tidegate_protocol.log.paths import identity
from tidegate_service.core.ports.store.data_files import DataFile, DataFiles, Listed
from tidegate_service.core.ports.store.data_names import within
from tidegate_service.core.sharing.pools import Share
from tidegate_service.core.sharing.spools import SortedSpool

LISTED_AT_ONCE = 1_000
"""Some milliseconds of a thread that all principals have in turn."""


class Inventory:
    """What is said to lie in a store, sorted on the disk in the name of `who`. Blocking."""

    def __init__(self, *, who: str | None) -> None:
        self.who = who
        self._spool = SortedSpool(who=who)

    def add(self, files: Sequence[DataFile]) -> None:
        """Files of any place, by relative or absolute paths without a zero character."""
        # What is behind a zero is compared last.
        self._spool.add([f"{file.path}\0{file.size}\0{file.modified_ms}" for file in files])

    @property
    def held_bytes(self) -> int:
        """Of memory, roughly."""
        return self._spool.held_bytes

    def files(self) -> Iterator[DataFile]:
        for line in self._spool.lines():
            path, size, modified_ms = line.split("\0")
            yield DataFile(path=path, size=int(size), modified_ms=int(modified_ms))

    def close(self) -> None:
        self._spool.close()


class InventoryFiles:
    """The data files of a table as an inventory has them: `DataFiles` whose listing is that."""

    def __init__(
        self,
        files: DataFiles,
        inventory: Inventory,
        *,
        location: str,
        hides: Callable[[str], bool],
        share: Share,
    ) -> None:
        self._files = files
        self._inventory = inventory
        self._location = location
        self._hides = hides
        self._share = share

    async def ranges_at_once(self) -> int:
        return 1

    async def listed(self, *, after: str = "", until: str | None = None) -> AsyncIterator[Listed]:
        own = Inventory(who=self._inventory.who)
        try:
            entries = self._inventory.files()
            while await self._share.run_rested(self._take, entries, own):
                pass
            files = own.files()
            while some := await self._share.run_rested(list, islice(files, LISTED_AT_ONCE)):
                some = [
                    file
                    for file in some
                    if file.path > after and (until is None or file.path <= until)
                ]
                yield Listed(
                    paths=[file.path for file in some],
                    sizes=[file.size for file in some],
                    modified_ms=[file.modified_ms for file in some],
                )
        finally:
            own.close()

    def _take(self, entries: Iterator[DataFile], own: Inventory) -> bool:
        """Whether there were more of them; data files of the table, by their paths relative to it,
        are kept."""
        some = list(islice(entries, LISTED_AT_ONCE))
        kept = []
        for file in some:
            path = within(_plain(file.path), self._location)
            if path is not None and not self._hides(path):
                kept.append(DataFile(path=path, size=file.size, modified_ms=file.modified_ms))
        own.add(kept)
        return bool(some)

    async def described(self, paths: Sequence[str]) -> Sequence[DataFile]:
        return await self._files.described(paths)

    async def delete(self, paths: Sequence[str]) -> None:
        await self._files.delete(paths)

    async def remove_empty_folders(self, *, before_ms: int) -> int:
        return await self._files.remove_empty_folders(before_ms=before_ms)


def _plain(path: str) -> str:
    """As `names.within` takes it; what is no URL is a name as the store has it, not encoded."""
    return identity(path) if "://" in path or path.startswith("file:") else path
