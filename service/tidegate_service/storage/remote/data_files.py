"""The data files of a table in an object store."""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from itertools import islice

import obstore
import pyarrow as pa
import pyarrow.compute as pc
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from tidegate_protocol.base.text import excerpt
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.data_files import DataFile, Listed
from tidegate_service.core.sharing.pools import Share
from tidegate_service.core.sharing.spools import SortedSpool
from tidegate_service.storage.limits import StorageLimits
from tidegate_service.storage.remote.failures import Failure, failure

RANGES = 8
"""Parts of a listing that are read at a time: a page of a thousand names takes a store tens of
milliseconds, and the next one is asked for by the last name of the one before."""
HEADS = 32
"""Files that are asked for at a time."""
MAX_KEY_BYTES = 1024
"""No object of S3, GCS or Azure has a longer key."""


class RemoteDataFiles:
    """Implements `core.ports.store.data_files.DataFiles` for the table at a key. `hides` says which
    relative paths are no data files, `raised` makes of a failure what is raised, and `is_ordered`
    whether the store lists keys in the order of their bytes. Each request ends within
    `limits.call_s`."""

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        *,
        hides: Callable[[str], bool],
        raised: Callable[[str, Failure], StorageUnavailable],
        is_ordered: Callable[[], Awaitable[bool]],
        share: Share,
        limits: StorageLimits,
    ) -> None:
        self._store = store
        self._key = key
        self._hides = hides
        self._raised = raised
        self._is_ordered = is_ordered
        self._share = share
        self._limits = limits

    async def ranges_at_once(self) -> int:
        return RANGES if await self._is_ordered() else 1

    async def listed(self, *, after: str = "", until: str | None = None) -> AsyncIterator[Listed]:
        ordered = await self._is_ordered()
        listing = self._in_order(after) if ordered else self._sorted()
        async with aclosing(listing) as pages:
            async for page in pages:
                first = bisect_right(page.paths, after)
                end = len(page.paths) if until is None else bisect_right(page.paths, until)
                kept = [at for at in range(first, end) if not self._hides(page.paths[at])]
                if len(kept) == len(page.paths):
                    yield page
                elif kept:
                    yield Listed(
                        paths=[page.paths[at] for at in kept],
                        sizes=[page.sizes[at] for at in kept],
                        modified_ms=[page.modified_ms[at] for at in kept],
                    )
                if end < len(page.paths):
                    return

    async def _pages(self, after: str) -> AsyncGenerator[Listed]:
        """What is in the folder, in the order of the store."""
        prefix = f"{self._key}/"
        offset = prefix + after if after else None
        # As dicts they would take half as much CPU time again.
        pages = obstore.list(
            self._store,
            self._key,
            offset=offset,
            chunk_size=self._limits.listed,
            return_arrow=True,
        )
        while True:
            try:
                async with asyncio.timeout(self._limits.call_s):
                    page = await anext(pages, None)
            except (BaseError, OSError) as error:
                raise self._failed("list", error) from None
            if page is None:
                return
            yield _columns(pa.record_batch(page), prefix)

    async def _in_order(self, after: str) -> AsyncGenerator[Listed]:
        """The pages, of which each path comes behind the one before. Raises `StorageUnavailable`
        for any that does not: whoever merges the pages with other names would pass over some."""
        # Not `after`, which a store may list, too.
        last = ""
        async with aclosing(self._pages(after)) as pages:
            async for page in pages:
                for path in page.paths:
                    if path <= last and last:
                        raise StorageUnavailable(
                            f"the object store could not list: {excerpt(path)} does not come in "
                            "the order of names; if the key of an object there ends with a slash, "
                            "delete that object"
                        )
                    last = path
                yield page

    async def _sorted(self) -> AsyncGenerator[Listed]:
        """All of it, sorted on the disk: for a store that lists folder by folder."""
        spool = SortedSpool(who=self._share.who)
        try:
            async with aclosing(self._pages("")) as pages:
                async for page in pages:
                    entries = zip(page.paths, page.sizes, page.modified_ms, strict=True)
                    # What is behind a zero is compared last, and no path has one.
                    lines = ["\0".join(map(str, entry)) for entry in entries]
                    await self._share.run(spool.add, lines)
            lines_in_order = spool.lines()
            while some := await self._share.run(list, islice(lines_in_order, self._limits.listed)):
                paths, sizes, times = zip(*(line.split("\0") for line in some), strict=True)
                yield Listed(
                    paths=paths,
                    sizes=[int(size) for size in sizes],
                    modified_ms=[int(time) for time in times],
                )
        finally:
            spool.close()

    async def described(self, paths: Sequence[str]) -> Sequence[DataFile]:
        found: list[DataFile] = []
        left = iter(paths)

        async def some() -> None:
            for path in left:
                file = await self._head(path)
                if file is not None:
                    found.append(file)

        at_once = min(HEADS, len(paths))
        asking = [asyncio.create_task(some(), name="heads") for _ in range(at_once)]
        try:
            await asyncio.gather(*asking)
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        return found

    async def _head(self, path: str) -> DataFile | None:
        key = f"{self._key}/{path}"
        if len(key.encode()) > MAX_KEY_BYTES:
            return None
        try:
            async with asyncio.timeout(self._limits.call_s):
                entry = await obstore.head_async(self._store, key)
        except FileNotFoundError:
            return None
        except (BaseError, OSError) as error:
            raise self._failed("read", error) from None
        modified_ms = int(entry["last_modified"].timestamp() * 1000)
        return DataFile(path=path, size=entry["size"], modified_ms=modified_ms)

    async def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            if self._hides(path):
                raise ValueError(f"{path!r} is no data file")
        keys = [f"{self._key}/{path}" for path in paths]
        try:
            # S3 takes them together, and says nothing of those that are gone.
            await self._delete(keys)
        except FileNotFoundError:
            for key in keys:
                try:
                    await self._delete([key])
                except FileNotFoundError:
                    continue

    async def remove_empty_folders(self, *, before_ms: int) -> int:
        """None: a key needs no folder."""
        del before_ms
        return 0

    async def _delete(self, keys: list[str]) -> None:
        try:
            async with asyncio.timeout(self._limits.call_s):
                await obstore.delete_async(self._store, keys)
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            raise self._failed("delete", error) from None

    def _failed(self, verb: str, error: Exception) -> StorageUnavailable:
        # TimeoutError is an OSError.
        late = Failure(status=None, code=None, kinds=("Timeout",))
        return self._raised(verb, late if isinstance(error, TimeoutError) else failure(error))


def _columns(page: pa.RecordBatch, prefix: str) -> Listed:
    """The objects of a page by their paths behind the prefix. Without those of no bytes, as the
    marks of folders are: the key of such a mark ends with a slash, which the client takes away, so
    that the path is another's or nobody's, and comes out of order."""
    page = page.filter(pc.greater(page.column("size"), 0))
    paths = pc.utf8_slice_codeunits(page.column("path"), start=len(prefix))
    modified = page.column("last_modified").cast(pa.timestamp("ms", tz="UTC"), safe=False)
    return Listed(
        paths=paths.to_pylist(),
        sizes=page.column("size").to_pylist(),
        modified_ms=modified.cast(pa.int64()).to_pylist(),
    )
