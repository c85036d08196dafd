"""The symlink manifests of one table, for readers that know nothing of Delta. `storage` implements
it. No call of it reaches any other file."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Protocol

MANIFESTS = "_symlink_format_manifest"
"""The folder of a table that its manifests lie in."""

MANIFEST = "manifest"
"""The name of each of them, in the folder of its partition."""


class Manifests(Protocol):
    """A manifest is named by the folder of its partition, '' in a table without partitions. Calls
    raise `StorageUnavailable`."""

    async def put(self, partition: str, pieces: Iterable[bytes]) -> None:
        """Put a manifest in the place of the one before, as a whole. The pieces are taken in a
        thread, one after the other."""
        ...

    def partitions(self) -> AsyncIterator[Sequence[str]]:
        """The partitions that have a manifest, in batches."""
        ...

    async def remove(self, partitions: Sequence[str]) -> None:
        """Delete the manifests of these partitions; one that is gone is no error."""
        ...
