"""Logs that were cleaned up past what the index knows of them.

Other writers of a plain table may commit, write a checkpoint and delete the commits under it, all
while no commit comes through here. A version behind the index's head is then absent although the
table has moved on, and a commit put there would be in nobody's table. Clean-up takes commits in any
order, and may be cut short: the index's own head may be gone or not. So where a table was, by the
date of its head, left alone for a while, two things are looked for in the log: the head, and behind
it a version that is missing before a later one.
"""

from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from tidegate_protocol.log.segment import BrokenLog, choose_segment, missing
from tidegate_service.core.context import Context
from tidegate_service.core.errors import NotFound, Refused, TableQuarantined
from tidegate_service.core.instance.log_checks import QUIET_MS
from tidegate_service.core.log.catching_up.sight import Between, SeenBefore
from tidegate_service.core.log.listing import listed
from tidegate_service.core.log.used_places import late_write
from tidegate_service.core.maintenance.rebuild import rebuild_from_copy
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

    Raises `TableQuarantined` where the log ends before the index does, is another's or holds a late
    write of another table, after saving that. Raises `Behind` where the log has to be looked at
    first, and where the index has to be made anew.
    """
    head = section.table
    if head.state is TableState.QUARANTINED:
        return
    quiet_ms = section.now_ms - head.latest_timestamp
    # Other writers date their commits as they like: one from the far future says nothing. Ours are
    # ahead of the clock where more than one is made in a millisecond; where that goes on for long,
    # they are by more than this, and one check is for all that come within as long after it.
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
        # Only its checkpoint is left of the head, as of a table that was registered so.
        return
    sight.leave_for(partial(_reload, context, head, section.database))


async def _reload(context: Context, head: TableHead, database: str) -> None:
    """Make the index anew, once for all of a principal who wait for it. Nothing is done where the
    table's row has moved on from `head`. Raises `TableQuarantined` where the log cannot be taken
    in, after saving that."""
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
            # Not in the name of somebody who has used up a share: the others do it again, for
            # themselves, and find it done.
            (f"reload {context.who}", head.id),
            made_anew,
        )
    except NotFound:
        # The section that is begun again tells of it.
        return


async def gap(log: Log, head: int) -> int | None:
    """The first version behind the head that is missing in the log while a later one, or a complete
    checkpoint of it or of a later one, is there; None where there is no such. Raises `BrokenLog`
    where too many files are."""
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
