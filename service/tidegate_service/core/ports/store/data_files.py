"""The data files of one table that VACUUM may list and delete. `storage` implements it.

It is a port of its own beside `Log`, so that nothing that writes or reads a log can delete. No
name of a log or of a hidden folder passes it, in either direction.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Files by their paths relative to the table, in the byte order of these. `sizes` and
    `modified_ms` are empty where the store does not tell them in a listing."""

    paths: Sequence[str]
    sizes: Sequence[int] = ()
    modified_ms: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One file; `modified_ms` by the store's clock."""

    path: str
    size: int
    modified_ms: int


class DataFiles(Protocol):
    """What lies in one table's folder, but for what is hidden (`data_names.is_hidden`)."""

    async def ranges_at_once(self) -> int:
        """In so many parts a listing is read at a time; 1 where parts would each cost a whole."""
        ...

    def listed(self, *, after: str = "", until: str | None = None) -> AsyncIterator[Listed]:
        """All files, or those behind the path `after` up to and with `until`, in batches. Raises
        `StorageUnavailable`, and `Refused` where the location is no folder."""
        ...

    async def described(self, paths: Sequence[str]) -> Sequence[DataFile]:
        """Size and time of the files at any paths below the folder, hidden ones included; none of
        those that are missing, or can be at no such path. No path has an empty segment, `.` or
        `..`, or an ASCII control character. A whole folder or bucket that is missing is no error.
        Raises `StorageUnavailable`."""
        ...

    async def delete(self, paths: Sequence[str]) -> None:
        """Delete these files; one that is gone is no error. Where it raises `StorageUnavailable`,
        some of them may be deleted. Raises `ValueError` for a hidden path, and deletes nothing."""
        ...

    async def remove_empty_folders(self, *, before_ms: int) -> int:
        """Remove the folders below the table that hold nothing and were not changed since
        `before_ms`, hidden ones excepted; how many. Object stores have none."""
        ...
