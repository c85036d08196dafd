"""Logs that were cleaned up past what the index knows of them.

Other writers of a plain table may commit, write a checkpoint and delete the commits under it, all
while no commit comes through here. The version after the index's head is then absent although the
table has moved on, and a commit put there would be in nobody's table. Log clean-up takes the oldest
commits first, so the index's own head is absent, too: that is what is looked for where a table was,
by the date of its head, left alone for a while.
"""

import hashlib
from typing import NoReturn

from tidegate_protocol.log_segment import BrokenLog, choose_segment
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.looks import QUIET_MS
from tidegate_service.core.ports import CommitSection, Log
from tidegate_service.core.rebuild import rebuild_in
from tidegate_service.core.records import TableState


async def reveal(context: Context, section: CommitSection, log: Log) -> bool:
    """Make the index anew where the log has left it behind; True where that was needed. The caller
    saves the section. A table that is quarantined is left as it is.

    Raises `TableQuarantined` where the log ends before the index does or is another's, after
    saving that, and where it cannot be read.
    """
    head = section.table
    if head.state is TableState.QUARANTINED:
        return False
    quiet_ms = section.now_ms - head.latest_timestamp
    # Other writers date their commits as they like: one from the far future says nothing. Ours are
    # ahead of the clock where more than one is made in a millisecond; where that goes on for long,
    # they are by more than this, and one look is for all that come within as long after it.
    if abs(quiet_ms) < QUIET_MS or context.looks.spare(head, section.now_ms):
        return False
    content = await log.read(head.latest_version)
    if content is not None:
        if await section.head_sha256() in (None, hashlib.sha256(content).hexdigest()):
            context.looks.note(head, section.now_ms)
            return False
        # As where the table was dropped and made again by others.
        await _quarantined(
            section, f"version {head.latest_version} in the log is not the one that was committed"
        )
    # Listing a log takes longer than anything else here that the section waits for.
    await section.take_time()
    end = await _end(section, log)
    if isinstance(end, str):
        await _quarantined(section, end)
    if end == head.latest_version:
        # Only its checkpoint is left of the head, as of a table that was registered so.
        return False
    try:
        await rebuild_in(context, section)
    except Refused as error:
        raise TableQuarantined(
            f"table {head.name}: its log has no version {head.latest_version} any more, and what "
            f"is there instead cannot be taken in: {error.detail}"
        ) from error
    return True


async def _quarantined(section: CommitSection, reason: str) -> NoReturn:
    await section.quarantine(reason)
    await section.save()
    raise TableQuarantined(f"table {section.table.name}: {reason}")


async def _end(section: CommitSection, log: Log) -> int | str:
    """The log's newest version, or why it cannot go on from what the index knows."""
    files: list[tuple[str, int]] = []
    async for entries in log.entries():
        files += [(entry.name, entry.size) for entry in entries]
    head = section.table.latest_version
    try:
        end = choose_segment(files).head
    except BrokenLog as error:
        return f"version {head} is gone from the log, which cannot be read any more: {error}"
    if end < head:
        return (
            f"the log ends at version {end}, and version {head} was committed: the rest of it is "
            "lost"
        )
    return end
