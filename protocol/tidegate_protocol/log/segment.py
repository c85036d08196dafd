"""Which files of a `_delta_log` make a table, and from which version on it can be made.

Delta's readers look for the newest snapshot (SnapshotManagement, "getLogSegmentForVersion");
here the oldest one is looked for from which every later version follows, so that a table's past
reaches as far back as its log does. Only the listing is believed: `_last_checkpoint` is a hint
that may be stale or wrong, compacted files repeat commits that are there, checksums prove
nothing that is needed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidegate_protocol.log.file_names import (
    CheckpointFile,
    ChecksumFile,
    CommitFile,
    MultiPartCheckpoint,
    V2Checkpoint,
    parse,
)

MAX_HEAD = 2**62
"""Versions are 64-bit numbers, and a table goes on behind the newest one."""


class BrokenLog(ValueError):
    """The log cannot be read as a table; the message says what is missing or wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A complete checkpoint: `files` are its names, all parts in order. A V2 checkpoint names
    further files, its sidecars, in its content."""

    version: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """What to read: the checkpoint at `base`, or nothing where `base` is version 0's own commit,
    then the commits `replayed`, of which each one is there.

    `newest` is the checkpoint that other readers start from; None where there is none beyond the
    base. `older` are the commits before the base, in their order: nothing follows from them.
    """

    head: int
    checkpoint: Checkpoint | None
    newest: Checkpoint | None
    replayed: range
    older: tuple[int, ...] = ()


Rank = tuple[int, int, str]


class Listing:
    """What lies directly inside `_delta_log`, in any order. `files` are names and sizes (bytes);
    many are taken up some at a time. `commits` are the versions whose commits are there,
    `checksums` those that have a `<version>.crc`."""

    def __init__(self, files: Iterable[tuple[str, int]] = ()) -> None:
        self.commits: set[int] = set()
        self.checksums: set[int] = set()
        # By version, the one that Delta prefers among several.
        self._ranked: dict[int, tuple[Rank, Checkpoint]] = {}
        self._parts: dict[tuple[int, int], dict[int, str]] = {}
        self._count = 0
        self.take(files)

    def __len__(self) -> int:
        return self._count

    def take(self, files: Iterable[tuple[str, int]]) -> None:
        """These are there, too."""
        for name, size in files:
            self._count += 1
            match parse(name):
                case CommitFile(version=version):
                    self.commits.add(version)
                case ChecksumFile(version=version):
                    self.checksums.add(version)
                case CheckpointFile() | MultiPartCheckpoint() | V2Checkpoint() if size == 0:
                    # Left by a writer that died; Delta passes over it too.
                    pass
                case CheckpointFile(version=version):
                    _prefer(self._ranked, version, (0, 1, ""), (name,))
                case MultiPartCheckpoint(version=version, part=part, parts=of):
                    self._parts.setdefault((version, of), {})[part] = name
                case V2Checkpoint(version=version, uuid=uuid):
                    _prefer(self._ranked, version, (2, 1, uuid), (name,))
                case _:
                    pass

    def checkpoints(self) -> dict[int, Checkpoint]:
        """The complete ones, by version."""
        ranked = dict(self._ranked)
        for (version, of), names in self._parts.items():
            if len(names) == of:
                _prefer(ranked, version, (1, of, ""), tuple(names[part] for part in sorted(names)))
        return {version: checkpoint for version, (_, checkpoint) in ranked.items()}


def _prefer(
    ranked: dict[int, tuple[Rank, Checkpoint]], version: int, rank: Rank, names: tuple[str, ...]
) -> None:
    known = ranked.get(version)
    if known is None or known[0] < rank:
        ranked[version] = rank, Checkpoint(version=version, files=names)


def choose_segment(found: Listing, *, least: int = 0, through: int | None = None) -> LogSegment:
    """The segment with the oldest base. A checkpoint of a version before `least` is taken as not
    there, and so is whatever is of a version after `through`. Raises `BrokenLog` where no version
    can be made, or the newest one cannot be reached, or is beyond `MAX_HEAD`."""
    commits, checkpoints = found.commits, found.checkpoints()
    if through is not None:
        commits = {version for version in commits if version <= through}
    checkpoints = {
        version: checkpoint
        for version, checkpoint in checkpoints.items()
        if version >= least and (through is None or version <= through)
    }
    if not commits and not checkpoints:
        raise BrokenLog("there is no commit and no complete checkpoint in it")
    head = max(max(commits, default=-1), max(checkpoints, default=-1))
    if head > MAX_HEAD:
        raise BrokenLog(f"the newest version is {head}; expected none beyond {MAX_HEAD}")
    first = head + 1
    while first - 1 in commits:
        first -= 1
    newest = checkpoints[max(checkpoints)] if checkpoints else None
    if first == 0:
        return LogSegment(head=head, checkpoint=None, newest=newest, replayed=range(head + 1))
    base = min((version for version in checkpoints if version >= first - 1), default=None)
    if base is None:
        raise BrokenLog(
            f"version {first - 1} is missing: its commit is not there, and no complete checkpoint "
            f"of it or of a later version; the newest version is {head}"
        )
    checkpoint = checkpoints[base]
    return LogSegment(
        head=head,
        checkpoint=checkpoint,
        newest=None if newest == checkpoint else newest,
        replayed=range(base + 1, head + 1),
        older=tuple(sorted(version for version in commits if version < base)),
    )


def missing(found: Listing, *, behind: int) -> Iterator[int]:
    """The versions behind one whose commits are not there, up to the newest commit or complete
    checkpoint that is. Of the listing, nothing before `behind` is needed."""
    commits, checkpoints = found.commits, found.checkpoints()
    end = max(max(commits, default=-1), max(checkpoints, default=-1))
    return (version for version in range(behind + 1, end + 1) if version not in commits)


def versions_left(found: Listing) -> tuple[set[int], int]:
    """The versions whose commits are there, and the newest that a complete checkpoint is there of,
    -1 without one."""
    commits, checkpoints = found.commits, found.checkpoints()
    return commits, max(checkpoints, default=-1)
