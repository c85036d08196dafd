"""Files of a plain table that are put into its log together.

The cost of a file on a disk is mostly the wait for the disk to confirm it. So proposals that wait
together are decided first, each as if the file of the one before were there. Their files are then
put together, in order. Where one file cannot be put, every decision after it is void, and is made
again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_protocol.proposal.transaction import ReadyCommit
from tidegate_service.core.context import Context
from tidegate_service.core.errors import StorageUnavailable, StorageUnknown
from tidegate_service.core.instance.locked_table import LockedTable
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.observe.faults import Step, around
from tidegate_service.core.observe.ports_with_faults import with_faults
from tidegate_service.core.observe.telemetry import Phase
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import Log

PUT_S = 2.0


@dataclass(frozen=True, slots=True)
class _Buffered:
    ready: ReadyCommit
    before: TableRecord


class BufferedPuts:
    """The buffered files of one table under its lock."""

    def __init__(self, locked: LockedTable, limits: CommitLimits) -> None:
        self._locked = locked
        self._limits = limits
        self._buffered: list[_Buffered] = []
        self.in_doubt = 0
        """After `put`: how many of the files without a confirmed PUT may be there, or arrive yet.
        They are the first of these files."""

    def __len__(self) -> int:
        return len(self._buffered)

    @property
    def is_full(self) -> bool:
        return len(self._buffered) >= self._limits.buffered_files

    def takes(self, ready: ReadyCommit) -> bool:
        most = self._limits.buffered_file_bytes
        return isinstance(ready.content, bytes) and len(ready.content) <= most

    def add(self, ready: ReadyCommit) -> None:
        """Buffer the file of a commit that is about to be appended, until `put`."""
        self._locked.section.defer_saving()
        self._buffered.append(_Buffered(ready, self._locked.section.table))

    def drop(self, ready: ReadyCommit) -> bool:
        """Drop the newest file, whose commit was not appended after all. False where the commit was
        appended, or its file is not buffered."""
        if not self._buffered or self._buffered[-1].ready is not ready:
            return False
        if self._locked.head >= ready.version:
            return False
        self._buffered.pop()
        if not self._buffered:
            self._locked.section.allow_saving()
        return True

    async def put(self, context: Context, log: Log) -> int:
        """Put the files. Returns how many commits were dropped since their files were not put. What
        the log has as the version of the first dropped commit, only a PUT of its own finds out."""
        buffered, self._buffered = self._buffered, []
        self.in_doubt = 0
        lost = buffered[await self._put(context, log, buffered) if buffered else 0 :]
        if lost:
            self._locked.unstage(len(lost), lost[0].before)
        # Only now: rows must not be saved before their files are there.
        self._locked.section.allow_saving()
        return len(lost)

    async def _put(self, context: Context, log: Log, buffered: Sequence[_Buffered]) -> int:
        files = [(one.ready.version, one.ready.content) for one in buffered]
        log = with_faults(log, context.faults, {Log.put_in_order: Step.O6_PUT})
        try:
            with context.telemetry.phase(Phase.PUT):
                async with asyncio.timeout(self._limits.put_s):
                    results = await log.put_in_order(files, within_s=PUT_S)
                async with around(context.faults, Step.O7_CLASSIFY):
                    created = sum(result is PutResult.CREATED for result in results)
        except (StorageUnknown, TimeoutError):
            self.in_doubt = len(buffered)
            return 0
        except StorageUnavailable:
            return 0
        # The store does not say why the next file was not put, unless its name was taken.
        self.in_doubt = int(created == len(results) < len(buffered))
        return created
