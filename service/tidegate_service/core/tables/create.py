"""Creating a table: version 0 of its log and its row in the index, or neither."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.checker import check_conflicts
from tidegate_protocol.features.column_mapping import assign
from tidegate_protocol.features.known import CATALOG_MANAGED
from tidegate_protocol.features.properties import (
    COLUMN_MAPPING_MAX_ID,
    InvalidProperty,
    TableProperties,
    canonical,
    check_new,
    storable,
)
from tidegate_protocol.features.table_features import protocol_for, supports, with_features
from tidegate_protocol.log.actions import Action, Add, CommitInfo, Metadata, Protocol
from tidegate_protocol.log.codec import InvalidActionError, encode, from_body
from tidegate_protocol.log.content import LogFile
from tidegate_protocol.prepare.finalize import complete
from tidegate_protocol.prepare.prepare import prepare
from tidegate_protocol.proposal.transaction import (
    Conflict,
    Invalid,
    PreparedTransaction,
    Proposal,
    ReadState,
    ReadyCommit,
)
from tidegate_protocol.replay.commits import UnreadableCommit, commit_info
from tidegate_protocol.replay.foreign import parse_foreign_commit
from tidegate_protocol.schema.table_schema import (
    InvalidSchema,
    StructType,
    check_partition_columns,
    parse_schema,
    to_json,
    validate_table_schema,
)
from tidegate_service.core.access.audit import Change, Deed
from tidegate_service.core.access.names import check_name
from tidegate_service.core.context import Context
from tidegate_service.core.errors import (
    CommitStateUnknown,
    Refused,
    TableExists,
)
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.put_version import occupy, ratified
from tidegate_service.core.log.used_places import check_none_under_way, register_hint
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import NewTable, TableRecord
from tidegate_service.core.ports.store.storage import Log
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import durable_table
from tidegate_service.core.tables.place_rights import check_folder, check_forgotten

_CREATIONS = UUID("6f0a3f5e-3d0e-4f4a-9a53-0c1f7e1f5a11")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """What a table is to be. `schema` is Delta's struct JSON, as text or parsed; `protocol`
    the body of a protocol action; `actions` further actions of version 0, such as files."""

    name: str
    schema: str | Mapping[str, Any]
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    location: str | None = None
    catalog_managed: bool = False
    protocol: Mapping[str, Any] | None = None
    actions: tuple[Action, ...] = ()


async def create_table(context: Context, request: CreateTable) -> TableRecord:
    """Create the table and return its head at version 0.

    Raises `Refused` for a request that can never succeed, `Forbidden` for a location that is not
    the caller's to name, `TableExists` for a name or location in use, `Unavailable` where nothing
    is known to have happened.
    """
    check_name(request.name)
    location = _location(context, request)
    # Its schema may have ten thousand columns, and its expressions may be long.
    async with context.defining.turn(context.caller.principal.name):
        table, prepared = await offload.run(offload.HEAVY, _planned, context, request, location)
    key = (table.id, prepared.proposal.transaction_id)
    return await context.running.run(key, _create(context, table, prepared))


def _planned(
    context: Context, request: CreateTable, location: str
) -> tuple[NewTable, PreparedTransaction]:
    """The table to be, and its first version. Raises `Refused`."""
    schema, partition_columns = _columns(request)
    unknown = context.limits.why_not_hooks(canonical(request.properties), {})
    if unknown is not None:
        raise Refused(unknown, code=Code.INVALID_REQUEST)
    schema, mapping = _mapped(context, request, schema)
    protocol = _protocol(request, schema)
    table = NewTable(
        id=context.new_id(),
        name=request.name,
        location=location,
        catalog_managed=supports(protocol, CATALOG_MANAGED),
    )
    metadata = Metadata(
        id=context.new_id(),
        description=request.comment,
        schema_string=to_json(schema),
        partition_columns=partition_columns,
        configuration={**_configuration(request, protocol), **mapping},
        created_time=context.now_ms(),
    )
    return table, _prepare(request, protocol, metadata)


def _location(context: Context, request: CreateTable) -> str:
    if request.location is None:
        return context.locations.default(request.name)
    location = context.locations.canonical(request.location)
    check_folder(context, location)
    return location


async def _create(context: Context, table: NewTable, prepared: PreparedTransaction) -> TableRecord:
    try:
        created = await _section(context, table, prepared)
    except CommitStateUnknown as unknown:
        created = await _retried(context, table, prepared, unknown)
    if table.catalog_managed:
        context.wake_publisher(table.id)
    return created


async def _retried(
    context: Context, table: NewTable, prepared: PreparedTransaction, unknown: CommitStateUnknown
) -> TableRecord:
    """Find out what became of a creation whose COMMIT was not answered, by creating the table
    again: its name is waited for until the first attempt has ended."""
    try:
        return await _section(context, table, prepared)
    except TableExists:
        landed = await durable_table(context, table.id)
        if landed is None:
            raise
        return landed
    except CommitStateUnknown:
        raise unknown from None


async def _section(context: Context, table: NewTable, prepared: PreparedTransaction) -> TableRecord:
    started = context.monotonic_s()
    log = context.storage.log(table.location, who=context.who)
    async with context.index.creation_section(table, who=context.who) as section:
        check_clock(context, section)
        if table.location != context.locations.default(table.name):
            await check_forgotten(context, section)
        await check_none_under_way(section)
        weight = offload.weight_of(prepared.proposal)
        first = await offload.run(weight, _first_version, section, prepared)
        ready = await _claim_log(section, log, first, context.limits)
        commit = await offload.run(
            weight,
            partial(
                ratified,
                ready,
                published=not table.catalog_managed,
                attempts=1,
                duration_ms=round((context.monotonic_s() - started) * 1000),
                by=context.caller,
            ),
        )
        await section.append(commit)
        await section.record_change(Change(deed=Deed.CREATE, by=context.caller, version=0))
        await section.save()
    if table.catalog_managed:
        # Nothing was there, so nothing can be behind it.
        now_s = context.monotonic_s()
        context.heads.replicated.remember(section.table, database=section.database)
        context.heads.checked(section.table, section.now_ms, now_s, database=section.database)
    return section.table


async def _claim_log(
    section: CommitSection, log: Log, ready: ReadyCommit, limits: CommitLimits
) -> ReadyCommit:
    """Make version 0 of the log ours, or refuse a folder that holds another log, or any part of
    one: a log that was cleaned up has no version 0.

    An earlier creation that wrote version 0 and died before its row was committed is taken up
    where it stopped: the same request has the same transaction id. Of a table that was forgotten
    it is the first version, and not cut short: registering brings back its ids.
    """
    if section.table.catalog_managed:
        if await log.holds_anything():
            raise await _in_use(section)
        return ready
    if await log.holds_anything(but_version=0):
        raise await _in_use(section)
    found = await occupy(log, ready, limits)
    if await log.holds_anything(but_version=0):
        # Of another writer, or a late write of a table that was here before. What was written for
        # this one stays: no file of a log is ever deleted.
        raise await _in_use(section)
    if found is None:
        return ready
    try:
        actions, info, metadata = await offload.run(offload.weight_of_log(found), _read, found)
    except UnreadableCommit:
        raise await _in_use(section) from None
    if info is None or info.txn_id != ready.transaction.proposal.transaction_id:
        raise await _in_use(section)
    if metadata is None or await section.forgotten({metadata.id}, most=1):
        raise await _in_use(section)
    return ReadyCommit(
        version=0,
        timestamp=info.in_commit_timestamp or info.timestamp or ready.timestamp,
        content=found,
        actions=actions,
        transaction=ready.transaction,
        commit_info=info,
    )


def _read(
    found: bytes | LogFile,
) -> tuple[tuple[Action, ...], CommitInfo | None, Metadata | None]:
    actions = parse_foreign_commit(found)
    metadata = next((action for action in actions if isinstance(action, Metadata)), None)
    return actions, commit_info(actions), metadata


async def _in_use(section: CommitSection) -> TableExists:
    return TableExists(
        f"the location {section.table.location} already holds a Delta log, or a part of one",
        hint=await register_hint(section),
    )


def _first_version(section: CommitSection, prepared: PreparedTransaction) -> ReadyCommit:
    checked = check_conflicts(prepared, ())
    if isinstance(checked, Conflict):
        raise AssertionError("a first version has no winners to conflict with")
    return complete(checked, version=0, now_ms=section.now_ms, previous_timestamp=-1)


def _columns(request: CreateTable) -> tuple[StructType, tuple[str, ...]]:
    text = request.schema if isinstance(request.schema, str) else json.dumps(request.schema)
    try:
        check_new(request.properties)
        properties = TableProperties.parse(canonical(request.properties))
        schema = parse_schema(text)
        validate_table_schema(schema, column_mapping=properties.column_mapping)
        partition_columns = check_partition_columns(schema, request.partition_columns)
    except InvalidSchema as error:
        raise Refused(str(error), code=Code.INVALID_SCHEMA) from None
    except InvalidProperty as error:
        raise Refused(str(error), code=Code.INVALID_REQUEST) from None
    return schema, partition_columns


def _mapped(
    context: Context, request: CreateTable, schema: StructType
) -> tuple[StructType, dict[str, str]]:
    """The schema with ids and physical names, and the property that counts the ids, where the
    table is to have column mapping."""
    properties = TableProperties.parse(canonical(request.properties))
    if not properties.column_mapping:
        return schema, {}
    mapped, last = assign(
        schema,
        max_id=properties.max_column_id or 0,
        new_name=lambda: f"col-{context.new_id()}",
    )
    return mapped, {COLUMN_MAPPING_MAX_ID: str(last)}


def _protocol(request: CreateTable, schema: StructType) -> Protocol:
    if request.protocol is None:
        properties = TableProperties.parse(canonical(request.properties))
        return protocol_for(properties, schema, catalog_managed=request.catalog_managed)
    try:
        action = from_body(Protocol, request.protocol)
    except InvalidActionError as error:
        raise Refused(f"protocol: {error}", code=Code.INVALID_PROTOCOL) from None
    # A protocol that is given is raised by what the table is asked to be, as `prepare` raises it
    # by what its properties and schema need.
    return with_features(action, [CATALOG_MANAGED]) if request.catalog_managed else action


def _configuration(request: CreateTable, protocol: Protocol) -> dict[str, str]:
    configuration = storable(request.properties)
    if supports(protocol, CATALOG_MANAGED):
        configuration.setdefault("delta.enableInCommitTimestamps", "true")
    return configuration


def _prepare(request: CreateTable, protocol: Protocol, metadata: Metadata) -> PreparedTransaction:
    with_files = any(isinstance(action, Add) for action in request.actions)
    proposal = Proposal(
        transaction_id=_transaction_id(request),
        read_version=-1,
        operation="CREATE TABLE AS SELECT" if with_files else "CREATE TABLE",
        operation_parameters={
            "isManaged": "false" if request.location else "true",
            "description": request.comment,
            "partitionBy": json.dumps(metadata.partition_columns),
            "properties": json.dumps(metadata.configuration),
        },
        actions=(protocol, metadata, *request.actions),
        size=sum(map(len, map(encode, (metadata, *request.actions)))),
    )
    prepared = prepare(proposal, ReadState(version=-1, protocol=None, metadata=None))
    if isinstance(prepared, Invalid):
        raise Refused(prepared.detail, code=prepared.code)
    return prepared


def _transaction_id(request: CreateTable) -> str:
    """The same for every repetition of one request, so that a creation cut short between the
    log and the index is recognised by the next."""
    schema = request.schema if isinstance(request.schema, str) else json.dumps(request.schema)
    sha = sha256(
        json.dumps(
            [
                request.name.lower(),
                schema,
                request.partition_columns,
                sorted(request.properties.items()),
                request.comment,
                request.location,
                request.catalog_managed,
                request.protocol and dict(request.protocol),
            ]
        ).encode()
    )
    for action in request.actions:
        sha.update(b"\n" + encode(action))
    return str(uuid5(_CREATIONS, sha.hexdigest()))
