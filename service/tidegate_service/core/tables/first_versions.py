"""How version 0 of a table's log is made the table's own, for each kind of table.

A folder that holds another log is refused, and one that holds any part of a log: a log that was
cleaned up has no version 0.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tidegate_protocol.log.actions import Action, CommitInfo, Metadata
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.proposal.transaction import ReadyCommit
from tidegate_protocol.replay.commits import UnreadableCommit, commit_info, timestamp_of
from tidegate_protocol.replay.foreign import parse_foreign_commit
from tidegate_service.core.context import Context
from tidegate_service.core.errors import TableExists
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.log.put_version import occupy
from tidegate_service.core.log.used_places import register_hint
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload


@dataclass(frozen=True, slots=True)
class FirstVersions:
    """`claim` returns the version 0 to be ratified. It raises `TableExists` for a folder that is in
    use, and `Unavailable`. `created` is called once the section is saved."""

    claim: Callable[[CommitSection, Log, ReadyCommit, CommitLimits], Awaitable[ReadyCommit]]
    created: Callable[[Context, CommitSection], None]


def first_versions_of(table: TableIdentity) -> FirstVersions:
    return _CATALOG_MANAGED if table.catalog_managed else _PLAIN


async def _plain(
    section: CommitSection, log: Log, ready: ReadyCommit, limits: CommitLimits
) -> ReadyCommit:
    """The version 0 that was put.

    An earlier creation that wrote it and died before the table's row was committed is taken up
    where it stopped: the same request has the same transaction id. The first version of a table
    that was forgotten is refused, since registering the table brings back its ids.
    """
    if await log.holds_anything(but_version=0):
        raise await _in_use(section)
    found = await occupy(log, ready, limits)
    if await log.holds_anything(but_version=0):
        # Of another writer, or a late write of a table that was here before. What was written for
        # this one stays: no file of a log is ever deleted.
        raise await _in_use(section)
    if found is None:
        return ready
    try:
        content = found.content
        actions, info, metadata = await offload.run(offload.weight_of_log(content), _read, content)
    except UnreadableCommit:
        raise await _in_use(section) from None
    if info is None or info.txn_id != ready.transaction.proposal.transaction_id:
        raise await _in_use(section)
    if metadata is None or await section.forgotten({metadata.id}, most=1):
        raise await _in_use(section)
    return ReadyCommit(
        version=0,
        timestamp=timestamp_of(0, actions, fallback=ready.timestamp),
        content=content,
        actions=actions,
        transaction=ready.transaction,
        commit_info=info,
    )


async def _catalog_managed(
    section: CommitSection, log: Log, ready: ReadyCommit, limits: CommitLimits
) -> ReadyCommit:
    if await log.holds_anything():
        raise await _in_use(section)
    return ready


def _checked(context: Context, section: CommitSection) -> None:
    # Nothing was there but version 0, so the log was as it is checked for before version 0.
    before = replace(section.table, latest_version=-1)
    context.log_checks.remember(before, section.now_ms, database=section.database)


def _remember(context: Context, section: CommitSection) -> None:
    # Nothing was there, so nothing can be behind it.
    table, database, now_s = section.table, section.database, context.monotonic_s()
    context.heads.replicated.remember(table, database=database)
    context.heads.checked(table, section.now_ms, now_s, database=database)


def _read(
    found: bytes | LogFile,
) -> tuple[tuple[Action, ...], CommitInfo | None, Metadata | None]:
    actions = parse_foreign_commit(found)
    metadata = next((action for action in actions if isinstance(action, Metadata)), None)
    return actions, commit_info(actions), metadata


async def _in_use(section: CommitSection) -> TableExists:
    return TableExists(
        f"the location {section.table.location} already holds a Delta log, or a part of one",
        hint=await register_hint(section),
    )


_PLAIN = FirstVersions(_plain, _checked)
_CATALOG_MANAGED = FirstVersions(_catalog_managed, _remember)
