"""Which versions of a log have expired (Delta: MetadataCleanup.scala).

A log is cut at a complete checkpoint: what is before it goes, the checkpoint, its version's commit
and all later ones stay. It is the newest one that no moment which is kept can do without: whoever
travels to the oldest such moment finds the version that was the newest then.

Readers date a version without an in-commit timestamp by its file, and by at least a millisecond
after the version before. So a log is never cut at a version that owes its date to the one before.
Where stores date files by the second, most versions of a table may be such.
"""

from tidegate_protocol.log.file_names import (
    CheckpointFile,
    ChecksumFile,
    CommitFile,
    CompactedFile,
    MultiPartCheckpoint,
    V2Checkpoint,
    parse,
)
from tidegate_protocol.log.segment import Checkpoint, Listing

DAY_MS = 24 * 60 * 60 * 1000


def cutoff_ms(now_ms: int, retention_ms: int) -> int:
    """The end of what has expired: a midnight in UTC, as far back as is kept, or further."""
    return (now_ms - retention_ms) // DAY_MS * DAY_MS


def version_of(name: str) -> int | None:
    """The version that a file of a log belongs to, the first one of a compacted file's; None of
    what clean-up does not touch."""
    match parse(name):
        case CommitFile() | ChecksumFile() | CheckpointFile() as file:
            return file.version
        case MultiPartCheckpoint() | V2Checkpoint() as checkpoint:
            return checkpoint.version
        case CompactedFile() as compacted:
            return compacted.start
    return None


class Expiry:
    """What a log's files, in the order of their names, say of where it may be cut. From the version
    `dated_since` on commits have in-commit timestamps; None where they have none."""

    def __init__(self, cutoff_ms: int, *, dated_since: int | None = None) -> None:
        self._cutoff_ms = cutoff_ms
        self._dated_since = dated_since
        self._checkpoints = Listing()
        self._adjusted_ms = -1
        self._places: set[int] = set()
        self.first: int | None = None
        """The first version that has a file."""
        self.expired = -1
        """The newest version that was there before the end of what has expired."""
        self.is_over = False
        """Nothing that comes has expired."""

    def take(self, name: str, size: int, modified_ms: int) -> None:
        """The next file."""
        version = version_of(name)
        if version is None or self.is_over:
            return
        if self.first is None:
            self.first = version
        if not isinstance(parse(name), CommitFile):
            self._checkpoints.take([(name, size)])
            return
        is_dated = self._dated_since is not None and version >= self._dated_since
        is_own = is_dated or modified_ms > self._adjusted_ms
        self._adjusted_ms = modified_ms if is_own else self._adjusted_ms + 1
        if self._adjusted_ms >= self._cutoff_ms:
            self.is_over = True
            return
        self.expired = version
        if is_own:
            self._places.add(version)

    def cut(self, *, least: int, most: int) -> Checkpoint | None:
        """The checkpoint that the log may begin with, of a version from `least` to `most`; None
        where there is none."""
        most = min(most, self.expired)
        found = self._checkpoints.checkpoints()
        places = (v for v in found if least <= v <= most and v in self._places)
        version = max(places, default=None)
        return None if version is None else found[version]
