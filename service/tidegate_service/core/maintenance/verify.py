"""Comparing what the index holds of a table with its log in storage.

Version by version: the bytes in storage, the bytes that the index keeps and the digest in the
version's row must be the same, and the index's rows must be what those bytes' actions make. By
induction that proves every snapshot. Nothing is locked and nothing is written; commits that
land meanwhile are left to the next call.
"""

import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidegate_protocol.actions import Action
from tidegate_protocol.commits import UnreadableCommit, parse_commit
from tidegate_protocol.log_files import CommitFile, parse
from tidegate_protocol.log_segment import BrokenLog, LogSegment, choose_segment
from tidegate_protocol.problems import Code
from tidegate_service.core.checkpoints import snapshot_actions
from tidegate_service.core.comparison import FileCounts
from tidegate_service.core.context import Context
from tidegate_service.core.errors import IndexUnavailable, Refused
from tidegate_service.core.ports import Log, UnreadableFile
from tidegate_service.core.records import CommitRecord, TableRecord
from tidegate_service.core.tables import get_table

PAGE_S = 10.0
"""How long one call goes on taking further versions, in seconds."""


class DifferenceKind(StrEnum):
    """Where the difference lies: in the log's files, in the bytes that the index keeps, or in
    its rows."""

    STORAGE = "storage"
    CONTENT = "content"
    INDEX = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`version` is None where it concerns the table as a whole."""

    version: int | None
    kind: DifferenceKind
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Versions `from_version .. through_version` were compared; `next_version` is where to go
    on, None at the end. `cleaned_up` of them are not in storage any more, under a checkpoint;
    `not_ingested` versions lie in storage beyond a plain table's head, for the next commit to
    take in."""

    table: TableRecord
    from_version: int
    through_version: int
    next_version: int | None
    cleaned_up: int
    not_ingested: int
    differences: tuple[Difference, ...]


async def verify_table(
    context: Context, ref: str, *, from_version: int | None = None, limit: int = 1000
) -> Verification:
    """Compare up to `limit` versions from `from_version` on (default: the index's first), as
    many as fit in the time of one call.

    Raises `NotFound` for the table, `Refused` for a version that it does not have, and
    `Unavailable` where the index or the store cannot be asked.
    """
    table = await get_table(context, ref)
    first = table.first_version if from_version is None else from_version
    if not table.first_version <= first <= table.latest_version:
        raise Refused(
            f"from_version {first} is not a version that the index holds of {table.name}: "
            f"expected {table.first_version} to {table.latest_version}",
            code=Code.INVALID_REQUEST,
        )
    return await _Page(context, table, first, limit).verified()


class _Page:
    def __init__(self, context: Context, table: TableRecord, first: int, limit: int) -> None:
        self._context = context
        self._index = context.index
        self._table = table
        self._log: Log = context.storage.log(table.location)
        self._first = first
        self._last = min(table.latest_version, first + limit - 1)
        self._differences: list[Difference] = []
        self._cleaned_up = 0

    async def verified(self) -> Verification:
        until = self._context.monotonic_s() + PAGE_S
        commits, segment = await self._listed()
        counts = await self._index.file_counts(self._table.id, self._first, self._last)
        version = self._first
        while True:
            await self._version(version, commits, segment, counts.get(version, FileCounts(0, 0)))
            if version == self._last or self._context.monotonic_s() > until:
                break
            version += 1
        if version == self._table.latest_version:
            for detail in await self._index.compare_head(self._table.id):
                self._found(None, DifferenceKind.INDEX, detail)
        head = await self._head()
        beyond = sum(found > head for found in commits)
        if beyond and self._table.catalog_managed:
            self._found(
                None,
                DifferenceKind.STORAGE,
                f"{beyond} versions lie in the log beyond the head, {head}",
            )
        return Verification(
            table=self._table,
            from_version=self._first,
            through_version=version,
            next_version=version + 1 if version < self._table.latest_version else None,
            cleaned_up=self._cleaned_up,
            not_ingested=0 if self._table.catalog_managed else beyond,
            differences=tuple(self._differences),
        )

    async def _head(self) -> int:
        """The table's newest version now: what was committed since it was looked up lies in the
        log, too."""
        now = await get_table(self._context, self._table.id)
        if now.first_version != self._table.first_version:
            raise IndexUnavailable(
                f"the index of table {now.name} was made anew while it was compared; ask again"
            )
        return now.latest_version

    async def _listed(self) -> tuple[set[int], LogSegment | None]:
        files: list[tuple[str, int]] = []
        async for entries in self._log.entries():
            files += [(entry.name, entry.size) for entry in entries]
        commits = {file.version for name, _ in files if isinstance(file := parse(name), CommitFile)}
        try:
            return commits, choose_segment(files)
        except BrokenLog as error:
            if self._table.published_version >= 0:
                self._found(None, DifferenceKind.STORAGE, f"the log cannot be read: {error}")
            return commits, None

    async def _version(
        self, version: int, commits: set[int], segment: LogSegment | None, counts: FileCounts
    ) -> None:
        record = await self._index.commit(self._table.id, version)
        if record is None:
            self._found(version, DifferenceKind.INDEX, "it has no row")
            return
        stored = await self._stored(record, commits, segment)
        kept = await self._index.stored_content(self._table.id, version)
        if kept is None and record.content_sha256 is not None:
            self._found(version, DifferenceKind.CONTENT, "the index does not keep its bytes")
        if kept is not None and _sha256(kept) != record.content_sha256:
            self._found(
                version, DifferenceKind.CONTENT, _differing(kept, record, "the bytes kept for it")
            )
        if version == self._table.first_version and version > 0:
            await self._base(version, segment, counts)
            return
        content = stored or kept
        # Bytes that are not the commit's say nothing of its rows.
        if content is not None and _sha256(content) == record.content_sha256:
            try:
                actions = parse_commit(content)
            except UnreadableCommit as error:
                self._found(version, DifferenceKind.CONTENT, f"it cannot be read: {error}")
                return
            await self._rows(version, _once(actions), counts)

    async def _stored(
        self, record: CommitRecord, commits: set[int], segment: LogSegment | None
    ) -> bytes | None:
        version = record.version
        stored = await self._log.read(version) if version in commits else None
        if stored is not None and record.content_sha256 is not None:
            if _sha256(stored) != record.content_sha256:
                self._found(version, DifferenceKind.STORAGE, _differing(stored, record, "its file"))
            return stored
        if version <= self._table.published_version and stored is None:
            if segment is not None and version < segment.replayed.start:
                self._cleaned_up += 1
            elif segment is not None:
                self._found(version, DifferenceKind.STORAGE, "its file is missing from the log")
        return stored

    async def _base(self, version: int, segment: LogSegment | None, counts: FileCounts) -> None:
        """The first version of a table whose log starts with a checkpoint; once the log has
        moved on to a later one, nothing is left to compare it with."""
        checkpoint = None if segment is None else segment.checkpoint
        if checkpoint is None or checkpoint.version != version:
            return
        try:
            await self._rows(
                version,
                snapshot_actions(self._log, checkpoint, location=self._table.location),
                counts,
            )
        except UnreadableFile as error:
            self._found(version, DifferenceKind.STORAGE, f"its checkpoint cannot be read: {error}")

    async def _rows(
        self, version: int, batches: AsyncIterator[Sequence[Action]], counts: FileCounts
    ) -> None:
        opened, closed = 0, 0
        async for actions in batches:
            compared = await self._index.compare(self._table.id, version, actions)
            for detail in compared.differences:
                self._found(version, DifferenceKind.INDEX, detail)
            opened += compared.counts.opened
            closed += compared.counts.closed
        if counts.opened != opened:
            self._found(
                version,
                DifferenceKind.INDEX,
                f"expected it to add {opened} files, found {counts.opened}",
            )
        if counts.closed != closed:
            self._found(
                version,
                DifferenceKind.INDEX,
                f"{counts.closed} files ended with it, {closed} of which its actions name",
            )

    def _found(self, version: int | None, kind: DifferenceKind, detail: str) -> None:
        self._differences.append(Difference(version=version, kind=kind, detail=detail))


async def _once(actions: Sequence[Action]) -> AsyncIterator[Sequence[Action]]:
    yield actions


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _differing(content: bytes, record: CommitRecord, what: str) -> str:
    return (
        f"{what} differ from what was committed: expected SHA-256 {record.content_sha256}, "
        f"found {_sha256(content)} ({len(content)} bytes)"
    )
