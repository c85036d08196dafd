"""Whether a checkpoint in a table's log is what the index has of its version."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.upkeep import SET_TRANSACTION_RETENTION
from tidegate_protocol.log.actions import Action, DomainMetadata, Metadata, Protocol, Txn
from tidegate_protocol.log.codec import decode
from tidegate_protocol.log.segment import Checkpoint
from tidegate_service.core.log.files.checkpoint_stream import snapshot_actions
from tidegate_service.core.log.files.file_set import FileSet
from tidegate_service.core.ports.checkpoints import SMALL_ACTION_LIMITS, SmallActionLimits
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.records import TableHead
from tidegate_service.core.ports.store.storage import Log, UnreadableFile


async def difference(
    index: Index,
    log: Log,
    table: TableHead,
    checkpoint: Checkpoint,
    *,
    limits: SmallActionLimits = SMALL_ACTION_LIMITS,
) -> str | None:
    """What the checkpoint has otherwise than the index; None where it is the same snapshot.

    The checkpoint is read to its end. Of its application transactions and domains, the index knows
    those that were not set again since. The checkpoint must have these, and may have more. It
    may lack transactions where the table has old ones dropped. Raises `UnreadableFile`, also for
    more transactions and domains than `limits` allow.
    """
    version = checkpoint.version
    theirs, ours = FileSet(), FileSet()
    small = _Small(limits)
    async for batch in snapshot_actions(log, checkpoint, location=table.location):
        await theirs.count(batch)
        small.take(batch)
    state = await index.state_at(table.id, version)
    if state is None or state.metadata is None or state.protocol is None:
        return f"there is no version {version}"
    for (kind, name), said in _told((state.protocol, state.metadata)).items():
        if small.told.get((kind, name)) != said:
            return f"another {kind}"
    are_dropped = SET_TRANSACTION_RETENTION in state.metadata.configuration
    async for lines in index.unchanged_since(table.id, version):
        for (kind, name), said in _told(map(decode, lines)).items():
            may_lack = are_dropped and kind == "txn"
            if small.told.get((kind, name), said if may_lack else None) != said:
                return f"not the {kind} of {excerpt(name)}"
    async for files in index.files(table.id, version):
        await ours.count(files)
    return None if theirs == ours else "other files"


@dataclass(slots=True)
class _Small:
    """What a checkpoint says beside its files. Anybody may have written it, so no more of it is
    kept in memory than of a checkpoint that the service writes."""

    limits: SmallActionLimits
    told: dict[tuple[str, str], object] = field(default_factory=dict)
    _number: int = 0
    _size: int = 0

    def take(self, actions: Sequence[Action]) -> None:
        """Raises `UnreadableFile`."""
        sizes = [len(action.raw) for action in actions if isinstance(action, Txn | DomainMetadata)]
        self._number += len(sizes)
        self._size += sum(sizes)
        if not self.limits.allow(self._number, self._size):
            raise UnreadableFile(f"it has {self.limits}, and no more are compared")
        self.told |= _told(actions)


def _told(actions: Iterable[Action]) -> dict[tuple[str, str], object]:
    """What the actions that are no files say, by kind and name, however their JSON is written."""
    found: dict[tuple[str, str], object] = {}
    for action in actions:
        match action:
            case Protocol(min_reader_version=reader, min_writer_version=writer):
                features = (action.reader_features, action.writer_features)
                said = tuple(frozenset(each or ()) for each in features)
                found["protocol", ""] = (reader, writer, said)
            case Metadata(id=id, partition_columns=columns, configuration=configuration):
                found["metaData", ""] = (id, columns, configuration, _schema(action.schema_string))
            case Txn(app_id=app_id, version=version):
                found["txn", app_id] = version
            case DomainMetadata(domain=domain, configuration=configuration):
                found["domainMetadata", domain] = configuration
            case _:
                pass
    return found


def _schema(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        # Others may have written an action that cannot be parsed: then the texts are compared.
        return text
