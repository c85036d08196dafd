"""Which files of a catalog-managed table's log this service ratified.

A commit of a writer of ours says so itself: its commitInfo has two marks, a transaction id and the
digest of what was proposed under that id. A commit of a stock client has no mark, since its bytes
become the version unchanged. The bytes are in a file of `_staged_commits` whose name begins with
the version, and only the service puts them into the log. Nobody may delete such a file.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import CommitInfo
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.file_names import commit_name, staged_version
from tidegate_protocol.log.segment import BrokenLog
from tidegate_protocol.proposal.staged import StagedCommit
from tidegate_protocol.replay.commits import UnreadableCommit, body_digest, commit_info, table_id
from tidegate_protocol.replay.foreign import parse_foreign_commit
from tidegate_protocol.replay.staged import read_commit
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import CommitRecord
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.core.sharing import offload

NO_ORIGIN = "this service did not write it as that version, and no staged commit has its bytes"
LOOKED_AT = 100
"""So many of a log's last files are looked at for an origin. Versions are published in order, so
whatever lies before a file that has one was ratified, too."""
LISTED_VERSIONS = 1_000
"""The staged commits of so many versions are listed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What shows that this service ratified a version: the marks in its commitInfo, or a staged
    commit with its bytes."""

    info: CommitInfo
    is_staged: bool

    def is_of(self, metadata_id: str | None) -> bool:
        """Whether a version in the log of the table with this `metaData.id` is the table's. A
        staged commit lies in the table's own log."""
        return self.is_staged or table_id(self.info) == metadata_id


def copy_of(version: int) -> str:
    """How a human vouches for a version without an origin."""
    return (
        f"copy _delta_log/{commit_name(version)} to "
        f"_delta_log/_staged_commits/{version:020d}.<any UUID>.json"
    )


def way_out(version: int) -> str:
    """What is to be done about the last version of a log, where it has no origin."""
    return (
        "where a stock client committed it before a restore or a failover of the database, "
        f"{copy_of(version)}; else another writer put it there: move it out of the log"
    )


class StagedCommits:
    """The staged commits of one log, for a caller who goes from version to version."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._listed = range(0)
        self._entries: dict[int, list[LogEntry]] = {}

    async def have(self, version: int, content: bytes | LogFile) -> bool:
        """Whether a file that was staged as this version has these bytes. Raises `BrokenLog` where
        there are more files than are read."""
        if version not in self._listed:
            first = version - version % LISTED_VERSIONS
            await self._list(range(first, first + LISTED_VERSIONS))
        for entry in self._entries.get(version, ()):
            if entry.size == len(content):
                staged = await self.log.read_staged(entry.name, most_bytes=len(content))
                if staged is not None and await offload.is_same(staged, content):
                    return True
        return False

    async def _list(self, versions: range) -> None:
        found = defaultdict[int, list[LogEntry]](list)
        try:
            async for batch in self.log.staged(versions):
                for entry in batch:
                    version = staged_version(entry.name)
                    if version is not None:
                        found[version].append(entry)
        except UnreadableFile as error:
            raise BrokenLog(f"_staged_commits: {error}") from None
        self._listed, self._entries = versions, found


async def origin_of(
    version: int, content: bytes | LogFile, staged: StagedCommits | None = None
) -> Origin | None:
    """What shows that this service ratified the log's file of a version; None where nothing does.
    Without `staged`, the file alone is looked at. Raises `BrokenLog` as `StagedCommits` does."""
    parse = partial(parse_foreign_commit, content, catalog_managed=True)
    try:
        info = commit_info(await offload.run(offload.weight_of_log(content), parse))
    except UnreadableCommit:
        return None
    if info is None:
        return None
    if _is_marked(info):
        return Origin(info=info, is_staged=False)
    if staged is None or not await staged.have(version, content):
        return None
    read = partial(read_commit, commit_name(version), version, content)
    commit = await offload.run(offload.weight_of_log(content), read)
    return Origin(info=info, is_staged=True) if isinstance(commit, StagedCommit) else None


async def ratified(section: CommitSection, version: int, staged: StagedCommits) -> Origin | None:
    """What shows that this service ratified an adopted version. None where nothing does, for a copy
    of another version (an id lands once), and for a version of which only a checkpoint is left.
    Raises `Refused` (`broken-log`) where there are more staged commits than are read."""
    sha256, _ = await section.kept(version)
    found = None if sha256 is None else await section.winners(version - 1, version)
    info = found[0].commit_info if found else None
    if info is None:
        return None
    origin = Origin(info=info, is_staged=False) if _is_marked(info) else None
    if origin is None:
        await section.take_time()
        content = await staged.log.read(version)
        try:
            origin = None if content is None else await origin_of(version, content, staged)
        except BrokenLog as error:
            raise Refused(str(error), code=Code.BROKEN_LOG) from None
    if info.txn_id is not None:
        known = await section.transaction(info.txn_id)
        if not isinstance(known, CommitRecord) or known.version != version:
            return None
    return origin


async def next_step(section: CommitSection, version: int, staged: StagedCommits) -> str:
    """What is to be done about an adopted version that has no origin."""
    for later in range(section.table.latest_version, version, -1)[:LOOKED_AT]:
        if await ratified(section, later, staged) is not None:
            return f"version {later}, which this service published, lies behind: {copy_of(version)}"
    return way_out(version)


def _is_marked(info: CommitInfo) -> bool:
    return info.txn_id is not None and body_digest(info) is not None
