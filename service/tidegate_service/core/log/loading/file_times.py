"""When the files of a log were written, as far as versions are dated by them."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence

from tidegate_protocol.log.file_names import (
    CheckpointFile,
    CommitFile,
    MultiPartCheckpoint,
    V2Checkpoint,
    parse,
)
from tidegate_protocol.log.segment import Checkpoint
from tidegate_service.core.ports.store.listing import LogEntry


class FileTimes:
    """Of a listing, in ms. A commit takes 16 bytes: the log's owner decides how many there are, and
    they are kept for as long as the log is read. Checkpoints are kept until one is chosen."""

    def __init__(self) -> None:
        self._versions = array("q")
        self._times = array("q")
        self._checkpoints: dict[str, int] = {}
        self._is_in_order = True

    def take(self, entries: Sequence[LogEntry]) -> None:
        for entry in entries:
            match parse(entry.name):
                case CommitFile(version=version):
                    if self._versions and version <= self._versions[-1]:
                        self._is_in_order = False
                    self._versions.append(version)
                    self._times.append(entry.modified_ms)
                case CheckpointFile() | MultiPartCheckpoint() | V2Checkpoint() if entry.size:
                    self._checkpoints[entry.name] = entry.modified_ms
                case _:
                    pass

    def choose(self, checkpoint: Checkpoint | None) -> None:
        """No more is taken, and of checkpoints no other is asked for."""
        files = () if checkpoint is None else checkpoint.files
        self._checkpoints = {name: self._checkpoints[name] for name in files}
        if not self._is_in_order:
            order = sorted(range(len(self._versions)), key=self._versions.__getitem__)
            self._versions = array("q", (self._versions[place] for place in order))
            self._times = array("q", (self._times[place] for place in order))

    def of_commit(self, version: int) -> int | None:
        """None for one that was not listed."""
        place = bisect_left(self._versions, version)
        if place < len(self._versions) and self._versions[place] == version:
            return self._times[place]
        return None

    def of_checkpoint(self, checkpoint: Checkpoint) -> int:
        """That of the oldest file of the one that was chosen."""
        return min(self._checkpoints[name] for name in checkpoint.files)
