"""Files of a plain table that are put into its log together.

What a file costs on a disk is mostly the wait for the disk to say that it is there. So proposals
that wait together are decided first, each behind the one before as if that one's file were there,
and their files are then put together, in their order. Where one of them cannot be,
whatever was decided behind it is void, and is decided again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_protocol.proposal.transaction import ReadyCommit
from tidegate_service.core.commit.locked_table import LockedTable
from tidegate_service.core.context import Context
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.log.put_version import OCCUPY_S
from tidegate_service.core.observe.faults import Step, around
from tidegate_service.core.observe.telemetry import Phase
from tidegate_service.core.ports.index import Log, PutResult
from tidegate_service.core.ports.records import TableRecord

MOST_BYTES = 64 * 1024
"""Larger contents are put alone: they are written for longer than they wait."""
MOST_FILES = 32
PUT_S = 2.0


@dataclass(frozen=True, slots=True)
class _Held:
    ready: ReadyCommit
    before: TableRecord


class BufferedPuts:
    """Those of one table under its lock."""

    def __init__(self, locked: LockedTable) -> None:
        self._locked = locked
        self._held: list[_Held] = []
        self.in_doubt = 0
        """After `put`: how many of the files that it did not put may be there all the same, or
        come to be there; the first ones."""

    def __len__(self) -> int:
        return len(self._held)

    def takes(self, ready: ReadyCommit) -> bool:
        return isinstance(ready.content, bytes) and len(ready.content) <= MOST_BYTES

    def hold(self, ready: ReadyCommit) -> None:
        """Keep a commit that is about to be appended until `put`."""
        self._locked.section.hold()
        self._held.append(_Held(ready, self._locked.section.table))

    def forget(self, ready: ReadyCommit) -> bool:
        """Let go of the newest commit, which was not appended after all. False where it was, or is
        none that is held."""
        if not self._held or self._held[-1].ready is not ready:
            return False
        if self._locked.head >= ready.version:
            return False
        self._held.pop()
        if not self._held:
            self._locked.section.let_go()
        return True

    async def put(self, context: Context, log: Log) -> int:
        """Put the files; returns how many of the commits have no file by this, and were taken
        back. What is in the place of the first of them, only its own PUT finds out."""
        held, self._held = self._held, []
        section = self._locked.section
        self.in_doubt = 0
        created = 0
        if held:
            # The store and the database at a time; rows without a file are taken back.
            async with section.writing_held():
                created = await self._put(context, log, held)
        lost = held[created:]
        if lost:
            await self._locked.take_back(len(lost), lost[0].before)
        # Not before: their rows are nobody's until their files are there.
        section.let_go()
        return len(lost)

    async def _put(self, context: Context, log: Log, held: Sequence[_Held]) -> int:
        files = [(one.ready.version, one.ready.content) for one in held]
        try:
            with context.telemetry.phase(Phase.PUT):
                async with around(context.faults, Step.O6_PUT), asyncio.timeout(OCCUPY_S):
                    results = await log.put_in_order(files, within_s=PUT_S)
                async with around(context.faults, Step.O7_CLASSIFY):
                    created = sum(result is PutResult.CREATED for result in results)
        except (StorageUnknown, TimeoutError):
            self.in_doubt = len(held)
            return 0
        except StorageUnavailable:
            return 0
        # Why the next one was not put is not said, unless its name was taken.
        self.in_doubt = int(created == len(results) < len(held))
        return created
