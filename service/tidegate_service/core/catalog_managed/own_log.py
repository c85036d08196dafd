"""Whether the log at a catalog-managed table's place is the table's own.

A database that was set back brings back rows of tables that are gone: a table was forgotten since,
its folder deleted, and another table made at the place. A store can be set back, too, and lose the
end of a log. A version that is then put into the log is read by nobody, or becomes part of another
table's log.

The log is the table's where it holds the last published version, byte for byte. If that file was
cleaned up, the newest checkpoint decides: it has to be of that version, or of a later one that the
index has, and its metadata has to have the id that the table had at that version. Where nothing was
published, the log is another table's if its version 0 is, or if version 0 is gone and a checkpoint
is there.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass

from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.segment import BrokenLog, choose_segment, versions_left
from tidegate_protocol.replay.commits import UnreadableCommit, parse_commit
from tidegate_service.core.instance.log_looks import TABLES
from tidegate_service.core.log.catching_up.sight import Between, Sight
from tidegate_service.core.log.checkpoint_stream import snapshot_actions
from tidegate_service.core.log.listing import listed
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.core.sharing import offload

NOT_OWN = (
    "the log was replaced or cut off, or another table was made at this place since; move nothing "
    'there, and see docs/maintenance.md, "A log that is not the table\'s"'
)


@dataclass(frozen=True, slots=True)
class Ends:
    """What are the files of the last published version and of the version after it? Where nothing
    is published, the file of version 0 is both."""

    published: int

    def at(self, table: TableRecord) -> "Ends":
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
class Versions:
    """Which versions have a commit, and which has the newest complete checkpoint (-1 for none)?"""

    def at(self, table: TableRecord) -> "Versions":
        return self

    async def ask(self, log: Log, between: Between | None) -> tuple[Collection[int], int]:
        """Raises `BrokenLog` where there are more files than are read."""
        files = await listed(log, between=between)
        return await offload.run(len(files), versions_left, files)


@dataclass(frozen=True, slots=True)
class NewestCheckpoint:
    """Of which version is the checkpoint that the log begins with, and which id has its metadata?
    None where there is no checkpoint of `least` or a later version."""

    location: str
    least: int

    def at(self, table: TableRecord) -> "NewestCheckpoint":
        return NewestCheckpoint(table.location, table.published_version)

    async def ask(self, log: Log, between: Between | None) -> tuple[int, str] | None:
        """Raises `UnreadableFile` for a checkpoint that cannot be read."""
        try:
            files = await listed(log, between=between)
            segment = await offload.run(len(files), choose_segment, files)
        except BrokenLog:
            return None
        newest = segment.newest or segment.checkpoint
        if newest is None or newest.version < self.least:
            return None
        async for batch in snapshot_actions(log, newest, location=self.location):
            for action in batch:
                if isinstance(action, Metadata):
                    return newest.version, action.id
        raise UnreadableFile("it has no metadata")


async def not_own(section: CommitSection, sight: Sight, last: bytes | LogFile | None) -> str | None:
    """Why the log is not the section's table's; None where it is, or may yet become it. `last` is
    the file that the log has of the last published version, or of version 0 where none is
    published. Raises `StorageUnavailable` and `Behind`."""
    version = section.table.published_version
    if version < 0:
        why = await _begun_by_another(section, sight, last)
        return None if why is None else f"nothing of the table was published, and {why}: {NOT_OWN}"
    if last is None:
        why = await _not_cleaned_up(section, sight)
        return None if why is None else f"version {version} was published, and {why}: {NOT_OWN}"
    sha256, _ = await section.kept(version)
    if sha256 in (None, await offload.sha256_of(last)):
        return None
    return f"version {version} in the log is not the one that was published: {NOT_OWN}"


async def is_begun(log: Log) -> bool:
    """Whether a commit or a complete checkpoint lies in the log."""
    try:
        commits, base = await Versions().ask(log, None)
    except BrokenLog:
        return True
    return bool(commits) or base >= 0


async def _begun_by_another(
    section: CommitSection, sight: Sight, first: bytes | LogFile | None
) -> str | None:
    """Why the log was begun by another table. `first` is its file of version 0. A file that is not
    any table's first version is taken for a mistake, not for another table."""
    if first is None:
        try:
            _, base = await sight.see(section, Versions())
        except BrokenLog as error:
            return f"its log cannot be read: {error}"
        return None if base < 0 else f"the log has a checkpoint of version {base}"
    try:
        actions = await offload.run(offload.weight_of_log(first), parse_commit, first)
    except UnreadableCommit:
        return None
    found = next((action.id for action in actions if isinstance(action, Metadata)), None)
    own = await section.state_at(0)
    if found is None or (own is not None and own.metadata is not None and own.metadata.id == found):
        return None
    return "version 0 in the log is another table's"


async def _not_cleaned_up(section: CommitSection, sight: Sight) -> str | None:
    """Why no checkpoint stands in for the last published version, whose file is gone; None where
    one does."""
    table = section.table
    asked = NewestCheckpoint(table.location, table.published_version)
    try:
        newest = await sight.see(section, asked)
    except UnreadableFile as error:
        return f"the log's checkpoint cannot be read: {error}"
    if newest is None:
        return "the log has neither its file nor a checkpoint that reaches it"
    version, found = newest
    if version > table.latest_version:
        return (
            f"the log begins with a checkpoint of version {version}, which the index does not have"
        )
    at = await section.state_at(version)
    own = at is not None and at.metadata is not None and at.metadata.id
    return None if found == own else "the log's checkpoint is another table's"


class OwnLogs:
    """The tables whose logs one publisher has seen to be their own: for each, the database and the
    version that it was published to. A table that goes back behind that version is looked at
    again."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def has(self, table_id: str, through: int, *, database: str) -> bool:
        """Whether the log was seen to be the table's, at `through` or an earlier version."""
        seen = self._seen.get(table_id)
        return seen is not None and seen[0] == database and seen[1] <= through

    def note(self, table_id: str, through: int, *, database: str) -> None:
        self._seen[table_id] = (database, through)
        self._seen.move_to_end(table_id)
        while len(self._seen) > TABLES:
            self._seen.popitem(last=False)
