"""A complete checkpoint, its parts and sidecars, as one stream of a snapshot's actions."""

from collections.abc import AsyncGenerator, Sequence

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
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.ports.store.storage import LogReader, MissingFile, UnreadableFile

SIDECARS = "_sidecars"
MOST_SIDECARS = 100_000
"""Sidecars of a checkpoint, whose names are all in memory. With 20,000 files each, as ours have,
they hold two billion files."""
MOST_NAME_BYTES = 255
"""Of a sidecar's name, as on every file system; `<uuid>.parquet` is 44."""
_OF_A_SNAPSHOT = (Add, DomainMetadata, Metadata, Protocol, Remove, Txn)


class _Sidecar(msgspec.Struct):
    path: str


class _SidecarLine(msgspec.Struct):
    sidecar: _Sidecar


_SIDECAR = msgspec.json.Decoder(_SidecarLine)


async def snapshot_actions(
    log: LogReader, checkpoint: Checkpoint, *, location: str, most_sidecars: int = MOST_SIDECARS
) -> AsyncGenerator[Sequence[Action], None]:
    """The actions of a checkpoint of the table at `location`, in batches and in any order: live
    files, tombstones, protocol, metadata, application transactions and domains.

    Raises `StorageUnavailable` where a file of the checkpoint is gone, although it was listed a
    moment ago. Raises `UnreadableFile`, also for more than `most_sidecars` sidecars, and for a
    sidecar that is named twice, since its files would come twice. Also raised at the end unless
    there was exactly one protocol and one metaData action: every table has both, so the checkpoint
    was cut short.
    """
    counts = {Protocol: 0, Metadata: 0}
    sidecars: dict[str, None] = {}
    for name in checkpoint.files:
        try:
            async for batch in log.checkpoint_actions(name):
                for kind in counts:
                    counts[kind] += sum(isinstance(action, kind) for action in batch)
                for action in batch:
                    if isinstance(action, UnknownAction) and action.kind == "sidecar":
                        _take(sidecars, sidecar_name(action, location), most_sidecars)
                yield [action for action in batch if isinstance(action, _OF_A_SNAPSHOT)]
        except MissingFile:
            # It was listed, so the log was cleaned up since, and a later listing has less.
            raise StorageUnavailable(
                f"{name} went away while the log was read; it can be tried again"
            ) from None
    for name in sidecars:
        async for batch in log.checkpoint_actions(f"{SIDECARS}/{name}"):
            yield [action for action in batch if isinstance(action, Add | Remove)]
    for kind, count in counts.items():
        if count != 1:
            raise UnreadableFile(
                f"the checkpoint of version {checkpoint.version} has {count} "
                f"{'protocol' if kind is Protocol else 'metaData'} actions; expected one"
            )


def _take(sidecars: dict[str, None], name: str, most: int) -> None:
    if name in sidecars:
        raise UnreadableFile(f"the checkpoint names the sidecar {excerpt(name)} twice")
    if len(sidecars) == most:
        raise UnreadableFile(f"the checkpoint names more than {most:,} sidecars")
    sidecars[name] = None


def sidecar_name(action: UnknownAction, location: str) -> str:
    """The name of a sidecar file. The action gives the name, or the file's absolute path.

    Raises `UnreadableFile` for a file elsewhere, and for a name of more than `MOST_NAME_BYTES`.
    """
    try:
        path = identity(_SIDECAR.decode(action.raw).sidecar.path)
    except msgspec.MsgspecError as error:
        raise UnreadableFile(f"a sidecar action of the checkpoint: {error}") from None
    folder = f"{location.removeprefix('file://')}/{LOG_FOLDER}/{SIDECARS}/"
    name = path.removeprefix(folder)
    if not name or "/" in name:
        raise UnreadableFile(f"the checkpoint names the sidecar {excerpt(path)} outside {SIDECARS}")
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > MOST_NAME_BYTES:
        raise UnreadableFile(
            f"the checkpoint names the sidecar {excerpt(name)}, a name of {size:,} bytes; at most "
            f"{MOST_NAME_BYTES} are expected"
        )
    return name
