"""What writing checkpoints needs: of the index, the snapshot as stored log lines in pages; of
storage, files of a log that are whole or not there.

A page is many log lines as one text, since a snapshot may have millions and none of them is looked
at one by one.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from tidegate_protocol.checkpoint.columns import FileColumns
from tidegate_protocol.log.actions import Action, Add, DomainMetadata, Metadata, Txn
from tidegate_protocol.log.actions import Protocol as TableProtocol
from tidegate_service.core.ports.records import CommitRecord, TableRecord
from tidegate_service.core.ports.store.put_result import PutResult

DIGEST_MODULUS = 2**63
"""A digest of files is the sum, modulo this, of Postgres's `hashtextextended` of each file's path,
deletion vector and the version that added the file. The order of the files does not matter, and the
digest of several sidecars is the sum of theirs."""
PathKey = tuple[str, str]
"""A file's path and its deletion vector's id or '', as the index's keys."""
BEFORE_ALL: PathKey = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallActionLimits:
    """How many application transactions and domains a checkpoint may have, and how many bytes of
    them as log lines. All of them are held while it is written, or compared."""

    number: int = 100_000
    size: int = 64 * 1024 * 1024

    def allow(self, number: int, size: int) -> bool:
        return number <= self.number and size <= self.size

    def __str__(self) -> str:
        return (
            f"more than {self.number:,} application transactions and domains, or {self.size:,} "
            "bytes of them"
        )


SMALL_ACTION_LIMITS = SmallActionLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """Rows of a checkpoint that are files. `adds` are log lines, one behind the other, of
    `num_adds` live files. A tombstone is when its file was removed (ms), and the log line of the
    file's add, or of the remove. `last` is the key of the page's last file, `digest` that of its
    live files; rows that are no page of the index have neither."""

    adds: bytes = b""
    num_adds: int = 0
    tombstones: Sequence[tuple[int, bytes]] = ()
    last: PathKey = BEFORE_ALL
    digest: int = 0

    @property
    def count(self) -> int:
        return self.num_adds + len(self.tombstones)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A table's head, or a version before, and what it adds up to, as of one moment: the version
    is `table.latest_version`. None stands for what would be too much to be looked through, or was
    written since.

    `bins` are the numbers of files and of bytes by the place in `checksum.histograms.SIZE_BINS`
    (-1 for sizes below 0), `cardinalities` those of the files' deletion vectors, `files` all of
    them.
    """

    table: TableRecord
    head: CommitRecord
    txns: Sequence[Txn] | None
    domains: Sequence[DomainMetadata] | None
    bins: Mapping[int, tuple[int, int]] | None
    cardinalities: Sequence[int] | None
    files: Sequence[Add] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHead:
    """A table's snapshot but for its files, and what tells whether it still is the table's.

    `now_ms` is the database's clock. `transactions` and `domains` are log lines; `num_files` counts
    the live files. `dropped` is another one once removed files may have left the index. `counted`
    is of the same moment, and None for a version that was not the latest then.
    """

    version: int
    latest_version: int
    published_version: int
    first_version: int
    epoch: int
    now_ms: int
    content_sha256: str | None
    protocol: TableProtocol
    metadata: Metadata
    transactions: Sequence[bytes]
    domains: Sequence[bytes]
    num_files: int
    dropped: str
    counted: Counted | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A file of `_sidecars` that holds the files behind the key `after`, up to where the next one
    begins. `modified_ms` by the store's clock; `digest` of its live files, None where the release
    before wrote it."""

    after: PathKey
    name: str
    size: int
    modified_ms: int
    num_adds: int
    num_removes: int
    digest: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSidecars:
    """What versions did to the files of a checkpoint's sidecars: those that hold files which were
    added or removed, by their `after`, and by how much the digest of all live files differs."""

    after: frozenset[PathKey]
    digest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a multi-part checkpoint that later ones take over, and that holds nothing but
    files: those that versions up to `through` added, behind those of the parts before it, and
    files that were removed before."""

    name: str
    size: int
    num_adds: int
    num_removes: int
    through: int


class CheckpointKind(StrEnum):
    CLASSIC = "classic"
    MULTI_PART = "multi-part"
    V2 = "v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCheckpoint:
    """The newest checkpoint that the service wrote of a table. `shape` names all that its sidecars
    and parts depend on beside their live files. A V2 checkpoint has `sidecars`, in the order of
    their keys; one of several parts may have `parts`, in the order of their numbers."""

    version: int
    epoch: int
    kind: str
    shape: str
    sidecars: Sequence[Sidecar] = ()
    parts: Sequence[Part] = ()


class CheckpointIndex(Protocol):
    """What `core.ports.index.Index` says of checkpoints."""

    async def snapshot_head(self, table_id: str, version: int | None) -> SnapshotHead:
        """The snapshot at a version, the latest one by default, but for its files. Raises
        `NotFound`, and `Refused` where an application or a domain was set since, as the index
        has the newest of each, or where these are too many to be held in memory."""

    async def is_published(self, table_id: str, head: SnapshotHead) -> bool:
        """Whether the version is published now. Raises `IndexUnavailable` where it is not the one
        that it was, since the index was made anew or the database set back."""

    def file_rows(
        self,
        table_id: str,
        head: SnapshotHead,
        *,
        removed_after_ms: int,
        after: PathKey = BEFORE_ALL,
        through: PathKey | None = None,
    ) -> AsyncIterator[FileRows]:
        """The files live at the version, and those that were removed later than `removed_after_ms`
        and are not live, in the order of their keys: all behind `after`, or those up to `through`.
        Each page is a query of its own. Raises as `is_published` does."""

    def unchanged_since(self, table_id: str, version: int) -> AsyncIterator[Sequence[bytes]]:
        """The log lines of application transactions and domains of a version that were not set
        since, in pages."""

    async def known_checkpoint(self, table_id: str) -> KnownCheckpoint | None:
        """What `keep_checkpoint` kept last."""

    async def changed_sidecars(
        self, table_id: str, known: KnownCheckpoint, *, version: int
    ) -> ChangedSidecars | None:
        """What the versions behind the checkpoint's, up to `version`, did. None where another
        checkpoint is known by now."""

    async def appended(
        self, table_id: str, head: SnapshotHead, *, after: int, beside_removed: bool
    ) -> FileRows | None:
        """The files that the versions behind `after`, up to the head's, added, where that is all
        that they did to files. None where it is not, where the files are too many to be held
        together, and, `beside_removed` ones, where one of them was removed before. A file that was
        added again while it was live is among them."""

    async def keep_checkpoint(self, table_id: str, checkpoint: KnownCheckpoint) -> None:
        """Remember a checkpoint, unless a newer one is; in the place of the one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file of a log that is there whole. `size` in bytes, `modified_ms` by the store's clock.
    EXISTS: the name was taken before."""

    result: PutResult
    size: int
    modified_ms: int


class CheckpointFile(Protocol):
    """One file that nobody sees yet."""

    async def take(self, rows: FileRows) -> None:
        """Write some files' rows."""
        ...

    async def take_actions(self, actions: Sequence[Action]) -> None:
        """Write the rows of other actions."""
        ...

    async def put(self) -> WrittenFile:
        """Give it its name, durably, unless that is taken.

        Raises `StorageUnavailable` where it was not, and `StorageUnknown` where it may have been.
        """
        ...


class CheckpointFiles(Protocol):
    """The checkpoints of one table's log. Nothing here overwrites or deletes, but for
    `_last_checkpoint`, which is replaced as a whole."""

    def writing(
        self, name: str, columns: FileColumns
    ) -> AbstractAsyncContextManager[CheckpointFile]:
        """A new file of the log, Parquet or JSON by its name; `_sidecars/<name>` for a sidecar.
        Left without `put`, it was never there."""
        ...

    async def sidecars(self, names: Collection[str]) -> Mapping[str, int]:
        """The sizes, in bytes, of those of the files in `_sidecars` that are there."""
        ...

    async def parts(self, version: int) -> frozenset[int]:
        """The numbers of parts that checkpoints of the version have, whole or not."""
        ...

    @property
    def can_take_over(self) -> bool:
        """Whether `take_over` is for nothing here, however large the files are."""
        ...

    async def take_over(self, names: Sequence[tuple[str, str]]) -> Sequence[WrittenFile] | None:
        """Give files of the log, each by its name, another name, too, durably. None where one is
        not there, cannot have another name, or where a new name is taken; then some may have got
        theirs. Raises `StorageUnavailable`, and `StorageUnknown` where a name may be there."""
        ...

    async def point_to(self, version: int, content: bytes) -> bool:
        """Make this the content of `_last_checkpoint`, durably and at once, unless that points to
        a later version; whether it did. Two at a time may leave either: a pointer that is a
        checkpoint behind costs readers time only."""
        ...
