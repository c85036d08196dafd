"""What a check finds in the log of a catalog-managed table: why it takes no commits."""

from dataclasses import dataclass

from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.segment import BrokenLog
from tidegate_protocol.replay.commits import UnreadableCommit
from tidegate_service.core.catalog_managed.origins import (
    NO_ORIGIN,
    Origin,
    copy_of,
    origin_of,
    way_out,
)
from tidegate_service.core.catalog_managed.own_log import CleanedUp, cleaned_up, not_own
from tidegate_service.core.catalog_managed.questions import (
    Commit,
    Hole,
    LastRatified,
    OriginOf,
    Versions,
)
from tidegate_service.core.log.catching_up.sight import Sight
from tidegate_service.core.log.used_places import check_own
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import CommitRecord, QuarantineCause
from tidegate_service.core.sharing import offload

SET_BACK = "the database was set back, by a restore or by a failover that lost commits"


@dataclass(frozen=True, slots=True)
class Found:
    """Why a catalog-managed table takes no commits, with what has to be done. `is_own_log` says
    whether the log at its place is its own all the same."""

    cause: QuarantineCause
    reason: str
    is_own_log: bool = True


async def strange(
    section: CommitSection, sight: Sight, last: bytes | LogFile | None
) -> Found | None:
    """Why the log is not the table's own (`core.catalog_managed.own_log`), if it is not, or that it
    has left behind what the index has. `last` is as in `not_own`."""
    why = await not_own(section, sight, last)
    if why is None and last is not None:
        why = await _cut_short(section, sight)
    match why:
        case None:
            return await lost_behind_hole(section, sight, last)
        case CleanedUp(version=version):
            published = section.table.published_version
            known = f"versions up to {published}" if published >= 0 else "no version"
            return Found(
                QuarantineCause.SET_BACK,
                f"the log was cleaned up to version {version}, and the index knows {known} to be "
                f"published: {SET_BACK}; `rebuild` takes in what is published, from the "
                f"checkpoint of version {version} on. Transaction ids of versions that are neither "
                "in the index nor in the log cannot be recognized any more",
            )
        case str(why):
            return Found(QuarantineCause.LOG, why, is_own_log=False)


async def _cut_short(section: CommitSection, sight: Sight) -> str | CleanedUp | None:
    """The same of a log that holds the last published version, by what lies behind that."""
    try:
        is_cut = await sight.see(section, Hole.behind(section.table))
    except BrokenLog as error:
        return f"its log cannot be read: {error}"
    return await cleaned_up(section, sight) if is_cut else None


async def lost_behind_hole(
    section: CommitSection, sight: Sight, last: bytes | LogFile | None
) -> Found | None:
    """Why the database was set back, by a version in the log that it has lost, where one before
    that is missing and no checkpoint covers it. None for any other log, and where what lies behind
    the hole is none of the table's. `last` is as in `not_own`, which found nothing."""
    table = section.table
    if last is None and table.published_version >= 0:
        # A checkpoint stands for it, and all that is there follows from that.
        return None
    first = max(table.published_version, 0)
    try:
        if last is None:
            commits, _ = await sight.see(section, Versions())
            missing, is_hole = 0, bool(commits)
        else:
            missing, is_hole = first + 1, await sight.see(section, Hole.behind(table))
        # The same question however far the table has come: it may be committed to all the time.
        version = await _lost(section, sight, first) if is_hole else None
    except BrokenLog as error:
        return Found(QuarantineCause.LOG, f"its log cannot be read: {error}", is_own_log=False)
    return None if version is None else _lost_behind(missing, version)


async def left_out(section: CommitSection, sight: Sight) -> Found | None:
    """Why an index that was made anew from the log lacks versions: one that this service ratified
    lies behind the last one that was taken in, and what leads to that version is missing or has no
    origin. None where the index lacks none."""
    version = section.table.published_version + 1
    try:
        lost = await _lost(section, sight, version - 1)
        if lost is None:
            return None
        content = await sight.see(section, Commit(version))
    except BrokenLog as error:
        return Found(QuarantineCause.LOG, f"its log cannot be read: {error}", is_own_log=False)
    found = None if content is None else await unlike(section, sight, version, content)
    return found or _lost_behind(version, lost)


async def _lost(section: CommitSection, sight: Sight, behind: int) -> int | None:
    """The last version behind this one that this service ratified, if the index has lost that
    version. Versions are published in order, so all before the last one were ratified, too."""
    question = LastRatified(behind)
    while (last := await sight.see(section, question)) is not None:
        if await _is_held(section, last.version, last.content):
            return None
        found = await _found(section, last.version, last.origin)
        if found.cause is QuarantineCause.SET_BACK:
            return last.version
        # A copy, or a late write of another table, says nothing of what lies before.
        question = LastRatified(behind, last.version)
    return None


def _lost_behind(missing: int, version: int) -> Found:
    return Found(
        QuarantineCause.SET_BACK,
        f"version {missing} is missing from the log, no checkpoint covers it, and version "
        f"{version}, which this service published, is there and not in the index: {SET_BACK}; put "
        f"the file of version {missing} back, then `rebuild`. Only where that file is lost for "
        "good: the later versions are lost, too; give their transaction ids to their writers, move "
        "their files out of the log, then `rebuild`",
    )


def _lost_behind_other(other: int, version: int) -> Found:
    return Found(
        QuarantineCause.SET_BACK,
        f"version {version}, which this service published, is in the log and not in the index: "
        f"{SET_BACK}. Before that, the log has a file of version {other}; {NO_ORIGIN}. "
        f"Versions are published in order, so version {other} was ratified, too: {copy_of(other)}, "
        "then `rebuild`",
    )


async def unlike(
    section: CommitSection, sight: Sight, version: int, content: bytes | LogFile
) -> Found | None:
    """Why a version cannot be published, where the log has `content` as that version already. None
    where the index has the same bytes, or the version is published. Raises `Behind`."""
    if await _is_held(section, version, content):
        return None
    try:
        origin = await origin_of(version, content) or await sight.see(section, OriginOf(version))
        if origin is not None:
            return await _found(section, version, origin)
        lost = await _lost(section, sight, version)
    except BrokenLog as error:
        return Found(QuarantineCause.LOG, f"its log cannot be read: {error}", is_own_log=False)
    if lost is not None:
        return _lost_behind_other(version, lost)
    return Found(
        QuarantineCause.LOG,
        f"the log has a file of version {version}, and that version cannot be published while the "
        f"file is there; {NO_ORIGIN}: {way_out(version)}; then `rebuild`",
    )


async def _is_held(section: CommitSection, version: int, content: bytes | LogFile) -> bool:
    """Whether the version is published, or has the same bytes in the index."""
    if version <= section.table.published_version:
        return True
    held = await section.content(version) if version <= section.table.latest_version else None
    return held is not None and await offload.is_same(held, content)


async def _found(section: CommitSection, version: int, origin: Origin) -> Found:
    """Why a version with an origin, which the index has not, cannot be published."""
    info = origin.info
    before = await section.state_at(min(version - 1, section.table.latest_version))
    try:
        check_own(None if before is None else before.metadata, info)
    except UnreadableCommit as error:
        return Found(
            QuarantineCause.LOG,
            f"the file of version {version} is none of this table's: {error}; move it away, then "
            "`release`",
        )
    known = None if info.txn_id is None else await section.transaction(info.txn_id)
    if isinstance(known, CommitRecord) and known.version <= section.table.published_version:
        return Found(
            QuarantineCause.LOG,
            f"the file of version {version} is a copy of version {known.version}, and that version "
            "cannot be published while it is there: move it away, then `release`",
        )
    is_other = version <= section.table.latest_version
    what = "another one than the index holds" if is_other else "not in the index"
    return Found(
        QuarantineCause.SET_BACK,
        f"version {version} is published in the log and {what}: {SET_BACK}; `rebuild` takes in "
        "what is published",
    )
