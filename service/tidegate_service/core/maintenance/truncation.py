"""Logs that were cleaned up past what the index knows of them.

Other writers of a plain table may commit, write a checkpoint and delete the commits before it, all
while no commit comes through the service. Then the version behind the index's head is absent
although the table has moved on, and no reader would see a commit that is put there. A clean-up
deletes commits in any order, and may be cut short, so the file of the index's head may be gone or
not. So where a table was left alone for a while, by the date of its head, two things are looked for
in the log: the head's file, and a version that is missing behind it before a later one.
"""

from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from tidegate_protocol.log.segment import BrokenLog, choose_segment, missing
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused, TableQuarantined
from tidegate_service.core.instance.log_checks import QUIET_MS
from tidegate_service.core.log.catching_up.sight import Between, SeenBefore
from tidegate_service.core.log.files.listing import listed
from tidegate_service.core.log.used_places import late_write
from tidegate_service.core.maintenance.rebuilding import rebuild_from_copy
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import TableHead, TableState
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload


@dataclass(frozen=True, slots=True)
class Tail:
    """What is the SHA-256 of the head's file, None where it is gone, and which version is missing
    behind it, if any?"""

    head: int

    def at(self, table: TableHead) -> "Tail":
        return Tail(table.latest_version)

    async def ask(self, log: Log, between: Between | None) -> tuple[str | None, int | None]:
        content = await log.read(self.head)
        if content is None:
            return None, None
        return await offload.sha256_of(content), await gap(log, self.head)


@dataclass(frozen=True, slots=True)
class End:
    """Which is the log's newest version?"""

    def at(self, table: TableHead) -> "End":
        return self

    async def ask(self, log: Log, between: Between | None) -> int:
        files = await listed(log, between=between)
        return (await offload.run(len(files), choose_segment, files)).head


async def reload_if_truncated(context: Context, section: CommitSection, sight: SeenBefore) -> None:
    """Have the index made anew where the log has left it behind. A table that is quarantined is
    left as it is.

    Raises `TableQuarantined`, after saving it, where the log ends before the index does, is another
    table's, or has a late write of another table. Raises `Behind` where the store has to be asked
    first, and where the index has to be made anew.
    """
    head = section.table
    if head.state is TableState.QUARANTINED:
        return
    quiet_ms = section.now_ms - head.latest_timestamp
    # Other writers date their commits as they like: a date in the far future says nothing. Commits
    # of this service are ahead of the clock where more than one is made in a millisecond. Where
    # they are ahead by more than `QUIET_MS`, one check is enough for all that come as long after
    # it.
    spared = context.log_checks.spare(head, section.now_ms, database=section.database)
    if abs(quiet_ms) < QUIET_MS or spared:
        return
    try:
        sha256, first = await sight.see(section, Tail(head.latest_version))
    except BrokenLog as error:
        await _quarantined(section, f"the log cannot be read: {error}")
    if sha256 is not None:
        if await section.head_sha256() not in (None, sha256):
            # As where the table was dropped and made again by others.
            await _quarantined(
                section,
                f"version {head.latest_version} in the log is not the one that was committed",
            )
        if first is None:
            context.log_checks.remember(head, sight.since_ms, database=section.database)
            return
    end = await _end(section, sight)
    if isinstance(end, str):
        await _quarantined(section, end)
    if end == head.latest_version:
        # The head has a checkpoint and no commit file, as in a table that was registered so.
        return
    sight.leave_for(partial(_reload, context, head, section.database))


async def _reload(context: Context, head: TableHead, database: str) -> None:
    """Make the index anew, once for all requests of a principal that wait for it. Nothing is done
    where the table's row has moved on from `head`. Raises `TableQuarantined`, after saving it,
    where the log cannot be read into the index."""
    place = database, head.epoch, head.latest_version, TableState.ACTIVE

    def is_there(now: TableHead, in_database: str) -> bool:
        return (in_database, now.epoch, now.latest_version, now.state) == place

    async def made_anew() -> None:
        try:
            await rebuild_from_copy(context, head, is_there)
        except Refused as error:
            reason = (
                f"its log does not go on from version {head.latest_version} any more, and what is "
                f"there instead cannot be taken in: {error.detail}"
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


async def gap(log: Log, head: int) -> int | None:
    """The first version behind the head that is missing in the log, although the log has a later
    version, or a complete checkpoint of the missing version or a later one; None where there is no
    such version. Raises `BrokenLog` where too many files lie behind the head."""
    files = await listed(log, behind=head)
    for version in await offload.run(len(files), partial(missing, files, behind=head)):
        # Others may have written it while the log was listed.
        if await log.read(version) is None:
            return version
    return None


async def _quarantined(section: CommitSection, reason: str) -> NoReturn:
    await section.quarantine(reason)
    await section.save()
    raise TableQuarantined(f"table {section.table.name}: {reason}")


async def _end(section: CommitSection, sight: SeenBefore) -> int | str:
    """The log's newest version, or why it cannot go on from what the index knows."""
    head = section.table.latest_version
    try:
        end = await sight.see(section, End())
    except BrokenLog as error:
        late = await late_write(section, sight)
        return late or f"the log cannot be read any more from version {head} on: {error}"
    if end < head:
        return (
            f"the log ends at version {end}, and version {head} was committed: the rest of it is "
            "lost"
        )
    return end
