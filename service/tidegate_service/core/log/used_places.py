"""Places that were used before: what may still arrive of a table that was forgotten there.

A write of the old table may be on its way when its folder is deleted and another table is made
there: `<version>.json`, for the version after the old head or for a few beyond. No name can be held
against it in a log that is new. So a store on which requests travel is given the time for which a
signed request stays valid; what arrives later is found where somebody looks: at the end of a
creation, where a table was left alone for a while, and at the latest where a commit meets the file.
Every commit of ours says which table it is of, so that none becomes part of another.

An instance that was stopped before its write, and goes on after that time, is not kept out.
"""

from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC, datetime

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import CommitInfo, Metadata
from tidegate_protocol.replay.commits import UnreadableCommit, table_id
from tidegate_service.core.errors import TableExists
from tidegate_service.core.log.versions import READ_AHEAD, contents
from tidegate_service.core.ports.index import CommitSection, Log
from tidegate_service.core.ports.records import ForgottenTable

SIGNED_FOR_MS = 15 * 60 * 1000
"""How long S3, and Azure with a shared key, take a request after it was signed."""
MOST_AWAITED = READ_AHEAD
"""So many versions that late writes may lie at are looked at under a row lock."""
_LOCAL = "file://"


async def check_settled(section: CommitSection) -> None:
    """See that no request for a table that was at this place before can be under way in the store.
    Raises `TableExists` where one can."""
    if section.table.location.startswith(_LOCAL):
        return
    for old in await section.forgotten():
        until = old.forgotten_ms + SIGNED_FOR_MS
        if section.now_ms < until:
            raise TableExists(
                f"the location {old.location} was another table's, which was forgotten a short "
                "while ago; a write of it may yet arrive in the store and would become part of "
                "this one's log",
                hint=f"create it at another location, or here after {_moment(until)}",
            )


async def late_write(section: CommitSection, log: Log) -> str | None:
    """Why the log cannot go on where it holds a version behind its end that a table wrote which
    was at this place before; None where none is found.

    Only the last version that such a table is known to have written to is looked for, only until
    this table has come past it, and of the last few tables alone where there were many. Whoever
    believes the reason has seen that the log still holds the head after it was given: a log that
    is cleaned up meanwhile looks the same.
    """
    versions = _awaited(section.table.latest_version, await section.forgotten())
    if not versions:
        return None
    await section.take_time()
    async with aclosing(contents(log, versions)) as files:
        async for version, content in files:
            # Others may have written all versions up to it.
            if content is not None and await log.read(version - 1) is None:
                return (
                    f"version {version} lies in the log and version {version - 1} does not: it is "
                    "a late write of a table that was at this place before; move it away"
                )
    return None


def _awaited(head: int, forgotten: Sequence[ForgottenTable]) -> list[int]:
    """The versions behind a head that late writes of these may lie at, those of the first ones."""
    # A publisher writes again what was published; a commit of a plain table takes the next one.
    last = (old.latest_version + (not old.catalog_managed) for old in forgotten)
    return list(dict.fromkeys(version for version in last if version > head + 1))[:MOST_AWAITED]


def check_own(before: Metadata | None, info: CommitInfo | None) -> None:
    """See that a commit that this service wrote is one of the table whose metadata was `before`
    it. Raises `UnreadableCommit` where it is another's."""
    found = None if before is None or info is None else table_id(info)
    if before is not None and found is not None and found != before.id:
        raise UnreadableCommit(
            f"it was written for the table whose metadata has the id {excerpt(found)}, and this "
            f"one's has {excerpt(before.id)}: a late write of a table that was at this place before"
        )


def register_hint(old: Sequence[ForgottenTable]) -> str:
    """The next step for who wants to make a table where a log lies."""
    how = "register it (POST /api/v1/tables/register, tidegate table register)"
    if any(one.catalog_managed for one in old):
        how += ", as catalog-managed if it was that"
    return f"{how}, or create the table at another location, or under another name"


def _moment(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{moment.isoformat(sep=' ', timespec='seconds').removesuffix('+00:00')} UTC"
