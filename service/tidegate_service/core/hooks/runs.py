"""Running a hook for a table's versions, one after the other, behind a cursor.

A version counts as run once the cursor has passed it. The cursor is saved after a portion, so
whoever is cut off, or loses its claim, leaves versions that are run again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence

from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.expiry import version_of
from tidegate_protocol.replay.commits import parse_commit
from tidegate_service.core.errors import NotFound, ServiceError, StorageUnavailable
from tidegate_service.core.hooks.hook import Hook, HookCommit
from tidegate_service.core.hooks.which_versions import EveryVersion, WhichVersions
from tidegate_service.core.observe.elapsed import elapsed_s
from tidegate_service.core.observe.faults import NO_FAULTS, FaultPoints, HookStep, around
from tidegate_service.core.observe.telemetry import HOOK
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.storage import Log, Storage
from tidegate_service.core.ports.upkeep.upkeep import AT_NEW_METADATA, Done, UpkeepRecord
from tidegate_service.core.sharing import offload
from tidegate_service.core.sharing.pools import Pool

logger = logging.getLogger("tidegate.hooks")

RUN_S = 5.0
LONGEST_S = 300.0

EVERY_VERSION = EveryVersion()


class HookFailed(ServiceError):
    """The hook raised, or took too long; the message says for which version."""


class HookRuns:
    """Implements `core.upkeep.job.Job` for one hook. A record's version is the cursor: the last
    version that was run, that is older than the hook, or that is none of `which`.

    `enabled_ms` is when the hook was first seen in the settings; a table begins with its first
    version that is dated later. A run saves its cursor after `run_s`, for another table to have its
    turn; the hook may take `longest_s` for one version. Versions are parsed in `threads`, which all
    hooks share: a large one takes seconds, and commits wait for other threads.
    """

    def __init__(
        self,
        name: str,
        hook: Hook,
        index: Index,
        storage: Storage,
        threads: Pool,
        *,
        enabled_ms: int,
        which: WhichVersions = EVERY_VERSION,
        run_s: float = RUN_S,
        longest_s: float = LONGEST_S,
        monotonic_s: Callable[[], float] = elapsed_s,
        faults: FaultPoints = NO_FAULTS,
    ) -> None:
        self.kind = HOOK + name
        self._name = name
        self._hook = hook
        self._index = index
        self._storage = storage
        self._threads = threads
        self._enabled_ms = enabled_ms
        self._which = which
        self._run_s = run_s
        self._longest_s = longest_s
        self._monotonic_s = monotonic_s
        self._faults = faults

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        cursor = begun = await self._cursor(table, record)
        until = self._monotonic_s() + self._run_s
        asks = True
        try:
            while cursor < table.published_version:
                span = await self._which.span(table, after=cursor)
                asks = span.is_run
                if asks:
                    async for commit in self._commits(table, after=cursor, through=span.through):
                        async with around(self._faults, HookStep.HOOK_RUN):
                            await self._call(commit)
                        cursor = commit.version
                        if self._monotonic_s() > until:
                            return Done(version=cursor, due_version=cursor + 1)
                cursor = span.through
                if self._monotonic_s() > until:
                    break
        except ServiceError:
            if cursor == begun:
                raise
            # The cursor is saved first. The next run begins with what failed, and tells of it.
            return Done(version=cursor, due_version=cursor + 1)
        is_asleep = not asks and cursor == table.published_version
        return Done(version=cursor, due_version=AT_NEW_METADATA if is_asleep else cursor + 1)

    async def _cursor(self, table: TableRecord, record: UpkeepRecord) -> int:
        cursor = record.version
        if cursor < 0:
            before = await self._index.version_at(table.id, self._enabled_ms)
            cursor = -1 if before is None else before
        elif cursor < table.first_version - 1:
            self._warn_of_gone(table, cursor + 1, table.first_version - 1)
        return max(cursor, table.first_version - 1)

    async def _commits(
        self, table: TableRecord, *, after: int, through: int
    ) -> AsyncIterator[HookCommit]:
        assert table.metadata is not None, "it has a version"
        log = self._storage.log(table.location)
        version = after + 1
        while version <= through:
            content = await log.read(version)
            if content is None:
                version = await self._next(table, log, version)
                continue
            record = await self._index.commit(table.id, version)
            if record is None:
                raise NotFound(f"there is no version {version} of the table any more")
            yield HookCommit(
                table_id=table.id,
                table=table.name,
                location=table.location,
                version=version,
                timestamp=record.timestamp,
                operation=record.operation,
                transaction_id=record.transaction_id,
                configuration=table.metadata.configuration,
                actions=await self._parsed(content),
            )
            version += 1

    async def _parsed(self, content: bytes | LogFile) -> Sequence[Action]:
        if not offload.weight_of_log(content):
            return parse_commit(content)
        return await self._threads.run(self._name, parse_commit, content)

    async def _next(self, table: TableRecord, log: Log, missing: int) -> int:
        """The first version in the log behind one that is missing: logs are published in order and
        cleaned up from their beginning."""
        async for entries in log.entries(behind=missing):
            for entry in entries:
                version = version_of(entry.name)
                if version is not None and entry.name == f"{version:020d}.json":
                    self._warn_of_gone(table, missing, version - 1)
                    return version
        raise StorageUnavailable(f"version {missing} is not in the log")

    def _warn_of_gone(self, table: TableRecord, first: int, last: int) -> None:
        fields = {"hook": self._name, "table_id": table.id}
        logger.warning(
            "versions were gone from the log before a hook saw them",
            extra={**fields, "version": first, "through_version": last},
        )

    async def _call(self, commit: HookCommit) -> None:
        limit = asyncio.timeout(self._longest_s)
        try:
            async with limit:
                await self._hook.run(commit)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if limit.expired():
                reason = f"it took longer than {self._longest_s:g} s"
            fields = {"hook": self._name, "table_id": commit.table_id, "version": commit.version}
            logger.warning("a hook failed", extra={**fields, "reason": reason}, exc_info=error)
            raise HookFailed(f"version {commit.version}: {reason}") from error
