"""What the commits of a range add up to, as a log compaction file has it (PROTOCOL.md, "Log
Compaction Files" and "Action Reconciliation"; Delta: InMemoryLogReplay.scala).

Readers put it in the place of those commits, on top of whatever is before them. So all that takes
something away stays in it: every remove, however long ago the file was removed, and every domain
that was removed. Without its remove, a file that an earlier checkpoint holds would be live again.
"""

from collections.abc import Sequence

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.actions import (
    Action,
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
    file_key,
)
from tidegate_protocol.log.codec import encode_lines, with_fields


class CannotCompact(ValueError):
    """The commits have an action of which readers may think otherwise: one that nobody here knows,
    or a path that is spelled in two ways. The message names it."""


class Compaction:
    """The newest of each: protocol, metadata, application transaction, domain, and action of a
    logical file. Commits are taken in the order of their versions."""

    def __init__(self) -> None:
        self._protocol: Protocol | None = None
        self._metadata: Metadata | None = None
        self._txns: dict[str, Txn] = {}
        self._domains: dict[str, DomainMetadata] = {}
        self._files: dict[tuple[str, str], Add | Remove] = {}

    @property
    def num_actions(self) -> int:
        """How many lines it has."""
        heads = (self._protocol is not None) + (self._metadata is not None)
        return heads + len(self._txns) + len(self._domains) + len(self._files)

    def take(self, actions: Sequence[Action]) -> None:
        """The next commit. Raises `CannotCompact`, with nothing of it taken."""
        files: dict[tuple[str, str], Add | Remove] = {}
        for action in actions:
            if isinstance(action, UnknownAction):
                raise CannotCompact(f"it has an action {action.kind!r}, which is not known")
            if isinstance(action, Add | Remove):
                path, vector = file_key(action)
                key = path, vector or ""
                known = files.get(key) or self._files.get(key)
                if known is not None and known.path != action.path:
                    raise CannotCompact(
                        f"it spells {excerpt(known.path)} as {excerpt(action.path)}, which are "
                        "two files to some readers"
                    )
                files[key] = action
        self._files |= files
        for action in actions:
            match action:
                case Txn():
                    self._txns[action.app_id] = action
                case DomainMetadata():
                    self._domains[action.domain] = action
                case Protocol():
                    self._protocol = action
                case Metadata():
                    self._metadata = action
                case _:
                    # Files are taken. A commitInfo and a file of changes tell of a commit, and are
                    # no part of what the table is.
                    pass

    def content(self) -> bytes:
        """The file: a line an action, in an order of its own, so that everybody who compacts the
        same commits makes the same bytes."""
        heads = (self._protocol, self._metadata)
        actions: list[Action] = [action for action in heads if action is not None]
        actions += [self._txns[app_id] for app_id in sorted(self._txns)]
        actions += [self._domains[domain] for domain in sorted(self._domains)]
        actions += [_unchanging(self._files[key]) for key in sorted(self._files)]
        return encode_lines(actions)


def _unchanging(action: Add | Remove) -> Add | Remove:
    """It tells what there is, and not what a commit did."""
    return with_fields(action, {"dataChange": False}) if action.data_change else action
