"""Which files of a `_delta_log` make a table, and from which version on it can be made.

Delta's readers look for the newest snapshot (SnapshotManagement, "getLogSegmentForVersion");
here the oldest one is looked for from which every later version follows, so that a table's past
reaches as far back as its log does. Only the listing is believed: `_last_checkpoint` is a hint
that may be stale or wrong, compacted files repeat commits that are there, checksums prove
nothing that is needed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate_protocol.log_files import (
    CheckpointFile,
    CommitFile,
    MultiPartCheckpoint,
    V2Checkpoint,
    parse,
)


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
    base.
    """

    head: int
    checkpoint: Checkpoint | None
    newest: Checkpoint | None
    replayed: range


def choose_segment(files: Iterable[tuple[str, int]]) -> LogSegment:
    """The segment with the oldest base. `files` are names and sizes (bytes) directly inside
    `_delta_log`, in any order. Raises `BrokenLog` where no version can be made, or the newest
    one cannot be reached."""
    commits, checkpoints = _sorted_out(files)
    if not commits and not checkpoints:
        raise BrokenLog("there is no commit and no complete checkpoint in it")
    head = max(max(commits, default=-1), max(checkpoints, default=-1))
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
    )


def _sorted_out(files: Iterable[tuple[str, int]]) -> tuple[set[int], dict[int, Checkpoint]]:
    commits: set[int] = set()
    # By version: what Delta prefers among several comes last.
    ranked: dict[int, list[tuple[tuple[int, int, str], Checkpoint]]] = {}
    parts: dict[tuple[int, int], dict[int, str]] = {}

    def found(version: int, rank: tuple[int, int, str], names: tuple[str, ...]) -> None:
        checkpoint = Checkpoint(version=version, files=names)
        ranked.setdefault(version, []).append((rank, checkpoint))

    for name, size in files:
        match parse(name):
            case CommitFile(version=version):
                commits.add(version)
            case CheckpointFile() | MultiPartCheckpoint() | V2Checkpoint() if size == 0:
                # Left by a writer that died; Delta passes over it too.
                pass
            case CheckpointFile(version=version):
                found(version, (0, 1, ""), (name,))
            case MultiPartCheckpoint(version=version, part=part, parts=of):
                parts.setdefault((version, of), {})[part] = name
            case V2Checkpoint(version=version, uuid=uuid):
                found(version, (2, 1, uuid), (name,))
            case _:
                pass
    for (version, of), names in parts.items():
        if len(names) == of:
            found(version, (1, of, ""), tuple(names[part] for part in sorted(names)))
    return commits, {version: max(ranks)[1] for version, ranks in ranked.items()}
