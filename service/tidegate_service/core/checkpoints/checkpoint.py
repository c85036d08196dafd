"""Writing a table's checkpoint from the index, as the table's properties ask for it.

Its files are put one by one. The file that makes it a checkpoint comes after the files that it
names, and `_last_checkpoint` at the end. So whoever reads the log meanwhile, or after the writer
was cut off, meets a whole checkpoint or none.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from tidegate_protocol.checkpoint.columns import FileColumns, file_columns
from tidegate_protocol.checkpoint.last_checkpoint import LastCheckpoint, V2Files, encode
from tidegate_protocol.checkpoint.policy import CheckpointPolicy, policy_of
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.file_names import checkpoint_name
from tidegate_protocol.log.segment import Checkpoint
from tidegate_service.core.checkpoints.already_there import already_there
from tidegate_service.core.checkpoints.checksum import put_checksum
from tidegate_service.core.checkpoints.same_log import SameLog
from tidegate_service.core.checkpoints.snapshot_rows import SnapshotRows, small_actions
from tidegate_service.core.checkpoints.taken_over import PartsWriting, TakingOver
from tidegate_service.core.checkpoints.v2_checkpoint import shape_of, write_v2
from tidegate_service.core.errors import StorageUnavailable, TableQuarantined
from tidegate_service.core.observe.faults import NO_FAULTS, CheckpointStep, FaultPoints, around
from tidegate_service.core.observe.ports_with_faults import with_faults
from tidegate_service.core.ports.checkpoints import (
    CheckpointFile,
    CheckpointFiles,
    CheckpointKind,
    KnownCheckpoint,
    SnapshotHead,
    WrittenFile,
)
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableHead, TableState
from tidegate_service.core.ports.store.put_result import PutResult
from tidegate_service.core.ports.store.storage import Storage

PART_FILES = 1_000_000
"""Live files in a part that later checkpoints take over."""
SIDECAR_FILES = 20_000
"""Live files in a V2 checkpoint's sidecar. The sidecars that a commit touches are written again."""
PUBLISHED_WITHIN_S = 20.0
ASKED_EVERY_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointWritten:
    """A checkpoint that readers find. `files` and `bytes` are what it has, `files_written` and
    `bytes_written` what had to be written: a V2 checkpoint names sidecars of earlier ones, and a
    checkpoint of several parts may take parts over. `took` is in seconds."""

    version: int
    kind: CheckpointKind
    files: int
    bytes: int
    files_written: int
    bytes_written: int
    num_actions: int
    took: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLayout:
    """How many live files are in a part and in a sidecar, about, and what the main file of a V2
    checkpoint is."""

    part_files: int = PART_FILES
    sidecar_files: int = SIDECAR_FILES
    v2_form: Literal["json", "parquet"] = "parquet"


LAYOUT = CheckpointLayout()


async def write_checkpoint(
    index: Index,
    storage: Storage,
    table: TableHead,
    version: int | None = None,
    *,
    who: str | None = None,
    layout: CheckpointLayout = LAYOUT,
    taking_over: TakingOver | None = None,
    faults: FaultPoints = NO_FAULTS,
    new_id: Callable[[], str] = lambda: str(uuid4()),
    monotonic_s: Callable[[], float] = time.monotonic,
    published_within_s: float = PUBLISHED_WITHIN_S,
) -> CheckpointWritten:
    """Write the checkpoint of a version, the latest one by default, and point to it; in the
    turns of `who` at the store's threads. With parts of the last one where `taking_over` says so.
    The latest one gets a checksum, too.

    A version that is not published is waited for. Raises `TableQuarantined`, `NotFound` for a
    version that is not there, and `Refused` where its snapshot is not known as a whole any more, or
    where the log has a checkpoint of the version that cannot be read. Raises `Unavailable` where
    the version is not published in time, is another one by then, is not what lies in the log, or
    where a file could not be put. What was put until then is in nobody's way.
    """
    began = monotonic_s()
    if table.state is TableState.QUARANTINED:
        raise TableQuarantined(
            f"the table is quarantined: {table.state_reason}; no checkpoint is written of it"
        )
    head = await index.snapshot_head(table.id, version)
    deadline = began + published_within_s
    while not await index.is_published(table.id, head):
        if monotonic_s() > deadline:
            raise StorageUnavailable(
                f"version {head.version} is not in the log yet; its checkpoint can be written then"
            )
        await asyncio.sleep(ASKED_EVERY_S)
    log = storage.log(table.location, who=who)
    writing = _Writing(
        index=index,
        files=with_faults(
            storage.checkpoints(table.location, who=who),
            faults,
            {CheckpointFiles.point_to: CheckpointStep.LAST_CHECKPOINT_PUT},
        ),
        same_log=SameLog(index, log, table, head),
        table_id=table.id,
        head=head,
        policy=policy_of(head.protocol, head.metadata),
        layout=layout,
        taking_over=taking_over,
        faults=faults,
        new_id=new_id,
    )
    await writing.same_log.check()
    made = await writing.write()
    # Meanwhile, others may have put another table's log there.
    await writing.same_log.check()
    await writing.files.point_to(head.version, encode(made.last))
    await index.keep_checkpoint(table.id, made.known)
    # Behind the rest: a store that does not take the checksum keeps nobody from the checkpoint.
    if head.counted is not None:
        await put_checksum(log, head.counted, faults)
    return CheckpointWritten(
        version=head.version,
        kind=CheckpointKind(made.known.kind),
        files=made.files,
        bytes=made.last.size,
        files_written=made.files_written,
        bytes_written=made.bytes_written,
        num_actions=made.last.num_actions,
        took=monotonic_s() - began,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    last: LastCheckpoint
    known: KnownCheckpoint
    files: int
    files_written: int
    bytes_written: int


@dataclass(slots=True, kw_only=True)
class _Writing:
    index: Index
    files: CheckpointFiles
    same_log: SameLog
    table_id: str
    head: SnapshotHead
    policy: CheckpointPolicy
    layout: CheckpointLayout
    taking_over: TakingOver | None
    faults: FaultPoints
    new_id: Callable[[], str]

    async def write(self) -> _Made:
        columns = file_columns(self.head.metadata, self.policy)
        actions = await small_actions(self.head, self.policy)
        if self.policy.is_v2:
            return await self._v2(columns, actions)
        known = await self.index.known_checkpoint(self.table_id)
        there = await already_there(self.same_log, self.head, self._rows(), known, len(actions))
        if there is not None:
            last, known = there
            files = last.parts or 1
            return _Made(last=last, known=known, files=files, files_written=0, bytes_written=0)
        if self.taking_over is not None and not self.policy.has_v2_feature:
            made = await self._with_parts(columns, actions, self.taking_over)
            if made is not None:
                return made
        return await self._classic(columns, actions)

    async def _classic(self, columns: FileColumns, actions: list[Action]) -> _Made:
        """Where another writer's checkpoint has the name already, it is pointed to only if it is
        the same snapshot."""
        rows = self._rows()
        name = checkpoint_name(self.head.version)
        async with self.files.writing(name, columns) as file:
            await file.take_actions(actions)
            async for page in rows.pages():
                await file.take(page)
            written = await self._put_last(file, rows)
        if written.result is PutResult.EXISTS:
            found = Checkpoint(version=self.head.version, files=(name,))
            await self.same_log.check_checkpoint(found)
        last = LastCheckpoint(
            version=self.head.version,
            num_actions=rows.count + len(actions),
            num_adds=rows.num_adds,
            size=written.size,
        )
        known = KnownCheckpoint(
            version=self.head.version,
            epoch=self.head.epoch,
            kind=CheckpointKind.CLASSIC.value,
            shape="",
        )
        return _Made(last=last, known=known, files=1, files_written=1, bytes_written=written.size)

    async def _with_parts(
        self, columns: FileColumns, actions: list[Action], taking_over: TakingOver
    ) -> _Made | None:
        writing = PartsWriting(
            index=self.index,
            files=self.files,
            same_log=self.same_log,
            table_id=self.table_id,
            head=self.head,
            columns=columns,
            actions=actions,
            shape=shape_of(columns),
            part_files=self.layout.part_files,
            taking_over=taking_over,
            faults=self.faults,
            rows=self._rows,
        )
        written = await writing.write()
        if written is None:
            return None
        return _Made(
            last=LastCheckpoint(
                version=self.head.version,
                num_actions=written.num_adds + written.num_removes + len(actions),
                num_adds=written.num_adds,
                size=written.bytes,
                parts=written.parts,
            ),
            known=written.known,
            files=written.parts,
            files_written=written.files_written,
            bytes_written=written.bytes_written,
        )

    async def _v2(self, columns: FileColumns, actions: list[Action]) -> _Made:
        v2 = await write_v2(
            self.index,
            self.files,
            self.table_id,
            self.head,
            columns,
            policy=self.policy,
            actions=actions,
            sidecar_files=self.layout.sidecar_files,
            form=self.layout.v2_form,
            faults=self.faults,
            same_log=self.same_log,
            new_id=self.new_id,
        )
        main = V2Files(path=v2.name, size=v2.main.size, modified_ms=v2.main.modified_ms)
        sidecars = v2.known.sidecars
        last = LastCheckpoint(
            version=self.head.version,
            num_actions=v2.num_actions,
            num_adds=sum(sidecar.num_adds for sidecar in sidecars),
            size=v2.main.size + sum(sidecar.size for sidecar in sidecars),
            v2=main,
        )
        return _Made(
            last=last,
            known=v2.known,
            files=1 + len(sidecars),
            files_written=v2.files_written,
            bytes_written=v2.bytes_written,
        )

    def _rows(self) -> SnapshotRows:
        return SnapshotRows(self.index, self.table_id, self.head, self.policy)

    async def _put_last(self, file: CheckpointFile, rows: SnapshotRows) -> WrittenFile:
        rows.check_complete()
        # Nothing was read from a database that has lost the version since.
        await self.same_log.check()
        await self.same_log.check_none()
        async with around(self.faults, CheckpointStep.CHECKPOINT_PUT):
            return await file.put()
