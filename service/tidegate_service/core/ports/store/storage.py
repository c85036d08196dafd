"""What the use cases need from object storage. `storage` implements it.

A call that meets a broken store raises `StorageUnavailable`: nothing is known to have happened.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.content import Content, LogFile
from tidegate_service.core.ports.checkpoints import CheckpointFiles
from tidegate_service.core.ports.store.data_files import DataFiles
from tidegate_service.core.ports.store.expired import ExpiredLog
from tidegate_service.core.ports.store.listing import LogEntry
from tidegate_service.core.ports.store.manifests import Manifests
from tidegate_service.core.ports.store.put_result import PutResult


class UnreadableFile(Exception):
    """A file of the log is not what its name says; the message says why."""


class MissingFile(UnreadableFile):
    """A checkpoint's file is not there."""


@dataclass(frozen=True, slots=True)
class DatedFile:
    """A file with its modification time in ms, in object stores by the store's clock and in whole
    seconds."""

    content: bytes | LogFile
    modified_ms: int

    def __len__(self) -> int:
        return len(self.content)


class LogReader(Protocol):
    """What a log is read by as a whole."""

    async def read(self, version: int) -> bytes | LogFile | None:
        """The bytes of `<version>.json`, in bounded memory where they are many; None where there is
        none. One that is too large to be read is a `LogFile` of its length that has no actions."""
        ...

    async def read_dated(self, version: int) -> DatedFile | None:
        """As `read`, with the modification time."""
        ...

    def entries(self, *, behind: int | None = None) -> AsyncIterator[Sequence[LogEntry]]:
        """What lies directly in the folder, in batches, in the byte order of the names: all of it,
        or what comes behind the commit `behind`, whether that is there or not. Raises
        `UnreadableFile` where there is more than is read."""
        ...

    def checkpoint_actions(self, name: str) -> AsyncIterator[Sequence[Action]]:
        """The actions of one checkpoint file (classic, a part, V2 as JSON or Parquet, or a
        sidecar as `_sidecars/<name>`), in batches, in bounded memory. Raises `UnreadableFile`
        where it is missing or is not such a file."""
        ...


class Log(LogReader, Protocol):
    """One table's `_delta_log` folder. Nothing here overwrites or deletes."""

    async def holds(self, version: int) -> bool:
        """Whether `<version>.json` is there, by one request that fetches nothing of it."""
        ...

    async def put_if_absent(self, version: int, content: Content) -> PutResult:
        """Write `<version>.json`, durably, unless it exists; tried exactly once.

        Raises `StorageUnknown` where the write may or may not have been applied, and
        `StorageUnavailable` where it was certainly not.
        """
        ...

    async def put_in_order(
        self, commits: Sequence[tuple[int, Content]], *, within_s: float
    ) -> Sequence[PutResult]:
        """`put_if_absent` for consecutive versions, each begun when the one before it is there,
        durable together on return. Ends behind the first whose name was taken, before one that
        cannot be written, and begins none after `within_s` seconds; returns the results so far.
        Raises like `put_if_absent` where the first one does.

        What a machine takes back that loses power meanwhile is not said to be there yet. Without
        a journal, a file system may keep a later name of those and lose an earlier one.
        """
        ...

    async def put_checksum(self, version: int, content: bytes) -> PutResult:
        """Write `<version>.crc` unless it exists, as `put_if_absent`."""
        ...

    async def put_compacted(self, first: int, last: int, content: bytes) -> PutResult:
        """Write `<first>.<last>.compacted.json` unless it exists, as `put_if_absent`."""
        ...

    async def holds_anything(self, *, but_version: int | None = None) -> bool:
        """True where the folder has any file of a log: a commit, a compacted one, a checkpoint, a
        checksum, `_last_checkpoint`, or what lies in its `_sidecars` and `_staged_commits`; but
        for the commit `but_version`."""
        ...

    async def read_staged(self, name: str, *, most_bytes: int) -> bytes | LogFile | None:
        """A file of `_staged_commits`, like `read`; one of more than `most_bytes` is a `LogFile` of
        its length that has no actions. `name` is one that `file_names.staged_version` knows."""
        ...

    def staged(self, versions: range) -> AsyncIterator[Sequence[LogEntry]]:
        """The files of `_staged_commits` that were staged as consecutive versions, in batches, in
        the byte order of the names. Raises `UnreadableFile` like `entries`."""
        ...

    async def read_file(self, name: str, *, most_bytes: int | None = None) -> bytes | None:
        """A small file of the folder, like `_last_checkpoint`; None where there is none. Raises
        `UnreadableFile` for one of more than `most_bytes`, or than is read of any small file."""
        ...


class Storage(Protocol):
    """Object storage. Locations are the canonical URLs of `core.access.locations`. Every call ends
    within a deadline of its own, whatever the store does."""

    def log(self, location: str, *, who: str | None = None) -> Log:
        """`who` is in whose name what takes long is read of it (`core.access.roles.share_of`): who
        reads much waits behind itself."""
        ...

    def checkpoints(self, location: str, *, who: str | None = None) -> CheckpointFiles:
        """Where the table's checkpoints are written, in the threads of `who` as above."""
        ...

    def expired(self, location: str) -> ExpiredLog:
        """What may be deleted of the log there, and nothing else."""
        ...

    def manifests(self, location: str) -> Manifests:
        """The symlink manifests of the table there."""
        ...

    def data_files(
        self,
        location: str,
        *,
        partition_columns: Collection[str],
        has_iceberg: bool = False,
        is_shared: bool = False,
        who: str | None = None,
    ) -> DataFiles:
        """The data files of the table at a location, whose partitions are folders by these columns;
        with Iceberg's metadata beside them, where it has that. Where the folder `is_shared`, a
        listing raises `Refused` once it meets the log of another table below. `who` as of `log`."""
        ...

    async def log_above(
        self, location: str, *, but: Collection[str] = (), who: str | None = None
    ) -> str | None:
        """The folder around a location, from the place for tables that it is in down to its parent,
        in whose `_delta_log` any file of a log lies, as `Log.holds_anything` says; None where there
        is none `but` some. `who` as of `log`."""
        ...

    async def probe(self) -> None:
        """Raise `StorageUnavailable` unless the warehouse can be written and honours put-if-absent
        (a second write of the same key is refused). Other places that fail are refused until they
        do."""
        ...
