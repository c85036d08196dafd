"""Plain tables' logs that others cleaned up past what the index knows of them, or made anew.

Other writers of a plain table may commit, write a checkpoint and delete the commits before it, all
while no commit comes through the service. Then the version behind the index's head is absent
although the table has moved on, and no reader would see a commit that is put there. A clean-up
deletes commits in any order, and may be cut short, so the file of the index's head may be gone or
not. Others may also drop the table's folder and make another table there. Commits of this service
then land in that table's log, and the file of the index's head may be one of them.

So every ten seconds, the commit that comes next looks for three things in the log: the file of the
head that the last check found, the head's own, and a version that is missing behind the head before
a later one.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NoReturn

from tidegate_protocol.log.segment import BrokenLog
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused, TableQuarantined
from tidegate_service.core.log.catching_up.sight import SeenBefore
from tidegate_service.core.log.catching_up.tail import Ends, EndsFound, Tail, sha256_in
from tidegate_service.core.log.files.listing import listed
from tidegate_service.core.log.used_places import late_write
from tidegate_service.core.maintenance.rebuilding import rebuild_from_copy
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import Glance, TableHead, TableState

WAY_OUT = (
    "bring this table's own folder back, and release the table; or move away what this service has "
    'put into the other table\'s log: commits with "tidegate" in their commitInfo (unless that '
    "table had such before), and all .crc and .compacted.json files; then forget this table, and "
    "register what is there (docs/maintenance.md, a folder that was made anew)"
)


async def reload_if_truncated(
    context: Context, section: CommitSection, sight: SeenBefore, *, spares: bool = True
) -> None:
    """Have the index made anew where the log has left it behind. A table that is quarantined is
    left as it is; so is, unless `spares` is False, one that was checked a moment ago.

    Raises `TableQuarantined`, after saving it, where the log ends before the index does, is another
    table's, or has a late write of another table. Raises `Behind` where the store has to be asked
    first, and where the index has to be made anew.
    """
    head = section.table
    if head.state is TableState.QUARANTINED:
        return
    if spares and context.log_checks.spare(head, section.now_ms, database=section.database):
        return
    checked = context.log_checks.last(head, database=section.database)
    tail = Tail.of(head, checked=checked)
    try:
        found = sight.seen_of(section, tail)
        if found is None or not found.goes_on:
            found = await sight.see(section, tail)
    except BrokenLog as error:
        await _quarantined(section, f"the log cannot be read: {error}")
    other = await not_own(section, found.files)
    if other is not None:
        await _quarantined(section, other)
    if not found.is_whole:
        ends = await ends_of(section, sight, goes_on=found.goes_on)
        if isinstance(ends, str):
            await _quarantined(section, ends)
        goes_on = found.goes_on and bool(ends.files)
        # Where nothing is behind the head, it has a checkpoint and no commit file, as in a table
        # that was registered so.
        if not goes_on and ends.last != head.latest_version:
            sight.leave_for(partial(_reload, context, head, section.database))
    as_found = replace(head, latest_version=found.asked.head)
    context.log_checks.remember(as_found, sight.since_ms, database=section.database)


async def is_as_indexed(context: Context, seen: Glance) -> bool:
    """Whether a plain table's log is the one that the index has, and ends where the index does, as
    far as this can be seen without the table's row. False where there is more to find out."""
    table = seen.table
    tail = Tail.of(table, checked=context.log_checks.last(table, database=seen.database))
    log = context.storage.log(table.location, who=context.who)
    try:
        behind = await listed(log, behind=tail.head)
    except BrokenLog:
        return False
    if behind.commits or behind.checkpoints():
        return False
    if seen.published_sha256 is None or await sha256_in(log, tail.head) != seen.published_sha256:
        return False
    if tail.earlier != tail.head:
        async with context.lookups.turn(context.who):
            earlier = await context.index.glance_at_commit(table.id, tail.earlier)
        kept = None if earlier is None else earlier.content_sha256
        if kept is None or await sha256_in(log, tail.earlier) != kept:
            return False
    context.log_checks.remember(table, seen.now_ms, database=seen.database)
    return True


async def _reload(context: Context, head: TableHead, database: str) -> None:
    """Make the index anew, once for all requests of a principal that wait for it. Nothing is done
    where the table's row has moved on from `head`. Raises `TableQuarantined`, after saving it,
    where the log cannot be read into the index."""
    place = database, head.epoch, head.latest_version, TableState.ACTIVE

    def is_there(now: TableHead, in_database: str) -> bool:
        return (in_database, now.epoch, now.latest_version, now.state) == place

    async def made_anew() -> None:
        try:
            await rebuild_from_copy(context, head, is_there, of_same_id=True)
        except Refused as error:
            reason = (
                f"its log does not go on from version {head.latest_version} any more, and what is "
                f"there instead cannot be taken in: {error.detail}; where others have made another "
                f"table in the folder, {WAY_OUT}"
            )
            async with context.index.commit_section(head.id, who=context.who) as section:
                if is_there(section.table, section.database):
                    await _quarantined(section, reason)

    try:
        await context.running.run_once(
            # Others do not wait for a principal who has used up its share: they do it for
            # themselves, and find it done.
            (f"reload {context.who}", head.id),
            made_anew,
        )
    except NotFound:
        # The section is begun again, and raises the same.
        return


async def _quarantined(section: CommitSection, reason: str) -> NoReturn:
    await section.quarantine(reason)
    await section.save()
    raise TableQuarantined(f"table {section.table.name}: {reason}")


async def not_own(section: CommitSection, files: Mapping[int, str | None]) -> str | None:
    """Why a table cannot go on whose log has other files of versions than were committed; None
    where it has those. `files` has the SHA-256 of each that is there, by version."""
    for version, sha256 in files.items():
        is_known = section.table.first_version <= version <= section.table.latest_version
        if sha256 is None or not is_known:
            continue
        if (await section.kept(version))[0] not in (None, sha256):
            return (
                f"version {version} in the log is not the one that was committed; where others "
                f"have made another table in the folder, {WAY_OUT}"
            )
    return None


async def ends_of(section: CommitSection, sight: SeenBefore, *, goes_on: bool) -> EndsFound | str:
    """Which versions the log begins and ends with, or why it cannot go on from what the index
    knows. With `goes_on`, the head is known to be in the log, and others may have committed since.
    Raises `Behind`."""
    head = section.table.latest_version
    try:
        found = sight.seen_of(section, Ends(head)) if goes_on else None
        if found is None or not found.files:
            found = await sight.see(section, Ends(head))
    except BrokenLog as error:
        late = await late_write(section, sight)
        return late or (
            f"the log cannot be read any more from version {head} on: {error}; where others have "
            f"made another table in the folder, {WAY_OUT}"
        )
    if found.last < head and not goes_on:
        return (
            f"the log ends at version {found.last}, and version {head} was committed: the rest of "
            "the log is lost, and its files have to be put back; where others have made another "
            f"table in the folder, {WAY_OUT}"
        )
    return await not_own(section, found.files) or found
