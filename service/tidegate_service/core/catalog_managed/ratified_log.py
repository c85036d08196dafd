"""The versions of a catalog-managed table after those that its index knows to be published.

They lie in the log, in the index, or in both. After a database was set back
(`core.catalog_managed.set_back`), log and index may differ from some version on. The published
versions are the table's then, since readers have seen them. The versions that the index ratified
from there on are lost, and are reported.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import CATALOG_MANAGED
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.actions import CommitInfo
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.replay.commits import (
    UnreadableCommit,
    body_digest,
    commit_info,
    parse_commit,
    table_id,
)
from tidegate_protocol.replay.foreign import parse_foreign_commit
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.log.catching_up.foreign_commits import append_foreign, foreign_commit
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import CommitRecord, RatifiedCommit, TableHead
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload

logger = logging.getLogger("tidegate.service")


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCommit:
    """A commit that is not in the log: another commit has its version there, or none has."""

    version: int
    transaction_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownIds:
    """Versions that neither the index nor the log holds any more, both ends included: a transaction
    that landed as one of them is not recognized when it is sent again."""

    first_version: int
    last_version: int


def unknown_ids(table: TableHead, *, known: int, older: Collection[int]) -> UnknownIds | None:
    """The versions before the table's first one whose ids cannot be known, where `known` is the
    last version that the index had before; `older` are those that the log holds all the same. None
    where the ids of all are known."""
    last = table.first_version - 1
    while last in older:
        last -= 1
    return None if last <= known else UnknownIds(first_version=known + 1, last_version=last)


def tell_unknown(table: TableHead, unknown: UnknownIds | None) -> None:
    """Log the versions whose ids cannot be known, once the table is without them."""
    if unknown is not None:
        logger.error(
            "transaction ids are unknown: their versions were cleaned up, and the index had been "
            "set back behind them; a transaction that landed as one of them may land again",
            extra={
                "table": table.name,
                "first_version": unknown.first_version,
                "last_version": unknown.last_version,
            },
        )


async def record_lost(context: Context, section: CommitSection, lost: Sequence[LostCommit]) -> None:
    """Write the audit rows of the lost commits."""
    for one in lost:
        await section.record_change(
            Change(
                deed=Deed.LOSE,
                by=context.caller,
                version=one.version,
                transaction_id=one.transaction_id,
            )
        )


def tell_lost(table: TableHead, lost: Sequence[LostCommit]) -> None:
    """Log the lost commits, once their loss is certain."""
    if lost:
        logger.error(
            "commits are lost: the log has others in their places",
            extra={
                "table": table.name,
                "versions": [one.version for one in lost],
                "transaction_ids": [one.transaction_id for one in lost],
            },
        )


async def marked(content: bytes | LogFile) -> CommitInfo | None:
    """The commitInfo of a version that this service ratified; None for any other bytes. The version
    is known by two marks: a transaction id, and the digest of what was proposed under it."""
    parse = partial(parse_foreign_commit, content, catalog_managed=True)
    try:
        info = commit_info(await offload.run(offload.weight_of_log(content), parse))
    except UnreadableCommit:
        return None
    return info if info is not None and is_ours(info) else None


def is_ours(info: CommitInfo) -> bool:
    """Whether the commitInfo has both marks."""
    return info.txn_id is not None and body_digest(info) is not None


async def go_on(section: CommitSection, log: Log, before: TableHead) -> tuple[LostCommit, ...]:
    """Append the versions after the section's head: all that this service published, then the
    kept ones that follow them (`keep_unpublished`). Returns the kept commits that are lost.
    `before` is the table as it was when they were kept.

    Raises `Refused` (`broken-log`) where another writer's file has the place of a kept version, and
    where a version that only the index has cannot be read.
    """
    parted = None
    while (found := await log.read(version := section.table.latest_version + 1)) is not None:
        await section.take_time()
        ours = await section.kept_unpublished(version)
        if parted is None and ours is not None and await offload.is_same(ours, found):
            # A publisher may have been cut off before it marked the version as published.
            commit = await _kept(section, version, found)
        else:
            published = await _published(section, version, found)
            if published is None and parted is None and ours is not None:
                expected = await offload.sha256_of(ours)
                raise Refused(
                    f"version {version} of table {section.table.name} lies in the log with other "
                    f"bytes than were ratified: expected SHA-256 {expected}, found "
                    f"{await offload.sha256_of(found)}",
                    code=Code.BROKEN_LOG,
                    hint="this service did not write that file; move it away",
                )
            if published is None:
                # A file that others put after a catalog-managed table's versions is no version.
                break
            commit = published
            parted = version if parted is None and ours is not None else parted
        await append_foreign(section, commit)
    if parted is not None:
        return await _lost(section, range(parted, before.latest_version + 1))
    while (
        content := await section.kept_unpublished(version := section.table.latest_version + 1)
    ) is not None:
        commit = await _kept(section, version, content)
        await append_foreign(section, replace(commit, published=False))
    return ()


async def _published(
    section: CommitSection, version: int, content: bytes | LogFile
) -> RatifiedCommit | None:
    """The commit of a file that this service wrote as that version; None for any other file."""
    if await marked(content) is None:
        return None
    try:
        commit = await foreign_commit(section, version, content)
    except UnreadableCommit:
        # A late write of a table that was at this place before has marks, too.
        return None
    # A copy of an earlier version has its marks; an id lands once.
    return commit if commit.record.transaction_id is not None else None


async def _kept(section: CommitSection, version: int, content: bytes | LogFile) -> RatifiedCommit:
    try:
        return await foreign_commit(section, version, content)
    except UnreadableCommit as error:
        raise Refused(
            f"version {version} of table {section.table.name}, which only the index holds, cannot "
            f"be read: {error}",
            code=Code.BROKEN_LOG,
        ) from None


async def _lost(section: CommitSection, versions: Iterable[int]) -> tuple[LostCommit, ...]:
    """The commits of these kept versions whose transactions the log has as no other version."""
    lost = []
    for version in versions:
        content = await section.kept_unpublished(version)
        if content is None:
            continue
        actions = await offload.run(offload.weight_of_log(content), parse_commit, content)
        info = commit_info(actions)
        transaction_id = None if info is None else info.txn_id
        known = None if transaction_id is None else await section.transaction(transaction_id)
        if not isinstance(known, CommitRecord):
            lost.append(LostCommit(version=version, transaction_id=transaction_id))
    return tuple(lost)


async def ratified(section: CommitSection, version: int) -> CommitInfo | None:
    """The commitInfo of an adopted version, if this service wrote it, and as this version: a copy
    of another version has the same marks, but its id has landed there. None for any other, and for
    one of which only a checkpoint is left."""
    sha256, _ = await section.kept(version)
    found = None if sha256 is None else await section.winners(version - 1, version)
    info = found[0].commit_info if found else None
    if info is None or info.txn_id is None or not is_ours(info):
        return None
    known = await section.transaction(info.txn_id)
    return info if isinstance(known, CommitRecord) and known.version == version else None


async def check_marks(section: CommitSection) -> None:
    """Check that the section's table, which was read from its log, is catalog-managed and begins at
    version 0, and that this service wrote every version for this table. Raises `Refused`."""
    table = section.table
    if table.protocol is None or not supports(table.protocol, CATALOG_MANAGED):
        raise Refused(
            f"what lies at {table.location} is not a catalog-managed table",
            code=Code.UNSUPPORTED_FEATURE,
            hint="register it as a plain table",
        )
    if table.first_version > 0:
        raise Refused(
            f"the log begins at version {table.first_version}: what was before it was cleaned up, "
            "and whether this service wrote that cannot be seen",
            code=Code.BROKEN_LOG,
        )
    for version in range(table.latest_version + 1):
        info = await ratified(section, version)
        if info is None:
            raise Refused(
                f"version {version} lies in the log, and this service did not write it as that",
                code=Code.BROKEN_LOG,
            )
        # Whether that id is this table's was checked when the version was read.
        if version and table_id(info) is None:
            raise Refused(
                f"version {version} does not say which table it was decided for, as none did that "
                "a release before this one wrote",
                code=Code.UNSUPPORTED_FEATURE,
            )
