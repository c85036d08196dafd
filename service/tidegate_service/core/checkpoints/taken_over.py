"""A checkpoint of several parts that takes parts of the last one over. Where commits only added
files since, it costs no more than they did.

The last part has the small actions and the newest files, and is written anew each time. The other
parts have files alone. The next checkpoint takes these parts over, under names of its own. Once the
last part has many files, they become a part of their own. Where anything was removed, or the parts
are many, all parts are written anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidegate_protocol.checkpoint.columns import FileColumns
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.file_names import part_name
from tidegate_service.core.checkpoints.same_log import SameLog
from tidegate_service.core.checkpoints.snapshot_rows import SnapshotRows
from tidegate_service.core.observe.faults import CheckpointStep, FaultPoints, around
from tidegate_service.core.ports.checkpoints import (
    CheckpointFile,
    CheckpointFiles,
    CheckpointIndex,
    CheckpointKind,
    FileRows,
    KnownCheckpoint,
    Part,
    SnapshotHead,
    WrittenFile,
)
from tidegate_service.core.ports.store.put_result import PutResult

FILES = 5_000
"""The parts of a table's checkpoint are taken over where it has so many live files."""
VERSIONS = 100
"""Parts begin to be taken over where so many versions came since the last checkpoint: the table is
a hot one."""
MOST_PARTS = 40
"""Where there are more parts, all are written anew: readers open a file for each."""
LAST_FILES = 2_000
"""The last part's files become a part of their own where they are so many, and one in `SHARES` of
all files at least. So all parts are written anew about as often as the table doubles."""
SHARES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TakingOver:
    """From how many live files and versions on parts are taken over, how many files a last part
    may have, and how many there may be of those that are taken over."""

    files: int = FILES
    versions: int = VERSIONS
    last_files: int = LAST_FILES
    most_parts: int = MOST_PARTS


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsWritten:
    """`parts` is how many the checkpoint has, `files_written` of how many of them were written."""

    known: KnownCheckpoint
    parts: int
    num_adds: int
    num_removes: int
    bytes: int
    files_written: int
    bytes_written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsWriting:
    """What such a checkpoint is written with. `put_last` names the file that makes it one."""

    index: CheckpointIndex
    files: CheckpointFiles
    same_log: SameLog
    table_id: str
    head: SnapshotHead
    columns: FileColumns
    actions: Sequence[Action]
    shape: str
    part_files: int
    taking_over: TakingOver
    faults: FaultPoints
    rows: Callable[[], SnapshotRows]

    async def write(self) -> PartsWritten | None:
        """Write the checkpoint. None where another kind of checkpoint is better, or has to be
        written since a name is taken. Files that were put until then are no whole checkpoint, and
        in nobody's way."""
        known = await self.index.known_checkpoint(self.table_id)
        is_large = self.head.num_files >= self.taking_over.files
        if known is None or not is_large or not self.files.can_take_over:
            return None
        if known.epoch != self.head.epoch or known.version > self.head.version:
            return None
        if known.parts and known.shape == self._shape(known.parts):
            return await self._on(known)
        if self.head.version - known.version < self.taking_over.versions:
            return None
        since = await self.index.appended(
            self.table_id, self.head, after=known.version, beside_removed=False
        )
        # Of a table that removes files, too, nothing would be taken over.
        return None if since is None else await self._anew()

    async def _on(self, known: KnownCheckpoint) -> PartsWritten | None:
        """The checkpoint with the parts of the last one."""
        newest = await self.index.appended(
            self.table_id,
            self.head,
            after=known.parts[-1].through,
            beside_removed=any(part.num_removes for part in known.parts),
        )
        if newest is None:
            return None
        num_adds = newest.num_adds + sum(part.num_adds for part in known.parts)
        # Or a file was added again while it was live.
        if num_adds != self.head.num_files:
            return None
        becomes_part = newest.num_adds >= max(
            self.taking_over.last_files, self.head.num_files // SHARES
        )
        if len(known.parts) + becomes_part > self.taking_over.most_parts:
            return await self._anew()
        number = len(known.parts) + becomes_part + 1
        if number in await self.files.parts(self.head.version):
            return None
        async with around(self.faults, CheckpointStep.PARTS_PUT):
            parts = await self._taken_over(known.parts, number)
            if parts is None:
                return None
            if becomes_part:
                part = await self._part(len(parts) + 1, number, newest)
                if part is None:
                    return None
                parts = [*parts, part]
        return await self._with_last(parts, FileRows() if becomes_part else newest)

    async def _taken_over(self, parts: Sequence[Part], number: int) -> list[Part] | None:
        version = self.head.version
        names = [part_name(version, place, number) for place in range(1, len(parts) + 1)]
        found = await self.files.take_over(
            [(part.name, name) for part, name in zip(parts, names, strict=True)]
        )
        if found is None or [file.size for file in found] != [part.size for part in parts]:
            return None
        return [replace(part, name=name) for part, name in zip(parts, names, strict=True)]

    async def _part(self, place: int, number: int, newest: FileRows) -> Part | None:
        name = part_name(self.head.version, place, number)
        async with self.files.writing(name, self.columns) as file:
            await file.take(newest)
            written = await file.put()
        if written.result is PutResult.EXISTS:
            return None
        return self._known(name, written, newest.num_adds, 0)

    async def _anew(self) -> PartsWritten | None:
        """All files in parts that the next checkpoint takes over."""
        version = self.head.version
        count = -(-self.head.num_files // self.part_files)
        if count + 1 in await self.files.parts(version):
            return None
        rows = self.rows()
        coming = rows.portions(-(-self.head.num_files // count))
        parts: list[Part] = []
        async with around(self.faults, CheckpointStep.PARTS_PUT):
            for place in range(1, count + 1):
                name = part_name(version, place, count + 1)
                adds, count_before = rows.num_adds, rows.count
                async with self.files.writing(name, self.columns) as file:
                    await (coming.drain(file) if place == count else coming.fill(file))
                    written = await file.put()
                if written.result is PutResult.EXISTS:
                    return None
                num_adds = rows.num_adds - adds
                num_removes = rows.count - count_before - num_adds
                parts.append(self._known(name, written, num_adds, num_removes))
        rows.check_complete()
        return await self._with_last(parts, FileRows())

    def _known(self, name: str, written: WrittenFile, num_adds: int, num_removes: int) -> Part:
        return Part(
            name=name,
            size=written.size,
            num_adds=num_adds,
            num_removes=num_removes,
            through=self.head.version,
        )

    async def _with_last(self, parts: Sequence[Part], newest: FileRows) -> PartsWritten | None:
        """The checkpoint is whole when its last part has its name."""
        name = part_name(self.head.version, len(parts) + 1, len(parts) + 1)
        async with self.files.writing(name, self.columns) as file:
            await file.take_actions(self.actions)
            await file.take(newest)
            last = await self._put_last(file)
        if last.result is PutResult.EXISTS:
            return None
        new = [part for part in parts if part.through == self.head.version]
        return PartsWritten(
            known=KnownCheckpoint(
                version=self.head.version,
                epoch=self.head.epoch,
                kind=CheckpointKind.MULTI_PART.value,
                shape=self._shape(parts),
                parts=parts,
            ),
            parts=len(parts) + 1,
            num_adds=newest.num_adds + sum(part.num_adds for part in parts),
            num_removes=sum(part.num_removes for part in parts),
            bytes=last.size + sum(part.size for part in parts),
            files_written=1 + len(new),
            bytes_written=last.size + sum(part.size for part in new),
        )

    def _shape(self, parts: Sequence[Part]) -> str:
        """Parts that name removed files depend on the index naming these, too: a file that comes
        back would else be in the checkpoint twice, as one that is live and as one that is not."""
        has_removed = any(part.num_removes for part in parts)
        return f"{self.shape} {self.head.dropped}" if has_removed else self.shape

    async def _put_last(self, file: CheckpointFile) -> WrittenFile:
        # Nothing was read from a database that has lost the version since.
        await self.same_log.check()
        await self.same_log.check_none()
        async with around(self.faults, CheckpointStep.CHECKPOINT_PUT):
            return await file.put()
