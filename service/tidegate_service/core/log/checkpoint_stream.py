"""A complete checkpoint, its parts and sidecars, as one stream of a snapshot's actions."""

from collections.abc import AsyncIterator, Sequence

import msgspec

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
)
from tidegate_protocol.log.paths import LOG_FOLDER, identity
from tidegate_protocol.log.segment import Checkpoint
from tidegate_service.core.ports.store.storage import LogReader, UnreadableFile

SIDECARS = "_sidecars"
_OF_A_SNAPSHOT = (Add, DomainMetadata, Metadata, Protocol, Remove, Txn)


class _Sidecar(msgspec.Struct):
    path: str


class _SidecarLine(msgspec.Struct):
    sidecar: _Sidecar


_SIDECAR = msgspec.json.Decoder(_SidecarLine)


async def snapshot_actions(
    log: LogReader, checkpoint: Checkpoint, *, location: str
) -> AsyncIterator[Sequence[Action]]:
    """The actions of a checkpoint of the table at `location`, in batches and in any order: files,
    those that were removed not long ago, protocol, metadata, application transactions and domains.

    Raises `UnreadableFile`. It is also raised at the end, where there was not exactly one protocol
    and one metaData action: every table has both, and only a checkpoint that was cut short has not.
    """
    counts = {Protocol: 0, Metadata: 0}
    sidecars: list[str] = []
    for name in checkpoint.files:
        async for batch in log.checkpoint_actions(name):
            for kind in counts:
                counts[kind] += sum(isinstance(action, kind) for action in batch)
            sidecars.extend(
                sidecar_name(action, location)
                for action in batch
                if isinstance(action, UnknownAction) and action.kind == "sidecar"
            )
            yield [action for action in batch if isinstance(action, _OF_A_SNAPSHOT)]
    for name in sidecars:
        async for batch in log.checkpoint_actions(f"{SIDECARS}/{name}"):
            yield [action for action in batch if isinstance(action, Add | Remove)]
    for kind, count in counts.items():
        if count != 1:
            raise UnreadableFile(
                f"the checkpoint of version {checkpoint.version} has {count} "
                f"{'protocol' if kind is Protocol else 'metaData'} actions; expected one"
            )


def sidecar_name(action: UnknownAction, location: str) -> str:
    """The name of a sidecar file. The action gives the name, or the file's absolute path."""
    try:
        path = identity(_SIDECAR.decode(action.raw).sidecar.path)
    except msgspec.MsgspecError as error:
        raise UnreadableFile(f"a sidecar action of the checkpoint: {error}") from None
    folder = f"{location.removeprefix('file://')}/{LOG_FOLDER}/{SIDECARS}/"
    name = path.removeprefix(folder)
    if not name or "/" in name:
        raise UnreadableFile(f"the checkpoint names the sidecar {excerpt(path)} outside {SIDECARS}")
    return name
