"""The versions of a catalog-managed table after those that its index knows to be published.

They lie in the log, in the index, or in both. After a database was set back
(`core.catalog_managed.set_back`), log and index may differ from some version on. The published
versions are the table's then, since readers have seen them. The versions that the index ratified
from there on are lost, and are reported.
"""

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import CATALOG_MANAGED, UNITY_TABLE_ID
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.log.actions import CommitInfo
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.segment import BrokenLog
from tidegate_protocol.replay.commits import (
    UnreadableCommit,
    commit_info,
    parse_commit,
    table_id,
)
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.catalog_managed.findings import unlike
from tidegate_service.core.catalog_managed.origins import (
    NO_ORIGIN,
    StagedCommits,
    next_step,
    origin_of,
    ratified,
)
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused
from tidegate_service.core.log.catching_up.foreign_commits import append_foreign, foreign_commit
from tidegate_service.core.log.catching_up.sight import SeenNow
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import (
    CommitRecord,
    RatifiedCommit,
    TableHead,
    TableRecord,
)
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload

logger = logging.getLogger("tidegate.service")

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


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
        logger.warning(
            "transaction ids are unknown: their versions were cleaned up before this index had "
            "read them; a transaction that landed as one of them may land again",
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


async def go_on(section: CommitSection, log: Log, before: TableHead) -> tuple[LostCommit, ...]:
    """Append the versions after the section's head: all that this service published (`origins`),
    then the kept ones that follow them (`keep_unpublished`). Returns the kept commits that are
    lost. `before` is the table as it was when they were kept.

    Raises `Refused` (`broken-log`) where another writer's file has the place of a kept version, and
    where a version that only the index has cannot be read.
    """
    parted, staged = None, StagedCommits(log)
    while (found := await log.read(version := section.table.latest_version + 1)) is not None:
        await section.take_time()
        ours = await section.kept_unpublished(version)
        if parted is None and ours is not None and await offload.is_same(ours, found):
            # A publisher may have been cut off before it marked the version as published.
            commit = await _kept(section, version, found)
        else:
            published = await _published(section, version, found, staged)
            if published is None and parted is None and ours is not None:
                expected = await offload.sha256_of(ours)
                why = await unlike(section, SeenNow(log), version, found)
                assert why is not None, "the section has no such version yet"
                raise Refused(
                    f"version {version} of table {section.table.name} lies in the log with other "
                    f"bytes than were ratified: expected SHA-256 {expected}, found "
                    f"{await offload.sha256_of(found)}",
                    code=Code.BROKEN_LOG,
                    hint=why.reason,
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
    section: CommitSection, version: int, content: bytes | LogFile, staged: StagedCommits
) -> RatifiedCommit | None:
    """The commit of a file that this service ratified as that version; None for any other file.
    Raises `Refused` for a commit that does not follow from the version before."""
    try:
        origin = await origin_of(version, content, staged)
    except BrokenLog as error:
        raise Refused(str(error), code=Code.BROKEN_LOG) from None
    if origin is None:
        return None
    try:
        commit = await foreign_commit(section, version, content)
    except UnreadableCommit:
        # A late write of a table that was at this place before has marks, too.
        return None
    if commit.record.transaction_id != origin.info.txn_id:
        # A copy of an earlier version has its id; an id lands once.
        return None
    if await _is_earlier(section, origin.info, version - 1):
        raise Refused(
            f"version {version} of table {section.table.name} was ratified before version "
            f"{version - 1} in the log, and follows from another version {version - 1}, whose file "
            "was moved away",
            code=Code.BROKEN_LOG,
            hint=f"the versions from {version} on are lost: give their transaction ids to their "
            "writers, move their files out of the log, then rebuild the table",
        )
    return commit


async def _is_earlier(section: CommitSection, info: CommitInfo, before: int) -> bool:
    """Whether a commit says an in-commit timestamp that is not after that of the version before."""
    sha256, _ = await section.kept(before) if before >= 0 else (None, 0)
    # Where only a checkpoint is left of that version, the commit's own timestamp is not known.
    found = None if sha256 is None else await section.winners(before - 1, before)
    last = found[0].commit_info if found else None
    if last is None or last.in_commit_timestamp is None or info.in_commit_timestamp is None:
        return False
    return info.in_commit_timestamp <= last.in_commit_timestamp


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
        if version <= section.table.latest_version:
            sha256, _ = await section.kept(version)
            if sha256 == await offload.sha256_of(content):
                continue
        actions = await offload.run(offload.weight_of_log(content), parse_commit, content)
        info = commit_info(actions)
        transaction_id = None if info is None else info.txn_id
        known = None if transaction_id is None else await section.transaction(transaction_id)
        if not isinstance(known, CommitRecord):
            lost.append(LostCommit(version=version, transaction_id=transaction_id))
    return tuple(lost)


async def check_marks(section: CommitSection, log: Log) -> None:
    """Check that the section's table, which was read from its log, is catalog-managed and begins at
    version 0, and that this service ratified every version for this table. Raises `Refused`."""
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
    staged = StagedCommits(log)
    for version in range(table.latest_version + 1):
        origin = await ratified(section, version, staged)
        if origin is None:
            if version == 0 and _is_at_given_place(table):
                continue
            raise Refused(
                f"version {version} lies in the log; {NO_ORIGIN}",
                code=Code.BROKEN_LOG,
                hint=await next_step(section, version, staged),
            )
        # Whether that id is this table's was checked when the version was read.
        if version and not origin.is_staged and table_id(origin.info) is None:
            raise Refused(
                f"version {version} does not say which table it was decided for, as none did that "
                "a release before this one wrote",
                code=Code.UNSUPPORTED_FEATURE,
            )


def _is_at_given_place(table: TableRecord) -> bool:
    """Whether a stock client created the table where the service said. Its version 0 has no mark;
    the name of the folder ends with the id that the service gave the table."""
    given = "" if table.metadata is None else table.metadata.configuration.get(UNITY_TABLE_ID, "")
    return bool(_UUID.fullmatch(given)) and table.location.endswith(f"-{given}")
