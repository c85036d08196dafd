"""What the index knows of the files that a table's versions name, for VACUUM."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate_service.core.ports.records import Glance


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFiles:
    """Files in the byte order of their paths, which are index keys; `vectors` are the ids of their
    deletion vectors ('' for none), index keys as well."""

    paths: Sequence[str]
    vectors: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StillNamed:
    """Of the paths that were asked for, those that are named. The rest is the table's head in the
    same moment, and the first version that the index holds: what was removed before it may not be
    known. `is_active` is False of one that is quarantined."""

    paths: frozenset[str]
    epoch: int
    first_version: int
    latest_version: int
    is_active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NamingTable:
    """A table that names files of another one, and its head at that moment."""

    id: str
    name: str
    epoch: int
    latest_version: int


class NamedFilesIndex(Protocol):
    """A file is named by a table where a version names it that is not older than `since`: it is
    live, or was removed by `since` or a later version. So is one whose remove says that it was made
    at `removed_ms` or later: other writers date their versions themselves, and may do so early."""

    def named_files(
        self,
        table_id: str,
        *,
        since: int,
        removed_ms: int,
        after: str = "",
        until: str | None = None,
    ) -> AsyncIterator[NamedFiles]:
        """In batches: all, or those behind the path `after`, up to and with `until`. Each batch is
        of its own moment; a file that stays named throughout is in one."""
        ...

    def lines_of(self, table_id: str, rows: NamedFiles) -> AsyncIterator[Sequence[bytes]]:
        """The log lines of the adds that rows with these keys have, in batches of some megabytes
        and one line; one for each key, and none for one that no row has any more."""
        ...

    async def still_named(
        self, table_id: str, paths: Sequence[str], *, since: int, removed_ms: int
    ) -> StillNamed | None:
        """Which of the paths, as they are decoded, are named now; None where the table is gone."""
        ...

    async def named_otherwise(
        self, table_id: str, *, after: int, most: int, prefix: str | None = None
    ) -> NamedFiles:
        """At most `most` of the files that versions behind `after` added and that have other names
        than their path as a listing has it: those with a deletion vector, and those whose path is
        absolute or may be spelled in another way. With a `prefix`, those whose path begins so, is a
        digest or may be spelled in another way, and those with a vector in a file that is anywhere.
        In no order."""
        ...

    async def paths_between(self, table_id: str, count: int) -> Sequence[str]:
        """About `count` paths that cut the live files into as many parts and one, in order."""
        ...

    def other_tables(self, *, but: str) -> AsyncGenerator[Sequence[Glance]]:
        """All tables but that one, in pages, each of its own moment."""
        ...

    async def tables_naming(self, prefix: str, *, but: str) -> Sequence[NamingTable]:
        """Other tables than `but` that name a file whose path begins so."""
        ...
