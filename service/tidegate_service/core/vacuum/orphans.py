"""The files in a table's folder that the index does not name: a listing and the index's rows, both
in byte order, merged a batch at a time.

A row of the index may name files beside its own path: that of a deletion vector, and, where another
writer spelled a path oddly or as an absolute one, the file that a listing knows by another name.
Those names have no order, and go into a sorted spool of their own.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from tidegate_service.core.ports.files.named_files import NamedFiles
from tidegate_service.core.ports.store.data_files import DataFile, DataFiles, Listed
from tidegate_service.core.ports.store.data_names import (
    MAX_LISTED_BYTES,
    is_usual,
    vector_files,
    within,
)
from tidegate_service.core.sharing.pools import Share
from tidegate_service.core.sharing.spools import SortedSpool
from tidegate_service.core.vacuum.spelled import DIGEST

T = TypeVar("T")

_UNUSUAL = (":", "//", "/.", "\n/", "\n.")
DESCRIBED_AT_ONCE = 1_000
TAKEN_AT_ONCE = 1_000
"""Rows: some milliseconds of a thread that all principals have in turn."""


@dataclass(slots=True)
class OtherNames:
    """What rows name beside their paths."""

    location: str
    share: Share
    spool: SortedSpool = field(init=False)
    _taking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.spool = SortedSpool(who=self.share.who)

    async def take(self, named: NamedFiles) -> None:
        """Keep the other names of these rows, if they have any."""
        paths = "\n".join(named.paths)
        unusual = paths[:1] in ("/", ".") or any(mark in paths for mark in _UNUSUAL)
        if unusual or any(named.vectors):
            async with self._taking:
                for some in portions(named):
                    await self.share.run_rested(self._take, some)

    def _take(self, named: NamedFiles) -> None:
        self.spool.add(other_names(named, self.location))


def portions(named: NamedFiles) -> Iterator[NamedFiles]:
    """The rows, `TAKEN_AT_ONCE` at a time."""
    for first in range(0, len(named.paths), TAKEN_AT_ONCE):
        end = first + TAKEN_AT_ONCE
        yield NamedFiles(paths=named.paths[first:end], vectors=named.vectors[first:end])


def other_names(named: NamedFiles, location: str) -> set[str]:
    """The paths relative to the table at `location` that rows name beside their own. Blocking.
    Of a digest nothing is known here (`core.vacuum.spelled`)."""
    names = {path for path in named.paths if not is_usual(path) and not path.startswith(DIGEST)}
    for vector in filter(None, named.vectors):
        if not vector.startswith(DIGEST):
            names.update(vector_files(vector))
    places = (within(name, location) for name in names)
    # What no listing has would only fill the disk.
    return {
        place for place in places if place is not None and len(place.encode()) <= MAX_LISTED_BYTES
    }


class _Window:
    """The named paths around where the listing has come to: one page of them, however many are
    named between two files of the listing."""

    def __init__(self, named: AsyncIterator[NamedFiles], others: OtherNames) -> None:
        self._named = named
        self._others = others
        self._page: Sequence[str] = ()
        self._ended = False

    async def without(self, paths: Sequence[str]) -> list[int]:
        """The places of those of the next paths of the listing that are not named."""
        last = paths[-1]
        unnamed = set(paths).difference(self._page)
        while not self._ended and (not self._page or self._page[-1] < last):
            await self._next()
            unnamed.difference_update(self._page)
        return [place for place, path in enumerate(paths) if path in unnamed] if unnamed else []

    async def rest(self) -> None:
        """Go through what is behind the listing's end, for its other names."""
        while not self._ended:
            await self._next()

    async def _next(self) -> None:
        page = await anext(self._named, None)
        if page is None:
            self._ended = True
            return
        await self._others.take(page)
        self._page = page.paths


async def orphans(
    files: DataFiles,
    listing: AsyncIterator[Listed],
    named: AsyncIterator[NamedFiles],
    others: OtherNames,
    *,
    modified_before_ms: int,
) -> AsyncGenerator[tuple[int, Sequence[DataFile]]]:
    """For each batch of the listing how many files it had, and those that no row names by its path
    and that are old enough. Once it ends, `others` knows all other names of the rows."""
    async with aclosing(_ahead(named)) as pages, aclosing(_ahead(listing)) as batches:
        window = _Window(pages, others)
        async for batch in batches:
            if not batch.paths:
                continue
            places = await window.without(batch.paths)
            found = await _described(files, batch, places)
            old = [each for each in found if each.modified_ms < modified_before_ms]
            yield len(batch.paths), old
        await window.rest()


async def _ahead(items: AsyncIterator[T]) -> AsyncGenerator[T]:
    """The same items, the next one fetched while one is in use."""

    async def fetch() -> T | None:
        return await anext(items, None)

    upcoming = asyncio.create_task(fetch(), name="vacuum")
    try:
        while (item := await upcoming) is not None:
            upcoming = asyncio.create_task(fetch(), name="vacuum")
            yield item
    finally:
        upcoming.cancel()
        await asyncio.wait([upcoming])
        if not upcoming.cancelled():
            # It was raised, or nobody is left to be told.
            upcoming.exception()


async def _described(files: DataFiles, batch: Listed, places: Sequence[int]) -> list[DataFile]:
    if batch.sizes:
        return [
            DataFile(
                path=batch.paths[place],
                size=batch.sizes[place],
                modified_ms=batch.modified_ms[place],
            )
            for place in places
        ]
    found: list[DataFile] = []
    for start in range(0, len(places), DESCRIBED_AT_ONCE):
        some = places[start : start + DESCRIBED_AT_ONCE]
        found += await files.described([batch.paths[place] for place in some])
    return found
