"""Logs that were cleaned up past what the index knows of them.

Other writers of a plain table may commit, write a checkpoint and delete the commits under it, all
while no commit comes through here. The version after the index's head is then absent although the
table has moved on, and a commit put there would be in nobody's table. Log clean-up takes the oldest
commits first, so the index's own head is absent, too: that is what is looked for.
"""

from tidegate_protocol.log_segment import BrokenLog, choose_segment
from tidegate_service.core.context import Context
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.ports import CommitSection, Log
from tidegate_service.core.rebuild import rebuild_in

QUIET_MS = 10_000
"""How long after its last commit a table is taken to be as it was left. A clean-up deletes what is
older than the table's retention, by default 30 days, so nothing after a commit this young can be
gone, unless the retention was set to next to nothing since."""


async def reveal(context: Context, section: CommitSection, log: Log) -> bool:
    """Make the index anew where the log has left it behind; True where that was needed. The caller
    saves the section.

    Raises `TableQuarantined` where the log ends before the index does, after saving that, and
    where it cannot be read.
    """
    head = section.table
    quiet_ms = section.now_ms - head.latest_timestamp
    # Other writers date their commits as they like: one from the future says nothing.
    if 0 <= quiet_ms < QUIET_MS or await log.read(head.latest_version) is not None:
        return False
    reason = await _lost(section, log)
    if reason is not None:
        await section.quarantine(reason)
        await section.save()
        raise TableQuarantined(f"table {head.name}: {reason}")
    try:
        await rebuild_in(context, section)
    except Refused as error:
        raise TableQuarantined(
            f"table {head.name}: its log has no version {head.latest_version} any more, and what "
            f"is there instead cannot be taken in: {error.detail}"
        ) from error
    return True


async def _lost(section: CommitSection, log: Log) -> str | None:
    """Why the log cannot go on from what the index knows; None where it can."""
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
    return None
