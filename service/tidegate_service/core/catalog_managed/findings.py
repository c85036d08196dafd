"""What a check finds in the log of a catalog-managed table: why it takes no commits."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.segment import BrokenLog
from tidegate_protocol.replay.commits import UnreadableCommit
from tidegate_service.core.catalog_managed.own_log import CleanedUp, cleaned_up, not_own
from tidegate_service.core.catalog_managed.questions import Commit, CommitsBehind, Hole, Versions
from tidegate_service.core.catalog_managed.ratified_log import marked
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
        # The same questions however far the table has come: it may be committed to all the time.
        there = await sight.see(section, CommitsBehind(first)) if is_hole else ()
        # What the index holds may have been published, in part.
        for version in dict.fromkeys((*there[:1], *_first_behind(table.latest_version, there))):
            content = await sight.see(section, Commit(version))
            found = None if content is None else await unlike(section, version, content)
            if found is not None and found.cause is QuarantineCause.SET_BACK:
                return _lost_behind(missing, version)
    except BrokenLog as error:
        return Found(QuarantineCause.LOG, f"its log cannot be read: {error}", is_own_log=False)
    return None


def _first_behind(version: int, commits: Sequence[int]) -> Sequence[int]:
    """The first of these behind a version, if any is."""
    at = bisect_right(commits, version)
    return commits[at : at + 1]


def _lost_behind(missing: int, version: int) -> Found:
    return Found(
        QuarantineCause.SET_BACK,
        f"version {missing} is missing from the log, no checkpoint covers it, and version "
        f"{version}, which this service published, is there and not in the index: {SET_BACK}; put "
        f"the file of version {missing} back, or move the later ones away, then `rebuild`",
    )


async def unlike(section: CommitSection, version: int, content: bytes | LogFile) -> Found | None:
    """Why a version cannot be published, where the log has `content` as that version already. None
    where the index has the same bytes, or the version is published."""
    if version <= section.table.published_version:
        return None
    held = await section.content(version) if version <= section.table.latest_version else None
    if held is not None and await offload.is_same(held, content):
        return None
    info = await marked(content)
    if info is None or info.txn_id is None:
        return Found(
            QuarantineCause.LOG,
            f"the log has a file of version {version} that this service did not write, and that "
            "version cannot be published while it is there: move it away, then `release`",
        )
    before = await section.state_at(min(version - 1, section.table.latest_version))
    try:
        check_own(None if before is None else before.metadata, info)
    except UnreadableCommit as error:
        return Found(
            QuarantineCause.LOG,
            f"the file of version {version} is none of this table's: {error}; move it away, then "
            "`release`",
        )
    known = await section.transaction(info.txn_id)
    if isinstance(known, CommitRecord) and known.version <= section.table.published_version:
        return Found(
            QuarantineCause.LOG,
            f"the file of version {version} is a copy of version {known.version}, and that version "
            "cannot be published while it is there: move it away, then `release`",
        )
    what = "another one than the index holds" if held is not None else "not in the index"
    return Found(
        QuarantineCause.SET_BACK,
        f"version {version} is published in the log and {what}: {SET_BACK}; `rebuild` takes in "
        "what is published",
    )
