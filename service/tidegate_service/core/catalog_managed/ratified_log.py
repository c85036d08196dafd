"""The versions of a catalog-managed table behind those that its index knows to be published.

They lie in the log, in the index, or in both. Where a database was set back
(`core.catalog_managed.set_back`), the two may have gone different ways from some version on. What
is published is the table's then, since readers have seen it; whatever the index ratified in its
place, and behind that, is lost, and told.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import CATALOG_MANAGED
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.actions import CommitInfo
from tidegate_protocol.log.content import LogFile, is_same, sha256_of
from tidegate_protocol.proposal.transaction import BYTES_AN_ACTION
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
from tidegate_service.core.log.foreign_commits import append_foreign, foreign_commit
from tidegate_service.core.ports.index import CommitSection, Log
from tidegate_service.core.ports.records import CommitRecord, RatifiedCommit, TableRecord
from tidegate_service.core.sharing import offload

logger = logging.getLogger("tidegate.service")


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCommit:
    """What was committed as a version whose place in the log another commit has, or none."""

    version: int
    transaction_id: str | None


async def note_lost(context: Context, section: CommitSection, lost: Sequence[LostCommit]) -> None:
    """Write the audit rows of what is lost."""
    for one in lost:
        await section.note(
            Change(
                deed=Deed.LOSE,
                by=context.caller,
                version=one.version,
                transaction_id=one.transaction_id,
            )
        )


def tell_lost(table: TableRecord, lost: Sequence[LostCommit]) -> None:
    """Log what is lost, once it is certain."""
    if lost:
        logger.error(
            "commits are lost: the log has others in their places",
            extra={
                "table": table.name,
                "versions": [one.version for one in lost],
                "transaction_ids": [one.transaction_id for one in lost],
            },
        )


def marked(content: bytes | LogFile) -> CommitInfo | None:
    """The commitInfo of a version that this service ratified, by the marks that it carries: a
    transaction id, and the digest of what was proposed under it; None of any other bytes."""
    try:
        info = commit_info(parse_foreign_commit(content, catalog_managed=True))
    except UnreadableCommit:
        return None
    return info if info is not None and is_ours(info) else None


def is_ours(info: CommitInfo) -> bool:
    """Whether it carries these marks."""
    return info.txn_id is not None and body_digest(info) is not None


async def go_on(section: CommitSection, log: Log, before: TableRecord) -> tuple[LostCommit, ...]:
    """Take the versions behind the section's head into it: all that this service published, then
    those that are held (`keep_held`) and follow from them. Returns what else is held. `before` is
    the table as it was when they were kept.

    Raises `Refused` (`broken-log`) where the file of a version that is held is somebody else's, and
    where one that only the index holds cannot be read.
    """
    parted = None
    while (found := await log.read(version := section.table.latest_version + 1)) is not None:
        await section.take_time()
        ours = await section.held(version)
        if parted is None and ours is not None and await _are_same(ours, found):
            # A publisher may have had no time left to say that it published.
            commit = await _held(section, version, found)
        else:
            published = await _published(section, version, found)
            if published is None and parted is None and ours is not None:
                expected = await offload.run(len(ours) // BYTES_AN_ACTION, sha256_of, ours)
                raise Refused(
                    f"version {version} of table {section.table.name} lies in the log with other "
                    f"bytes than were ratified: expected SHA-256 {expected}, found "
                    f"{sha256_of(found)}",
                    code=Code.BROKEN_LOG,
                    hint="this service did not write that file; move it away",
                )
            if published is None:
                # Nothing that others put behind a catalog-managed table's versions is one.
                break
            commit = published
            parted = version if parted is None and ours is not None else parted
        await append_foreign(section, commit)
    if parted is not None:
        return await _lost(section, range(parted, before.latest_version + 1))
    while (content := await section.held(version := section.table.latest_version + 1)) is not None:
        commit = await _held(section, version, content)
        await append_foreign(section, replace(commit, published=False))
    return ()


async def _published(
    section: CommitSection, version: int, content: bytes | LogFile
) -> RatifiedCommit | None:
    """The commit of a file that this service wrote as that version; None for any other."""
    if await offload.run(len(content) // BYTES_AN_ACTION, marked, content) is None:
        return None
    try:
        commit = await foreign_commit(section, version, content)
    except UnreadableCommit:
        # A late write of a table that was at this place before has marks, too.
        return None
    # A copy of an earlier version has its marks; an id lands once.
    return commit if commit.record.transaction_id is not None else None


async def _held(section: CommitSection, version: int, content: bytes | LogFile) -> RatifiedCommit:
    try:
        return await foreign_commit(section, version, content)
    except UnreadableCommit as error:
        raise Refused(
            f"version {version} of table {section.table.name}, which only the index holds, cannot "
            f"be read: {error}",
            code=Code.BROKEN_LOG,
        ) from None


async def _are_same(ours: bytes | LogFile, found: bytes | LogFile) -> bool:
    size = max(len(ours), len(found)) // BYTES_AN_ACTION
    return await offload.run(size, is_same, ours, found)


async def _lost(section: CommitSection, versions: Iterable[int]) -> tuple[LostCommit, ...]:
    """Those of these held versions whose transactions are not in the log as others."""
    lost = []
    for version in versions:
        content = await section.held(version)
        if content is None:
            continue
        actions = await offload.run(len(content) // BYTES_AN_ACTION, parse_commit, content)
        info = commit_info(actions)
        transaction_id = None if info is None else info.txn_id
        known = None if transaction_id is None else await section.transaction(transaction_id)
        if not isinstance(known, CommitRecord):
            lost.append(LostCommit(version=version, transaction_id=transaction_id))
    return tuple(lost)


async def was_ratified(section: CommitSection, version: int) -> bool:
    """Whether this service wrote a version that was adopted, and as that one: a copy of another has
    its marks, and an id lands once."""
    found = await section.winners(version - 1, version)
    info = found[0].commit_info if found else None
    if info is None or info.txn_id is None or not is_ours(info):
        return False
    known = await section.transaction(info.txn_id)
    return isinstance(known, CommitRecord) and known.version == version


async def check_marks(section: CommitSection) -> None:
    """See that the section's table, which was read from its log, is catalog-managed and begins at
    version 0, and that this service wrote every version, for this table. Raises `Refused`."""
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
        if not await was_ratified(section, version):
            raise Refused(
                f"version {version} lies in the log, and this service did not write it as that",
                code=Code.BROKEN_LOG,
            )
        found = await section.winners(version - 1, version)
        info = found[0].commit_info if found else None
        # That the id which it says is this table's was seen when it was read.
        if version and (info is None or table_id(info) is None):
            raise Refused(
                f"version {version} does not say which table it was decided for, as none did that "
                "a release before this one wrote",
                code=Code.UNSUPPORTED_FEATURE,
            )
