"""Making the manifests of a version: all of a table's, or those of some partitions.

What they are to hold is sorted first, on the disk where it is much, so that memory does not grow
with the table, and a table that can have none is refused before any is touched. Then each is
replaced as a whole. Those of partitions without files are deleted last. Whoever is cut off leaves
manifests of two versions, and the same call again makes them of one.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from tidegate_protocol.log.actions import Metadata
from tidegate_service.core.limits import MANIFEST_LIMITS, ManifestLimits
from tidegate_service.core.manifests.lines import END_OF_FOLDER, ManifestLines
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints, ManifestStep, around
from tidegate_service.core.observe.ports_with_faults import with_faults
from tidegate_service.core.ports.files.scanned import StoredFiles, Wanted
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.manifests import Manifests
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.core.sharing import offload
from tidegate_service.core.sharing.spools import SortedSpool

Pieces = Iterable[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestsWritten:
    """Of which version, how many manifests, and of how many files; `removed` were of partitions
    that have no file any more."""

    version: int
    manifests: int
    files: int
    removed: int


async def make_manifests(
    index: Index,
    storage: Storage,
    table: TableHead,
    metadata: Metadata,
    *,
    version: int,
    who: str | None,
    partitions: Sequence[str] | None = None,
    limits: ManifestLimits = MANIFEST_LIMITS,
    faults: FaultPoints = NO_FAULTS,
) -> ManifestsWritten:
    """The manifests of a version whose metadata is given: those of the partitions with these
    values (JSON objects), or all where none are given.

    Raises `Refused` for a table that has none, before anything is written, and where its paths are
    more than is kept on the disk, and `Unavailable` where those of all, or of `who`, are. Raises as
    `Index.stored_files` and `Manifests` do.
    """
    lines = ManifestLines.of(table.location, metadata)
    only = None
    if partitions is not None:
        only = frozenset(await offload.run(len(partitions), lines.folders, partitions))
    store = with_faults(
        storage.manifests(table.location), faults, {Manifests.remove: ManifestStep.REMOVE}
    )
    making = _Making(
        index,
        store,
        lines,
        only,
        limits,
        faults,
        SortedSpool(who=who, most_held=limits.sorted_bytes),
        SortedSpool(who=who, most_held=limits.sorted_bytes),
    )
    try:
        files = await making.collect(table.id, version)
        manifests = await making.put()
        removed = await making.remove()
    finally:
        making.close()
    return ManifestsWritten(version=version, manifests=manifests, files=files, removed=removed)


@dataclass(frozen=True, slots=True)
class _Making:
    """`only` are the folders whose manifests are made, None for all of them; `_put` is what was put
    of those."""

    index: Index
    store: Manifests
    lines: ManifestLines
    only: frozenset[str] | None
    limits: ManifestLimits
    faults: FaultPoints
    _sorted: SortedSpool
    _listed: SortedSpool
    _put: set[str] = field(default_factory=set)

    async def collect(self, table_id: str, version: int) -> int:
        """Sort what the manifests are to hold; of how many files."""
        files = 0
        wanted = Wanted(partitions=self._are_wanted) if self._is_by_partition else Wanted()
        async for batch in self.index.stored_files(table_id, version, wanted):
            files += len(batch)
            await offload.run(len(batch), self._add, batch)
        return files

    async def put(self) -> int:
        count = 0
        manifests = _Sorted(self._sorted.lines(), self.limits)
        while some := await offload.run(offload.HEAVY, manifests.some):
            await self._put_together(some)
            count += len(some)
        if not count and not self.lines.columns:
            # Without a file, too: whoever reads the table finds it empty.
            await self._put_together([("", ())])
            count = 1
        return count

    async def remove(self) -> int:
        """Delete the manifests of partitions that have no file."""
        removed, stale = 0, await self._stale()
        while some := await offload.run(offload.HEAVY, self._some, stale):
            await self.store.remove(some)
            removed += len(some)
        return removed

    def _some(self, folders: Iterator[str]) -> Sequence[str]:
        return list(islice(folders, self.limits.removed))

    def close(self) -> None:
        self._sorted.close()
        self._listed.close()

    @property
    def _is_by_partition(self) -> bool:
        return self.only is not None and bool(self.lines.columns)

    async def _are_wanted(self, partitions: Sequence[str]) -> Sequence[bool]:
        assert self.only is not None, "it is asked for some partitions alone"
        folders = await offload.run(len(partitions), self.lines.folders, partitions)
        return [folder in self.only for folder in folders]

    def _add(self, files: StoredFiles) -> None:
        self._sorted.add(self.lines.of_files(files))

    async def _put_together(self, some: Sequence[tuple[str, Pieces]]) -> None:
        async with around(self.faults, ManifestStep.PUT):
            puts = (self.store.put(folder, pieces) for folder, pieces in some)
            # All of them end before the spool that they are read from is closed.
            for result in await asyncio.gather(*puts, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
        if self.only is not None:
            self._put.update(folder for folder, _ in some)

    async def _stale(self) -> Iterator[str]:
        if self.only is not None:
            return iter(sorted(self.only - self._put))
        # Listed as a whole before any is deleted: a store may not list what it deletes from.
        async for partitions in self.store.partitions():
            listed = [f"{folder}{END_OF_FOLDER}" for folder in partitions if self._may_go(folder)]
            await offload.run(len(listed), self._listed.add, listed)
        return _without_lines(self._listed.lines(), self._sorted.lines())

    def _may_go(self, folder: str) -> bool:
        """A table without partitions has its manifest, however few files it has."""
        return bool(folder or self.lines.columns)


class _Sorted:
    """Sorted lines as manifests. Blocking."""

    def __init__(self, lines: Iterator[str], limits: ManifestLimits) -> None:
        self._lines = lines
        self._limits = limits
        self._next = self._read()

    def some(self) -> Sequence[tuple[str, Pieces]]:
        """The next ones, each by its folder. The last one may still be read while it is put, and is
        put before further ones are asked for."""
        taken: list[tuple[str, Pieces]] = []
        held = 0
        most = self._limits
        while self._next is not None and len(taken) < most.put and held < most.held_bytes:
            folder, _ = self._next
            pieces: list[bytes] = []
            left = self._pieces_of(folder)
            for piece in left:
                pieces.append(piece)
                held += len(piece)
                if held >= most.held_bytes:
                    break
            taken.append((folder, chain(pieces, left)))
        return taken

    def _pieces_of(self, folder: str) -> Iterator[bytes]:
        while self._next is not None and self._next[0] == folder:
            piece = f"{self._next[1]}\n".encode()
            self._next = self._read()
            yield piece

    def _read(self) -> tuple[str, str] | None:
        line = next(self._lines, None)
        if line is None:
            return None
        folder, _, url = line.partition(END_OF_FOLDER)
        return folder, url


def _without_lines(listed: Iterator[str], lines: Iterator[str]) -> Iterator[str]:
    """The listed folders that no line is of; both are sorted, and folders end as in lines."""
    line = next(lines, None)
    for folder in listed:
        while line is not None and line < folder:
            line = next(lines, None)
        if line is None or not line.startswith(folder):
            yield folder.removesuffix(END_OF_FOLDER)
