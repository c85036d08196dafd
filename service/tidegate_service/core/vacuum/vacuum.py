"""VACUUM of a table: what is found, and then deleted.

The order is what keeps it safe. First the logs of all other tables are looked at, and those of
plain tables read in, so that the index knows all that is committed. Then the folder's files are
merged with those that the index names; what is left and is old enough is written down. `VACUUM
START` is committed, which also shows that the log has nothing that the index lacks. Only then are
files deleted, some at a time, each batch after one more look whether a proposal that waits, or a
version that landed since, names one of them. A kill at any moment leaves files behind that the
next VACUUM finds, and a `VACUUM START` without its end.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tidegate_protocol.proposal.operations import VACUUM_END, VACUUM_START
from tidegate_service.core.context import Context
from tidegate_service.core.errors import ServiceError
from tidegate_service.core.observe.faults import VacuumStep, around
from tidegate_service.core.ports.files.named_files import NamedFiles, NamingTable
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.data_files import DataFile, DataFiles
from tidegate_service.core.ports.store.data_names import is_usual
from tidegate_service.core.sharing.pools import Share
from tidegate_service.core.vacuum.clones import clones_of, take_clones, warning_of
from tidegate_service.core.vacuum.commits import VACUUM, landed, record_vacuum
from tidegate_service.core.vacuum.found import FoundFiles, Unnamed
from tidegate_service.core.vacuum.last_look import LastLook
from tidegate_service.core.vacuum.late_names import LateNames
from tidegate_service.core.vacuum.logs import read_all
from tidegate_service.core.vacuum.orphans import OtherNames, orphans
from tidegate_service.core.vacuum.request import (
    Horizon,
    VacuumRequest,
    own_retention_ms,
)
from tidegate_service.core.vacuum.spelled import spelled

logger = logging.getLogger("tidegate.service")

TICK_S = 1.0
"""How often it tells where it is."""
DELETED_AT_ONCE = 1_000
"""Files between two looks at who names them; as many as S3 deletes by one request."""
DELETERS = 4


class Stage(StrEnum):
    """Where a vacuum is. A dry run names its files at `FILES`, and ends without deleting."""

    LOGS = "logs"
    LISTING = "listing"
    FILES = "files"
    DELETING = "deleting"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """So many `logs` of other tables and `listed` files were looked at. Of the files, `found`, of
    `found_bytes`, are to be deleted, and `deleted` are. `folders` that were empty are gone. `paths`
    are those of a dry run since the last time. `warnings` name tables that name files of this one;
    they are said once. `version` is that of VACUUM START, then of VACUUM END. `error` says why the
    vacuum failed."""

    stage: Stage
    logs: int = 0
    listed: int = 0
    found: int = 0
    found_bytes: int = 0
    deleted: int = 0
    folders: int = 0
    version: int | None = None
    paths: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: ServiceError | None = None


@dataclass(slots=True)
class Vacuum:
    """One that may begin."""

    context: Context
    table: TableRecord
    request: VacuumRequest
    horizon: Horizon
    files: DataFiles
    share: Share
    _now: Progress = field(default_factory=lambda: Progress(stage=Stage.LOGS))
    _clones: Sequence[NamingTable] = ()
    _candidates: list[FoundFiles] = field(default_factory=list)
    _found: FoundFiles = field(init=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self._found = FoundFiles(who=self.share.who)

    async def progress(self) -> AsyncGenerator[Progress]:
        """Does it, and says every second how far it is; the last one is at `ENDED` or `FAILED`."""
        others = OtherNames(location=self.table.location, share=self.share)
        try:
            async with aclosing(_ticks([self._read_logs()])) as ticks:
                async for _ in ticks:
                    yield self._now
            warnings = tuple(warning_of(self.context, clone) for clone in self._clones)
            self._now = replace(self._now, stage=Stage.LISTING)
            yield replace(self._now, warnings=warnings)
            async with around(self.context.faults, VacuumStep.V1_LIST):
                async with aclosing(_ticks(await self._listing(others))) as ticks:
                    async for _ in ticks:
                        yield self._now
                async with aclosing(self._chosen(others)) as chosen:
                    async for now in chosen:
                        yield now
            if not self.request.dry_run:
                async with aclosing(self._deletion()) as deletion:
                    async for now in deletion:
                        yield now
            yield replace(self._now, stage=Stage.ENDED, paths=())
        except ServiceError as error:
            yield replace(self._now, stage=Stage.FAILED, paths=(), error=error)
        finally:
            others.spool.close()
            for found in (self._found, *self._candidates):
                found.close()

    async def _read_logs(self) -> None:
        """Have the index know all tables that name files of this one, as clones of it do."""

        def looked() -> None:
            self._now = replace(self._now, logs=self._now.logs + 1)

        await read_all(self.context, self.table, looked)
        self._clones = await clones_of(self.context, self.table)

    async def _listing(self, others: OtherNames) -> list[Coroutine[None, None, None]]:
        ranges = await self.files.ranges_at_once()
        cuts: Sequence[str] = ()
        if ranges > 1:
            paths = await self.context.index.paths_between(self.table.id, ranges - 1)
            # A clone's paths of other folders are no keys in this one.
            cuts = [path for path in paths if is_usual(path)]
        works = []
        for after, until in zip(("", *cuts), (*cuts, None), strict=True):
            found = FoundFiles(who=self.share.who)
            self._candidates.append(found)
            works.append(self._list(after, until, others, found))
        clones = take_clones(self.context.index, self.table, self._clones, others)
        return [*works, clones]

    async def _list(
        self, after: str, until: str | None, others: OtherNames, found: FoundFiles
    ) -> None:
        merged = orphans(
            self.files,
            self.files.listed(after=after, until=until),
            self._named(after, until, others),
            others,
            modified_before_ms=self.horizon.modified_ms,
        )
        async with aclosing(merged) as batches:
            async for count, files in batches:
                found.add(files)
                self._now = replace(self._now, listed=self._now.listed + count)

    async def _named(
        self, after: str, until: str | None, others: OtherNames
    ) -> AsyncIterator[NamedFiles]:
        """Pages of the index. What it has only digests of goes to `others`."""
        index = self.context.index
        named = index.named_files(
            self.table.id,
            since=self.horizon.since,
            removed_ms=self.horizon.removed_ms,
            after=after,
            until=until,
        )
        async for page in named:
            async for rows in spelled(index, self.share, self.table.id, page):
                await others.take(rows)
            yield page

    async def _chosen(self, others: OtherNames) -> AsyncGenerator[Progress]:
        """Writes down those of the candidates that go."""
        unnamed, look = Unnamed(others), self._last_look(at_least=self.table.latest_version)
        for candidates in self._candidates:
            candidates.begin()
            while some := await self.share.run(candidates.next, DELETED_AT_ONCE):
                left, _ = await look.by_path(await unnamed.of(some))
                self._found.add(left)
                self._now = replace(
                    self._now,
                    stage=Stage.FILES,
                    found=self._found.count,
                    found_bytes=self._found.size,
                )
                if self.request.dry_run and left:
                    yield replace(self._now, paths=tuple(file.path for file in left))

    async def _deletion(self) -> AsyncGenerator[Progress]:
        async with around(self.context.faults, VacuumStep.V2_START):
            version = await landed(
                self.context,
                self.table,
                VACUUM_START,
                self._start_parameters(),
                self._start_metrics(),
            )
            await record_vacuum(self.context, self.table, version)
        self._now = replace(self._now, stage=Stage.DELETING, version=version)
        yield self._now
        self._found.begin()
        try:
            late = LateNames(self.context, self.table, self._clones, self.share)
            look = self._last_look(at_least=version)
            works = [self._delete(look, late) for _ in range(DELETERS)]
            async with aclosing(_ticks(works)) as ticks:
                async for _ in ticks:
                    yield self._now
            folders = await self.files.remove_empty_folders(before_ms=self.horizon.modified_ms)
            self._now = replace(self._now, folders=folders)
        except ServiceError:
            await self._end_failed()
            raise
        await self._end("COMPLETED")
        await self._record()

    async def _delete(self, look: LastLook, late: LateNames) -> None:
        """Deletes batch after batch, beside others that do the same."""
        while some := await self._next():
            left = await look.unnamed(some, late)
            await self.files.delete([file.path for file in left])
            self._now = replace(self._now, deleted=self._now.deleted + len(left))

    def _last_look(self, *, at_least: int) -> LastLook:
        return LastLook(self.context, self.table, self.horizon, at_least)

    async def _next(self) -> list[DataFile]:
        async with self._reading:
            return await self.share.run(self._found.next, DELETED_AT_ONCE)

    async def _end(self, status: str) -> None:
        async with around(self.context.faults, VacuumStep.V5_END):
            metrics = {
                "numDeletedFiles": str(self._now.deleted),
                "numVacuumedDirectories": str(self._now.folders),
            }
            version = await landed(
                self.context, self.table, VACUUM_END, {"status": status}, metrics
            )
        self._now = replace(self._now, version=version)

    async def _end_failed(self) -> None:
        """What it failed of is told, whatever comes of this."""
        try:
            await self._end("FAILED")
        except ServiceError as error:
            logger.warning(
                "a vacuum's end is not in its table's log",
                extra={"table": self.table.name, "error": str(error)},
            )

    async def _record(self) -> None:
        """Have the table's upkeep tell of it. The vacuum is over whatever comes of this."""
        if self._now.version is None:
            return
        try:
            await self.context.upkeep.record_done(self.table.id, VACUUM, self._now.version)
        except ServiceError as error:
            logger.warning(
                "a vacuum's end is not in its table's upkeep",
                extra={"table": self.table.name, "error": str(error)},
            )

    def _start_parameters(self) -> dict[str, object]:
        parameters: dict[str, object] = {
            "retentionCheckEnabled": not self.request.allow_shorter,
            "defaultRetentionMillis": own_retention_ms(self.table),
        }
        if self.request.retain_ms is not None:
            parameters["specifiedRetentionMillis"] = self.request.retain_ms
        return parameters

    def _start_metrics(self) -> dict[str, str]:
        return {
            "numFilesToDelete": str(self._found.count),
            "sizeOfDataToDelete": str(self._found.size),
        }


async def _ticks(works: Sequence[Coroutine[None, None, None]]) -> AsyncGenerator[None]:
    """Every second until all of the works are done. Raises what one of them raises, and leaves the
    others then."""
    tasks = [asyncio.create_task(work, name="vacuum") for work in works]
    try:
        left = set(tasks)
        while left:
            done, left = await asyncio.wait(
                left, timeout=TICK_S, return_when=asyncio.FIRST_EXCEPTION
            )
            for task in done:
                task.result()
            yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                # The first one's was raised.
                task.exception()
