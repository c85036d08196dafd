"""Creating a table whose version 0 its client writes: first a place, then the table.

Nothing is kept of a place that was given out. Its folder has the id of the table to be in its name,
so whoever creates the table says both, and no two creations have one place.
"""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.features.known import (
    CATALOG_MANAGED,
    IN_COMMIT_TIMESTAMP,
    UNITY_TABLE_ID,
    VACUUM_PROTOCOL_CHECK,
)
from tidegate_protocol.features.properties import IN_COMMIT_TIMESTAMPS
from tidegate_protocol.features.table_features import implied_features
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.log.file_names import (
    CheckpointFile,
    CommitFile,
    MultiPartCheckpoint,
    V2Checkpoint,
    commit_name,
    parse,
)
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.prepare.staged import complete_staged
from tidegate_protocol.proposal.staged import StagedCommit
from tidegate_protocol.proposal.transaction import Conflict, Invalid, ReadState, ReadyCommit
from tidegate_protocol.replay.staged import proposal_of, read_commit
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.access.names import check_name
from tidegate_service.core.context import Context
from tidegate_service.core.errors import CommitStateUnknown, NotFound, Refused, TableExists
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.loading.places import misplaced
from tidegate_service.core.log.put_version import ratified
from tidegate_service.core.log.used_places import check_none_under_way
from tidegate_service.core.ports.records import NewTable, TableRecord
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.core.sharing import offload
from tidegate_service.core.sharing.pools import Rests
from tidegate_service.core.tables.in_turn import in_turn
from tidegate_service.core.tables.lookup import get_table, is_taken
from tidegate_service.core.tables.place_rights import check_forgotten
from tidegate_service.core.unity_catalog.agreement import check_agreement
from tidegate_service.core.unity_catalog.identity import is_managed, table_uuid
from tidegate_service.core.unity_catalog.published import publish_through
from tidegate_service.core.unity_catalog.requests import NewStockTable

REQUIRED_FEATURES = (CATALOG_MANAGED, IN_COMMIT_TIMESTAMP, VACUUM_PROTOCOL_CHECK)
_ACTIVITY = "create by a stock client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a table to be is to be written, under which id."""

    table_id: str
    location: str


async def give_place(context: Context, name: str) -> Place:
    """A place of its own for the table of this name. Raises `Refused`, and `TableExists` for a name
    that is taken."""
    check_name(name)
    if await is_taken(context, name):
        raise _exists(name)
    table_id = context.new_id()
    return Place(table_id=table_id, location=_location(context, name, table_id))


async def create_stock_table(context: Context, wanted: NewStockTable) -> TableRecord:
    """Make the table of the version 0 that lies at its place, and return it. The same request sent
    again finds it.

    Raises `Refused` for what can never be a table, with nothing kept of it; `TableExists` for a
    name that is taken; and `Unavailable` where nothing is known to have happened.
    """
    check_name(wanted.name)
    table_id = wanted.definition.set_properties.get(UNITY_TABLE_ID)
    if table_id is None or not _is_uuid(table_id):
        raise _refused(f"expected the property {UNITY_TABLE_ID}, as the staging of the table said")
    if wanted.location.rstrip("/") != (place := _location(context, wanted.name, table_id)):
        raise Refused(
            f"the location is not where the staging of the table said, {place}",
            code=Code.INVALID_LOCATION,
        )
    found = await _found(context, wanted.name, table_id)
    if found is not None:
        return found
    table = NewTable(id=context.new_id(), name=wanted.name, location=place, catalog_managed=True)
    # Nobody has said how long the file is.
    create = partial(_create, context, table, wanted, table_id)
    created = await in_turn(context, context.staged, (_ACTIVITY, place), create)
    await publish_through(context, created)
    return await get_table(context, created.id)


async def _found(context: Context, name: str, table_id: str) -> TableRecord | None:
    """The table that an earlier copy of the request has made. Raises `TableExists` for another one
    of the name."""
    try:
        table = await get_table(context, name)
    except NotFound:
        return None
    if not is_managed(table) or table_uuid(table) != table_id:
        raise _exists(name)
    return table


async def _first(wanted: NewStockTable, table_id: str, content: bytes | LogFile) -> StagedCommit:
    read = partial(read_commit, commit_name(0), 0, content)
    staged = await offload.run(offload.weight_of_log(content), read)
    if isinstance(staged, Invalid):
        raise Refused(staged.detail, code=staged.code)
    if wanted.timestamp not in (None, staged.timestamp):
        raise _refused(
            f"{commit_name(0)} has the inCommitTimestamp {staged.timestamp}; expected "
            f"{wanted.timestamp}, as was said of it"
        )
    agree = partial(
        check_agreement, wanted.definition, staged.actions, before=None, protocol_before=None
    )
    await offload.run(offload.LONG, agree)
    return staged


async def _create(
    context: Context, table: NewTable, wanted: NewStockTable, table_id: str
) -> TableRecord:
    log = context.storage.log(table.location, who=context.who)
    content = await log.read(0)
    if content is None:
        raise _refused(f"there is no {commit_name(0)} in {table.location}/_delta_log")
    staged = await _first(wanted, table_id, content)
    # Three lines may define ten thousand columns with an expression each.
    async with context.defining.turn(context.caller.principal.name):
        ready = await offload.run(offload.HEAVY, _ready, staged, table_id)
    invalid = await misplaced(context, table.location, ready.transaction.proposal)
    if invalid is not None:
        raise Refused(invalid.detail, code=invalid.code)
    unknown = context.limits.why_not_hooks(ready.transaction.metadata.configuration, {})
    if unknown is not None:
        raise _refused(unknown)
    # As many files as whoever creates it likes: not under a lock.
    await _check_log(log, table)
    try:
        return await _section(context, table, ready)
    except CommitStateUnknown:
        # The name is waited for until the first attempt has ended.
        try:
            return await _section(context, table, ready)
        except TableExists:
            found = await _found(context, table.name, table_id)
            if found is None:
                raise
            return found


async def _section(context: Context, table: NewTable, ready: ReadyCommit) -> TableRecord:
    started = context.monotonic_s()
    async with context.index.creation_section(table, who=context.who) as section:
        check_clock(context, section)
        await check_forgotten(context, section)
        await check_none_under_way(section)
        commit = await offload.run(
            ready.transaction.proposal.weight,
            partial(
                ratified,
                ready,
                published=False,
                attempts=1,
                duration_ms=round((context.monotonic_s() - started) * 1000),
                by=context.caller,
            ),
        )
        await section.append(commit)
        await section.record_change(Change(deed=Deed.CREATE, by=context.caller, version=0))
        await section.save()
    return section.table


def _ready(staged: StagedCommit, table_id: str) -> ReadyCommit:
    """Version 0, checked as any creation is. Raises `Refused`."""
    proposal = proposal_of(staged)
    nothing = ReadState(version=-1, protocol=None, metadata=None)
    prepared = prepare(proposal, nothing, pause=Rests())
    if isinstance(prepared, Invalid):
        raise Refused(prepared.detail, code=prepared.code)
    lacking = sorted(set(REQUIRED_FEATURES) - implied_features(prepared.protocol))
    if lacking:
        raise Refused(
            f"{commit_name(0)} lacks the table features {lacking}", code=Code.UNSUPPORTED_FEATURE
        )
    configuration = prepared.metadata.configuration
    for name, value in ((UNITY_TABLE_ID, table_id), (IN_COMMIT_TIMESTAMPS, "true")):
        if configuration.get(name) != value:
            raise _refused(f"{commit_name(0)} has to have the property {name} = {value}")
    checked = check_conflicts(prepared, ())
    if isinstance(checked, Conflict):
        raise AssertionError("a first version has no winners to conflict with")
    ready = complete_staged(checked, staged, previous_timestamp=-1)
    if isinstance(ready, Invalid):
        raise Refused(ready.detail, code=ready.code)
    return ready


async def _check_log(log: Log, table: NewTable) -> None:
    """See that the log is version 0 and nothing that could be another table's. A client may have
    written that version's checksum already."""
    try:
        async for batch in log.entries():
            for entry in batch:
                if _is_anothers(entry.name):
                    raise TableExists(
                        f"the log at {table.location} has {entry.name} beside its first version"
                    )
    except UnreadableFile as error:
        raise Refused(f"the log at {table.location}: {error}", code=Code.BROKEN_LOG) from None


def _is_anothers(name: str) -> bool:
    found = parse(name)
    if isinstance(found, CommitFile):
        return found.version != 0
    return isinstance(found, CheckpointFile | MultiPartCheckpoint | V2Checkpoint)


def _location(context: Context, name: str, table_id: str) -> str:
    return f"{context.locations.default(name)}-{table_id}"


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _exists(name: str) -> TableExists:
    return TableExists(f"there is a table {name} already")


def _refused(detail: str) -> Refused:
    return Refused(detail, code=Code.INVALID_REQUEST)
