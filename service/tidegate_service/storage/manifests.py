"""The symlink manifests of a table, under their own folder of it and nowhere else."""

from collections.abc import AsyncIterator, Iterable, Sequence

from tidegate_service.core.ports.store.manifests import MANIFEST, MANIFESTS
from tidegate_service.core.sharing.pools import Share
from tidegate_service.storage.roots import Root


class ObjectManifests:
    """Implements `core.ports.store.manifests.Manifests` for the table in this folder of a root.
    Each is written as a whole by a thread of `writing`."""

    def __init__(self, root: Root, table: str, writing: Share) -> None:
        self._root = root
        self._folder = f"{table}/{MANIFESTS}"
        self._writing = writing
        # None is hidden: columns of partitions may begin with `_`, and so do their folders then.
        self._files = root.data_files(self._folder, lambda path: False, root.reading.of(""))

    async def put(self, partition: str, pieces: Iterable[bytes]) -> None:
        path = f"{self._folder}/{_file(partition)}"
        await self._writing.run(self._root.replace, path, pieces)

    async def partitions(self) -> AsyncIterator[Sequence[str]]:
        async for listed in self._files.listed():
            yield [path.rpartition("/")[0] for path in listed.paths if _is_one(path)]

    async def remove(self, partitions: Sequence[str]) -> None:
        await self._files.delete([_file(partition) for partition in partitions])


def _file(partition: str) -> str:
    return f"{partition}/{MANIFEST}" if partition else MANIFEST


def _is_one(path: str) -> bool:
    return path.rpartition("/")[2] == MANIFEST
