"""The expired files of a log, deleted by their names and by nothing else."""

import re
from collections.abc import AsyncIterator, Sequence

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.expiry import version_of
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.storage.roots import Root

SIDECARS = "_sidecars"
_SIDECAR = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,254}\.parquet")


class ObjectExpiredLog:
    """Implements `core.ports.store.expired.ExpiredLog` in a `_delta_log` folder of a root."""

    def __init__(self, root: Root, folder: str, *, max_files: int) -> None:
        self._root = root
        self._folder = folder
        self._max_files = max_files

    async def remove(self, names: Sequence[str], *, below: int) -> None:
        for name in names:
            version = version_of(name)
            if version is None or version >= below:
                raise ValueError(
                    f"{excerpt(name)} is not deleted: expected a log file of a version below "
                    f"{below}"
                )
        await self._root.remove(self._folder, names)

    async def sidecars(self) -> AsyncIterator[Sequence[LogEntry]]:
        share = self._root.reading.of("")
        left = self._max_files
        async for batch in self._root.entries(f"{self._folder}/{SIDECARS}", share):
            # Somebody else put those of other names there.
            yield [entry for entry in batch[:left] if _SIDECAR.fullmatch(entry.name)]
            left -= len(batch)
            if left <= 0:
                return

    async def remove_sidecars(self, names: Sequence[str]) -> None:
        for name in names:
            if _SIDECAR.fullmatch(name) is None:
                raise ValueError(f"{excerpt(name)} is not deleted: expected a sidecar's name")
        await self._root.remove(f"{self._folder}/{SIDECARS}", names)
