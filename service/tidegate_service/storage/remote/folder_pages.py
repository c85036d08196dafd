"""What lies in a folder of a store, and not in one below it, which its listings have, too."""

from collections.abc import AsyncIterator, Sequence

import obstore
from obstore.store import ObjectStore

from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.storage import UnreadableFile
from tidegate_service.storage.limits import StorageLimits

_LAST = "\U0010ffff"
"""No name in a folder is behind it."""


class FolderPages:
    """The pages of one listing, in the byte order of the names, behind the name `after`.

    A folder below is passed over, once a page is all in it: that of the staged commits may have
    very many. One whose name begins as a log file's does is not, for stores disagree on which of
    the two comes first. What is read for nothing so is bounded as the files are."""

    def __init__(
        self, store: ObjectStore, prefix: str, *, after: str, limits: StorageLimits
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._last = after
        self._limits = limits
        self._below = 0
        self._pages = self._behind(after)

    async def next(self) -> Sequence[LogEntry] | None:
        """The next page, which may be empty; None behind the last one. Raises `StorageUnavailable`
        for names that come in another order, `UnreadableFile`, and as the store does."""
        page = await anext(self._pages, None)
        if page is None:
            return None
        entries, folder = list[LogEntry](), ""
        for found in page:
            name = found["path"].removeprefix(f"{self._prefix}/")
            if "/" in name:
                folder = name.partition("/")[0]
                continue
            if name <= self._last:
                # By the bytes of UTF-8, which order as the characters do.
                raise StorageUnavailable(
                    "the object store could not list: its names do not come in order"
                )
            self._last = name
            entry = LogEntry(name=name, size=found["size"], modified_ms=modified(found))
            entries.append(entry)
        if len(entries) < len(page):
            self._below += len(page) - len(entries)
            if self._below > self._limits.files:
                raise UnreadableFile(
                    f"more than {self._limits.files} files lie in folders below it, which are as "
                    "many as are passed over (max_log_files)"
                )
            is_within = not entries and page[0]["path"].startswith(f"{self._prefix}/{folder}/")
            if is_within and not folder[:1].isdigit():
                self._pages = self._behind(f"{folder}/{_LAST}")
        return entries

    def _behind(self, after: str) -> AsyncIterator[Sequence["obstore.ObjectMeta"]]:
        offset = f"{self._prefix}/{after}" if after else None
        return obstore.list(
            self._store, self._prefix, offset=offset, chunk_size=self._limits.listed
        )


def modified(found: "obstore.ObjectMeta") -> int:
    """The modification time of an object, in ms, in whole seconds: some stores list fractions of
    a second, which the headers of an answer lack, and a version has the same date either way."""
    return int(found["last_modified"].timestamp()) * 1000
