"""What a commit's actions say of changed rows (PROTOCOL.md, "Reader Requirements for CDC").

Change data files, where a commit has some, hold its changes. Else rows were inserted and deleted
with the files that it adds and removes, and of a file that it commits again with another deletion
vector, those in which the two vectors differ. A MERGE that changed no row may have written files
again all the same, and has no change data then.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidegate.handle import TableHandle
from tidegate.spark.errors import ChangesUnavailable
from tidegate_protocol.log.actions import (
    Action,
    Add,
    AddCDCFile,
    CommitInfo,
    DeletionVector,
    Metadata,
    Protocol,
    Remove,
)
from tidegate_protocol.log.paths import identity
from tidegate_protocol.replay.commits import parse_commit

INSERT, DELETE = "insert", "delete"
_CHANGED_BY_MERGE = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")

A = TypeVar("A", Add, Remove)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The actions of a version; `timestamp` in ms."""

    version: int
    timestamp: int
    actions: tuple[Action, ...]

    @property
    def metadata(self) -> Metadata | None:
        return next((a for a in self.actions if isinstance(a, Metadata)), None)

    @property
    def protocol(self) -> Protocol | None:
        return next((a for a in self.actions if isinstance(a, Protocol)), None)

    @property
    def only_copies(self) -> bool:
        """Whether it is a MERGE which says that it changed no row (Delta:
        `CDCReader.shouldSkipFileActionsInCommit`)."""
        info = next((a for a in self.actions if isinstance(a, CommitInfo)), None)
        if info is None or info.operation != "MERGE":
            return False
        metrics = info.operation_metrics or {}
        return all(str(metrics.get(name)) == "0" for name in _CHANGED_BY_MERGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file with rows that a commit changed; `timestamp` in ms.

    `change_type` is None for a change data file, which says it of each row. Of the file's rows,
    those in the vector `among` count where there is one, and those in `without` do not.
    """

    path: str
    partition_values: dict[str, str | None]
    size: int
    version: int
    timestamp: int
    change_type: str | None
    among: DeletionVector | None = None
    without: DeletionVector | None = None

    @property
    def file(self) -> Add:
        """As the readers of files take it."""
        return Add(
            path=self.path,
            partition_values=self.partition_values,
            size=self.size,
            modification_time=self.timestamp,
            data_change=False,
        )


def commits_of(table: TableHandle, first: int, last: int) -> Iterator[Commit]:
    """The commits between two versions, both included, each read when it is asked for. Raises
    `VersionNotFound` where the log does not go back so far."""
    found = table.history(from_version=first, to_version=last)
    timestamps = {commit.version: commit.timestamp for commit in found}
    for version in range(first, last + 1):
        actions = parse_commit(table.commit_bytes(version))
        yield Commit(version=version, timestamp=timestamps[version], actions=actions)


def changed_files(commit: Commit) -> list[ChangedFile]:
    """The files with the rows that a commit changed. Raises `ChangesUnavailable` for a removal that
    does not say enough of its file."""
    written = [a for a in commit.actions if isinstance(a, AddCDCFile)]
    if written:
        return [_changed(commit, cdc, None) for cdc in written]
    if commit.only_copies:
        return []
    added = _by_path(a for a in commit.actions if isinstance(a, Add) and a.data_change)
    removed = _by_path(a for a in commit.actions if isinstance(a, Remove) and a.data_change)
    found = []
    for path, old in removed.items():
        new = added.pop(path, None)
        if new is None:
            found.append(_changed(commit, old, DELETE, without=old.deletion_vector))
            continue
        before, after = old.deletion_vector, new.deletion_vector
        if after is not None and after != before:
            found.append(_changed(commit, new, DELETE, among=after, without=before))
        if before is not None and after != before:
            found.append(_changed(commit, new, INSERT, among=before, without=after))
    found += [_changed(commit, a, INSERT, without=a.deletion_vector) for a in added.values()]
    return found


def _by_path(actions: Iterable[A]) -> dict[str, A]:
    return {identity(action.path): action for action in actions}


def _changed(
    commit: Commit,
    action: Add | Remove | AddCDCFile,
    change_type: str | None,
    *,
    among: DeletionVector | None = None,
    without: DeletionVector | None = None,
) -> ChangedFile:
    if action.partition_values is None:
        raise ChangesUnavailable(
            "RemoveFile created without extended metadata is ineligible for CDC: "
            f"{action.path}, removed at version {commit.version}",
            error_class="DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
        )
    return ChangedFile(
        path=action.path,
        partition_values=action.partition_values,
        size=action.size or 0,
        version=commit.version,
        timestamp=commit.timestamp,
        change_type=change_type,
        among=among,
        without=without,
    )


def descriptors(files: Sequence[ChangedFile]) -> list[DeletionVector]:
    """Every deletion vector that has to be read for the files, once."""
    found = [v for file in files for v in (file.among, file.without) if v is not None]
    return list({vector.unique_id: vector for vector in found}.values())
