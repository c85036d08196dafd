"""Places that were used before: late writes of a table that was forgotten there.

A write of the old table may be on its way when its folder is deleted and another table is made
there: `<version>.json`, for the version after the old head or for a few beyond. In the new log, no
file has that name yet, so nothing refuses the write. So on a remote store a new table has to wait
for as long as a signed request stays valid. A write that arrives later is found by a check: at the
end of a creation, every ten seconds before a commit, and at the latest by the commit that meets the
file. Every commit of this service says which table it is for, so that it becomes part of no other
table.

An instance that was stopped before its write is not kept out where it goes on after that time.
"""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import CommitInfo, Metadata
from tidegate_protocol.replay.commits import UnreadableCommit, table_id
from tidegate_service.core.errors import TableExists
from tidegate_service.core.log.catching_up.sight import Between, Sight
from tidegate_service.core.log.catching_up.versions import READ_AHEAD, contents
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import ForgottenTable, TableHead
from tidegate_service.core.ports.store.storage import Log

SIGNED_FOR_MS = 15 * 60 * 1000
"""How long S3, and Azure with a shared key, accept a request after it was signed."""
MOST_AWAITED = READ_AHEAD
"""How many versions, where late writes may lie, are read for one section."""
MOST_LOOKED_AT = 1_000
"""Late writes are looked for of so many tables that were at a place, those forgotten last."""
_LOCAL = "file://"


async def check_none_under_way(section: CommitSection) -> None:
    """Raise `TableExists` where a request for a table that was at this place before may still be
    under way in the store."""
    if section.table.location.startswith(_LOCAL):
        return
    for old in await section.forgotten(most=1):
        until = old.forgotten_ms + SIGNED_FOR_MS
        if section.now_ms < until:
            raise TableExists(
                f"the location {old.location} was another table's, which was forgotten a short "
                "while ago; a write of it may yet arrive in the store and would become part of "
                "this one's log",
                hint=f"create it at another location, or here after {_moment(until)}",
            )


@dataclass(frozen=True, slots=True)
class Detached:
    """Which of these versions lies in the log although the version before it does not? The log has
    to have this head."""

    head: int
    versions: tuple[int, ...]

    def at(self, table: TableHead) -> "Detached":
        return self

    async def ask(self, log: Log, between: Between | None) -> int | None:
        async with aclosing(contents(log, self.versions)) as files:
            async for version, content in files:
                # Another writer may have written all versions up to this one.
                if content is not None and await log.read(version - 1) is None:
                    # A log that is cleaned up meanwhile looks the same, and has lost its head.
                    return None if await log.read(self.head) is None else version
        return None


async def late_write(section: CommitSection, sight: Sight) -> str | None:
    """Why the log cannot go on: beyond its end lies a version that an earlier table at this place
    wrote. None where no such version is found.

    Only the last version that each earlier table may have written is looked for, and only until
    this table has come past that version. Of many earlier tables, the last `MOST_LOOKED_AT` count,
    and `MOST_AWAITED` of their versions are read.
    """
    head = section.table.latest_version
    versions = _awaited(head, await section.forgotten(most=MOST_LOOKED_AT))
    if not versions:
        return None
    version = await sight.see(section, Detached(head, versions))
    if version is None:
        return None
    return (
        f"version {version} lies in the log and version {version - 1} does not: it is a late write "
        "of a table that was at this place before; move it away"
    )


def _awaited(head: int, forgotten: Sequence[ForgottenTable]) -> tuple[int, ...]:
    """The versions beyond the head where late writes of these tables may lie, of the first few
    tables."""
    # A publisher writes again what was ratified; a commit of a plain table takes the next version.
    last = (old.latest_version + old.kind.log_first for old in forgotten)
    return tuple(dict.fromkeys(version for version in last if version > head + 1))[:MOST_AWAITED]


def check_own(before: Metadata | None, info: CommitInfo | None) -> None:
    """Raise `UnreadableCommit` for a commit that this service wrote for another table than the one
    whose metadata was `before` it."""
    found = None if before is None or info is None else table_id(info)
    if before is not None and found is not None and found != before.id:
        raise UnreadableCommit(
            f"it was written for the table whose metadata has the id {excerpt(found)}, and this "
            f"one's has {excerpt(before.id)}: a late write of a table that was at this place before"
        )


async def register_hint(section: CommitSection) -> str:
    """The next step for a caller who creates a table where a log lies."""
    how = "register it (POST /api/v1/tables/register, tidegate table register)"
    if await section.forgotten(catalog_managed=True, most=1):
        how += ", as catalog-managed if it was that"
    return f"{how}, or create the table at another location, or under another name"


def _moment(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{moment.isoformat(sep=' ', timespec='seconds').removesuffix('+00:00')} UTC"
