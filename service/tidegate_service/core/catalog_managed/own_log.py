"""Whether the log at a catalog-managed table's place is the table's own.

A database that was set back brings back rows of tables that are gone: a table was forgotten since,
its folder deleted, and another table made at the place. A store can be set back, too, and lose the
end of a log. A version that is then put into the log is read by nobody, or becomes part of another
table's log.

The log is the table's where it holds the last published version, byte for byte. If that file was
cleaned up, the checkpoint that the log begins with decides: its metadata has to have the table's
id. One of a later version was written since the index was as it is now: the database was set back.
Then the commit of the checkpoint's version has to be there, too, and to be one that this service
ratified for this table (`origins`). Clean-up leaves that commit; nobody else writes one. Of an
earlier checkpoint, a clean-up that was cut short may leave less: then the log begins with a later
one. Where nothing was published, the log is another table's if its version 0 is; where version 0 is
gone, a checkpoint decides in the same way.
"""

from collections.abc import Set
from dataclasses import dataclass

from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.segment import BrokenLog, Checkpoint
from tidegate_protocol.replay.commits import UnreadableCommit, parse_commit
from tidegate_service.core.catalog_managed.questions import (
    Beginning,
    FirstCheckpoint,
    Versions,
    id_in,
)
from tidegate_service.core.log.catching_up.sight import Sight
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import CommitRecord
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.core.sharing import offload

NOT_OWN = (
    "the log was replaced or cut off, or another table was made at this place since; move nothing "
    'there, and see docs/maintenance.md, "A log that is not the table\'s"'
)


@dataclass(frozen=True, slots=True)
class CleanedUp:
    """The log is the table's, and begins with a checkpoint of a version that was published since
    the index was as it is now. What was before that version was cleaned up, but for the files of
    the versions `older`."""

    version: int
    older: tuple[int, ...]


async def not_own(
    section: CommitSection, sight: Sight, last: bytes | LogFile | None, *, least: int = 0
) -> str | CleanedUp | None:
    """Why the log is not the section's table's; `CleanedUp` where it is, and has left the index
    behind; None where it is, or may yet become it. `last` is the file that the log has of the last
    published version, or of version 0 where none is published. Checkpoints of versions before
    `least` are taken as not there. Raises `StorageUnavailable` and `Behind`."""
    version = section.table.published_version
    if version < 0:
        known, found = "nothing of the table", await _begun_by_another(section, sight, last, least)
    elif last is None:
        known, found = f"version {version}", await _cleaned_up(section, sight, least)
    else:
        sha256, _ = await section.kept(version)
        if sha256 in (None, await offload.sha256_of(last)):
            return None
        return f"version {version} in the log is not the one that was published: {NOT_OWN}"
    return f"{known} was published, and {found}: {NOT_OWN}" if isinstance(found, str) else found


async def cleaned_up(
    section: CommitSection, sight: Sight, *, least: int = 0
) -> str | CleanedUp | None:
    """`CleanedUp` where the log, which holds the last published version, cannot be read from that
    one on: a clean-up that had come past it was cut short. Returns why a log like that is not the
    table's. None for any other log. `least` is as in `not_own`."""
    first = await _beginning(section, sight, least)
    if first is None or isinstance(first, str):
        return None if first is None else f"{first}: {NOT_OWN}"
    if first.version <= section.table.published_version:
        return None
    found = await _set_back(section, first)
    return f"{found}: {NOT_OWN}" if isinstance(found, str) else found


async def _beginning(
    section: CommitSection, sight: Sight, least: int
) -> str | FirstCheckpoint | None:
    """The checkpoint that the log begins with, if that is of the last published version or of a
    later one, or why that cannot be told; None for any other log."""
    table = section.table
    try:
        return await sight.see(section, Beginning(table.location, table.published_version, least))
    except (BrokenLog, UnreadableFile) as error:
        return f"the log's checkpoint cannot be read: {error}"


async def _begun_by_another(
    section: CommitSection, sight: Sight, first: bytes | LogFile | None, least: int
) -> str | CleanedUp | None:
    """Why the log was begun by another table, as of `not_own`. `first` is its file of version 0. A
    file that is not any table's first version is taken for a mistake, not for another table."""
    if first is None:
        try:
            _, base = await sight.see(section, Versions())
        except BrokenLog as error:
            return f"its log cannot be read: {error}"
        if base < 0:
            return None
        found = await _beginning(section, sight, least)
        if isinstance(found, FirstCheckpoint):
            return await _set_back(section, found)
        return f"the log has a checkpoint of version {base}" if found is None else found
    try:
        actions = await offload.run(offload.weight_of_log(first), parse_commit, first)
    except UnreadableCommit:
        return None
    found_id = next((action.id for action in actions if isinstance(action, Metadata)), None)
    if found_id is None or found_id == await _id_at(section, 0):
        return None
    return "version 0 in the log is another table's"


async def _cleaned_up(section: CommitSection, sight: Sight, least: int) -> str | CleanedUp | None:
    """Why no checkpoint stands in for the last published version, whose file is gone, as of
    `not_own`."""
    found = await _beginning(section, sight, least)
    if found is None:
        return "the log has neither its file nor a checkpoint that reaches it"
    if isinstance(found, str):
        return found
    if found.version > section.table.published_version:
        return await _set_back(section, found)
    return await _of_another(section, found)


async def checkpoint_of_another(
    section: CommitSection, log: Log, checkpoint: Checkpoint
) -> str | None:
    """Why a checkpoint in the log is not the section's table's; None where it is."""
    await section.take_time()
    try:
        found = await id_in(log, checkpoint, location=section.table.location)
    except UnreadableFile as error:
        return f"the log's checkpoint of version {checkpoint.version} cannot be read: {error}"
    return await _other_ids(section, checkpoint.version, {found})


async def _of_another(section: CommitSection, first: FirstCheckpoint) -> str | None:
    return await _other_ids(section, first.version, first.ids)


async def _other_ids(section: CommitSection, version: int, ids: Set[str]) -> str | None:
    own = await _id_at(section, version)
    return None if ids == {own} else "the log's checkpoint is another table's"


async def _set_back(section: CommitSection, first: FirstCheckpoint) -> str | CleanedUp:
    """`CleanedUp` where the checkpoint, which is of a version that the index does not know to be
    published, is the table's; else why it is not."""
    version, table = first.version, section.table
    why = await _of_another(section, first)
    if why is not None:
        return why
    begins = f"the log begins with a checkpoint of version {version}, which the index does not "
    begins += "have" if version > table.latest_version else "know to be published"
    origin = first.origin
    if origin is None or not origin.is_of(await _id_at(section, version)):
        return (
            f"{begins}, and the commit of that version is not there, or neither says that this "
            "service wrote it for this table nor has the bytes of a staged commit"
        )
    txn_id = origin.info.txn_id
    known = None if txn_id is None else await section.transaction(txn_id)
    if isinstance(known, CommitRecord) and known.version != version:
        return f"{begins}, and what lies there as its commit is a copy of version {known.version}"
    if version <= table.latest_version and (await section.kept(version))[0] != first.sha256:
        return f"{begins}, and its commit has other bytes than were ratified"
    return CleanedUp(version, first.older)


async def _id_at(section: CommitSection, version: int) -> str | None:
    """The id of the table's metadata at a version; of one that the index does not have, at its
    head, since a catalog-managed table keeps its id."""
    at = await section.state_at(min(version, section.table.latest_version))
    return None if at is None or at.metadata is None else at.metadata.id
