"""What is asked of the log of a catalog-managed table, to see whether it is the table's own
(`core.catalog_managed.own_log`)."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

from tidegate_protocol.log.actions import CommitInfo, Metadata
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.segment import (
    BrokenLog,
    Checkpoint,
    LogSegment,
    choose_segment,
    versions_left,
)
from tidegate_protocol.replay.commits import table_id
from tidegate_service.core.catalog_managed.ratified_log import marked
from tidegate_service.core.log.catching_up.sight import Between
from tidegate_service.core.log.files.checkpoint_stream import snapshot_actions
from tidegate_service.core.log.files.listing import listed
from tidegate_service.core.log.loading.bases import MOST_BASES
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.core.sharing import offload


@dataclass(frozen=True, slots=True)
class Ends:
    """What are the files of the last published version and of the version after it? Where nothing
    is published, the file of version 0 is both."""

    published: int

    def at(self, table: TableHead) -> "Ends":
        return Ends(table.published_version)

    async def ask(
        self, log: Log, between: Between | None
    ) -> tuple[bytes | LogFile | None, bytes | LogFile | None]:
        if self.published < 0:
            first = await log.read(0)
            return first, first
        files = await asyncio.gather(
            log.read(self.published), log.read(self.published + 1), return_exceptions=True
        )
        for file in files:
            if isinstance(file, BaseException):
                raise file
        last, following = (file for file in files if not isinstance(file, BaseException))
        return last, following


@dataclass(frozen=True, slots=True)
class Hole:
    """Is the commit behind a version missing before a later one, or before a complete checkpoint? A
    clean-up that was cut short may leave a log like that: an object store deletes several files at
    a time."""

    version: int

    @classmethod
    def behind(cls, table: TableHead) -> "Hole":
        """Behind the last published version, or behind version 0."""
        return cls(max(table.published_version, 0))

    def at(self, table: TableHead) -> "Hole":
        return Hole.behind(table)

    async def ask(self, log: Log, between: Between | None) -> bool:
        """Raises `BrokenLog` where there are more files than are read."""
        files = await listed(log, behind=self.version, between=between)
        commits, base = await offload.run(len(files), versions_left, files)
        following = self.version + 1
        return following not in commits and max((*commits, base)) >= following


@dataclass(frozen=True, slots=True)
class Versions:
    """Which versions have a commit, and which has the newest complete checkpoint (-1 for none)?"""

    def at(self, table: TableHead) -> "Versions":
        return self

    async def ask(self, log: Log, between: Between | None) -> tuple[Collection[int], int]:
        """Raises `BrokenLog` where there are more files than are read."""
        files = await listed(log, between=between)
        return await offload.run(len(files), versions_left, files)


@dataclass(frozen=True, slots=True)
class CommitsBehind:
    """Which versions behind this one have a commit? In order."""

    version: int

    def at(self, table: TableHead) -> "CommitsBehind":
        return self

    async def ask(self, log: Log, between: Between | None) -> tuple[int, ...]:
        """Raises `BrokenLog` where there are more files than are read."""
        files = await listed(log, behind=self.version, between=between)
        commits, _ = await offload.run(len(files), versions_left, files)
        return tuple(sorted(one for one in commits if one > self.version))


@dataclass(frozen=True, slots=True)
class Commit:
    """What is the file of this version?"""

    version: int

    def at(self, table: TableHead) -> "Commit":
        return self

    async def ask(self, log: Log, between: Between | None) -> bytes | LogFile | None:
        return await log.read(self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstCheckpoint:
    """The checkpoint that a log begins with, and the commit of its version: the SHA-256 of its
    file, None where that is gone, and its commitInfo, None where this service did not write it.
    `ids` are those of the metadata of this checkpoint and of the log's newest one. `older` are the
    versions before it whose files the log still has."""

    version: int
    older: tuple[int, ...]
    ids: frozenset[str]
    sha256: str | None
    info: CommitInfo | None

    @property
    def is_marked(self) -> bool:
        """Whether this service wrote the commit for the table of these checkpoints."""
        return self.info is not None and self.ids == {table_id(self.info)}


@dataclass(frozen=True, slots=True)
class Beginning:
    """Which checkpoint does the log begin with? None where it begins with none of `published` or a
    later version. Checkpoints of versions before `least` are taken as not there.

    Of checkpoints behind `published`, the oldest one counts that can be read and whose commit is
    marked, if it is one of the first `MOST_BASES`; without such a one, the oldest that can be read.
    """

    location: str
    published: int
    least: int = 0

    def at(self, table: TableHead) -> "Beginning":
        return Beginning(table.location, table.published_version, self.least)

    async def ask(self, log: Log, between: Between | None) -> FirstCheckpoint | None:
        """Raises `UnreadableFile` where no checkpoint can be read."""
        try:
            files = await listed(log, between=between)
            segment = await offload.run(
                len(files), partial(choose_segment, files, least=self.least)
            )
        except BrokenLog:
            return None
        if segment.checkpoint is None or segment.checkpoint.version < self.published:
            return None
        found, unread = None, None
        for _ in range(MOST_BASES):
            try:
                one = await self._first(log, segment)
            except UnreadableFile as error:
                unread = unread or error
            else:
                if one.is_marked or one.version == self.published:
                    return one
                found = found or one
            if segment.newest is None:
                break
            later = partial(choose_segment, files, least=segment.replayed.start)
            segment = await offload.run(len(files), later)
        if found is None and unread is not None:
            raise unread
        return found

    async def _first(self, log: Log, segment: LogSegment) -> FirstCheckpoint:
        first, newest = segment.checkpoint, segment.newest
        assert first is not None, "what comes before the newest checkpoint has one"
        ids = {await self._id(log, one) for one in (first, newest) if one is not None}
        content = await log.read(first.version)
        return FirstCheckpoint(
            version=first.version,
            older=segment.older,
            ids=frozenset(ids),
            sha256=None if content is None else await offload.sha256_of(content),
            info=None if content is None else await marked(content),
        )

    async def _id(self, log: Log, checkpoint: Checkpoint) -> str:
        async for batch in snapshot_actions(log, checkpoint, location=self.location):
            for action in batch:
                if isinstance(action, Metadata):
                    return action.id
        raise UnreadableFile("it has no metadata")


async def is_begun(log: Log, between: Between | None = None) -> bool:
    """Whether a commit or a complete checkpoint lies in the log. `between` is as in `listed`."""
    try:
        commits, base = await Versions().ask(log, between)
    except BrokenLog:
        return True
    return bool(commits) or base >= 0
