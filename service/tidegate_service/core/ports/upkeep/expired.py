"""What leaves the index once a table's log was cleaned up.

Each call is a transaction of its own, short enough for commits to wait behind it, and may be made
twice. Calls raise `IndexUnavailable`.
"""

from dataclasses import dataclass
from typing import Protocol

RowKey = tuple[str, str, int]
"""Of a row of a file, in the order that they are gone through: path, id of the deletion vector, and
the version that removed the file, beyond all versions while none has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The first version that the index holds after a batch, and how many that took away."""

    first: int
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where the next rows begin, None where none is left to be looked at, and how many went."""

    after: RowKey | None
    dropped: int


class ExpiredIndex(Protocol):
    async def drop_versions(
        self, table_id: str, kind: str, *, below: int, epoch: int
    ) -> Versions | None:
        """Move the index's first version up, by some hundreds at most and no further than `below`
        and the last published version, and drop what is of the versions before. Transaction ids
        stay, with what they landed as, and so do the ids that the metadata had. None, with nothing
        done, where the table is gone, is quarantined, or has another epoch.

        The first batch of an epoch is noted as upkeep of this kind: a version of 0 or more."""
        ...

    async def drop_files(
        self, table_id: str, *, removed_before_ms: int, after: RowKey | None
    ) -> Files:
        """Look at the next rows of files, and drop those of files that were removed before the
        index's first version, unless their removes say that it was at `removed_before_ms` or
        later."""
        ...

    async def drop_tombstones(self, table_id: str, *, removed_before_ms: int) -> bool:
        """Drop some of the older tombstones that came from the checkpoint which the index was made
        from. Whether there may be more."""
        ...
