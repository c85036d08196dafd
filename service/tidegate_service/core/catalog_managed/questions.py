"""What is asked of the log of a catalog-managed table, to see whether it is the table's own
(`core.catalog_managed.own_log`)."""

import asyncio
from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.file_names import MAX_VERSION
from tidegate_protocol.log.segment import (
    BrokenLog,
    Checkpoint,
    LogSegment,
    choose_segment,
    versions_left,
)
from tidegate_service.core.catalog_managed.origins import (
    LOOKED_AT,
    Origin,
    StagedCommits,
    origin_of,
)
from tidegate_service.core.log.catching_up.sight import Between
from tidegate_service.core.log.catching_up.versions import contents
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
class Commit:
    """What is the file of this version?"""

    version: int

    def at(self, table: TableHead) -> "Commit":
        return self

    async def ask(self, log: Log, between: Between | None) -> bytes | LogFile | None:
        return await log.read(self.version)


@dataclass(frozen=True, slots=True)
class OriginOf:
    """What shows that this service ratified the file of this version?"""

    version: int

    def at(self, table: TableHead) -> "OriginOf":
        return self

    async def ask(self, log: Log, between: Between | None) -> Origin | None:
        content = await log.read(self.version)
        if content is None:
            return None
        return await origin_of(self.version, content, StagedCommits(log))


@dataclass(frozen=True, slots=True)
class RatifiedFile:
    """A commit of the log, and what shows that this service ratified it."""

    version: int
    content: bytes | LogFile
    origin: Origin


@dataclass(frozen=True, slots=True)
class LastRatified:
    """Which is the last version behind `version`, and before `before`, that has an origin? None
    where none of the last `LOOKED_AT` files there has one, and not the first."""

    version: int
    before: int = MAX_VERSION

    def at(self, table: TableHead) -> "LastRatified":
        return self

    async def ask(self, log: Log, between: Between | None) -> RatifiedFile | None:
        """Raises `BrokenLog` where there are more files than are read."""
        first = self.version if self.version >= 0 else None
        files, staged = await listed(log, behind=first, between=between), StagedCommits(log)
        commits, _ = await offload.run(len(files), versions_left, files)
        behind = sorted((one for one in commits if self.version < one < self.before), reverse=True)
        some = [*behind[:LOOKED_AT], *behind[LOOKED_AT:][-1:]]
        async with aclosing(contents(log, some)) as found:
            async for version, content in found:
                if between is not None:
                    await between()
                if content is None:
                    continue
                origin = await origin_of(version, content, staged)
                if origin is not None:
                    return RatifiedFile(version, content, origin)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstCheckpoint:
    """The checkpoint that a log begins with, and the commit of its version: the SHA-256 of its
    file, None where that is gone, and its origin, None where this service did not ratify it. `ids`
    are those of the metadata of this checkpoint and of the log's newest one. `older` are the
    versions before it whose files the log still has."""

    version: int
    older: tuple[int, ...]
    ids: frozenset[str]
    sha256: str | None
    origin: Origin | None

    @property
    def is_ratified(self) -> bool:
        """Whether this service ratified the commit for the table of these checkpoints."""
        return self.origin is not None and len(self.ids) == 1 and self.origin.is_of(*self.ids)


@dataclass(frozen=True, slots=True)
class Beginning:
    """Which checkpoint does the log begin with? None where it begins with none of `published` or a
    later version. Checkpoints of versions before `least` are taken as not there.

    Of checkpoints behind `published`, the oldest one counts that can be read and whose commit this
    service ratified, if it is one of the first `MOST_BASES`; without such a one, the oldest that
    can be read.
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
                if one.is_ratified or one.version == self.published:
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
        found = [one for one in (first, newest) if one is not None]
        ids = {await id_in(log, one, location=self.location) for one in found}
        content, staged = await log.read(first.version), StagedCommits(log)
        return FirstCheckpoint(
            version=first.version,
            older=segment.older,
            ids=frozenset(ids),
            sha256=None if content is None else await offload.sha256_of(content),
            origin=None if content is None else await origin_of(first.version, content, staged),
        )


async def id_in(log: Log, checkpoint: Checkpoint, *, location: str) -> str:
    """The id of the metadata that a checkpoint has. Raises `UnreadableFile`."""
    async for batch in snapshot_actions(log, checkpoint, location=location):
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
