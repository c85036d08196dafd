"""What is left of a commit's actions, by the keys that the index has."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate_protocol.log.actions import (
    Action,
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    file_key,
)
from tidegate_protocol.log.spooled import Spooled, SpooledAdd, SpooledRemove
from tidegate_service.index.rows.keys import key

BULK = 5_000
"""Actions of a commit whose file rows are written by COPY."""

FileKey = tuple[str, str]
"""(path, deletion vector id or ''), as index keys."""


@dataclass(slots=True)
class Effects:
    """What is left of a commit's actions, in their order: the last one about a thing counts.

    A prepared commit names each thing once; a foreign one need not. `bulk` are file actions that
    are not among `files`, of a prepared commit of very many. `removed` are the
    removes that stand behind a None.
    """

    files: dict[FileKey, Add | None] = field(default_factory=dict)
    removed: dict[FileKey, Remove] = field(default_factory=dict)
    txns: dict[str, Txn] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    bulk: list[Spooled] = field(default_factory=list)
    opened: int = 0
    opened_bytes: int = 0

    @property
    def size(self) -> int:
        """How many rows they are, about: those of files, application transactions and domains."""
        return len(self.files) + len(self.bulk) + len(self.txns) + len(self.domains)

    def deleted_ms(self, file: FileKey) -> int | None:
        """When a remove says that the file was removed."""
        remove = self.removed.get(file)
        return None if remove is None else remove.deletion_timestamp


def effects_of(actions: Sequence[Action], may_bulk: bool = False) -> Effects:
    """`may_bulk` for a commit that names each file once."""
    effects = Effects()
    is_bulk = may_bulk and len(actions) >= BULK
    for action in actions:
        match action:
            case SpooledAdd() | SpooledRemove() if is_bulk:
                effects.bulk.append(action)
            case Add():
                file = file_key_of(action)
                effects.files[file] = action
                effects.removed.pop(file, None)
            case Remove():
                file = file_key_of(action)
                effects.files[file] = None
                effects.removed[file] = action
            case Txn():
                effects.txns[key(action.app_id)] = action
            case DomainMetadata():
                effects.domains[key(action.domain)] = action
            case Protocol():
                effects.protocol = action
            case Metadata():
                effects.metadata = action
    added = [add for add in effects.files.values() if add is not None]
    added += [action for action in effects.bulk if isinstance(action, Add)]
    effects.opened, effects.opened_bytes = len(added), sum(add.size for add in added)
    return effects


def file_key_of(action: Add | Remove) -> FileKey:
    """The file that the action is of, as the index knows it."""
    path, vector = file_key(action)
    return key(path), "" if vector is None else key(vector)
