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
from tidegate_protocol.log.actions import Action, Add, DomainMetadata, Metadata, Protocol
from tidegate_protocol.log.codec import InvalidActionError, encode, from_body
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
from tidegate_protocol.scan.clustering import (
    CLUSTERING_DOMAIN,
    columns_at,
    physical_paths,
    shown,
)
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
from tidegate_service.core.log.catching_up.foreign_commits import check_operation
from tidegate_service.core.log.clock_skew import check_clock
from tidegate_service.core.log.loading.places import misplaced_in
from tidegate_service.core.log.put_version import ratified
from tidegate_service.core.log.used_places import check_none_under_way
from tidegate_service.core.ports.index import CommitSection
from tidegate_service.core.ports.records import NewTable, TableRecord
from tidegate_service.core.sharing import offload
from tidegate_service.core.sharing.pools import Rests
from tidegate_service.core.tables.first_versions import first_versions_of
from tidegate_service.core.tables.in_turn import in_turn
from tidegate_service.core.tables.lookup import durable_table
from tidegate_service.core.tables.place_rights import check_around, check_folder

_CREATIONS = UUID("6f0a3f5e-3d0e-4f4a-9a53-0c1f7e1f5a11")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """What a table is to be. `schema` is Delta's struct JSON, as text or parsed; `protocol`
    the body of a protocol action; `actions` further actions of version 0, such as files.
    `operation` is None for one that only creates it; what is told of another one is as in a
    proposal."""

    name: str
    schema: str | Mapping[str, Any]
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    location: str | None = None
    catalog_managed: bool = False
    protocol: Mapping[str, Any] | None = None
    actions: tuple[Action, ...] = ()
    operation: str | None = None
    operation_parameters: Mapping[str, Any] = field(default_factory=dict)
    operation_metrics: Mapping[str, Any] = field(default_factory=dict)
    user_metadata: str | None = None
    engine_info: str | None = None


async def create_table(context: Context, request: CreateTable) -> TableRecord:
    """Create the table and return its head at version 0.

    Raises `Refused` for a request that can never succeed, `Forbidden` for a location that is not
    the caller's to name and for files that they may not read, `TableExists` for a name or location
    in use, `Unavailable` where nothing is known to have happened.
    """
    check_name(request.name)
    location = _location(context, request)
    # Its schema may have ten thousand columns, and its expressions may be long.
    async with context.defining.turn(context.caller.principal.name):
        table, prepared = await offload.run(offload.HEAVY, _planned, context, request, location)
    key = (table.id, prepared.proposal.transaction_id)
    create = partial(_create, context, table, prepared)
    return await in_turn(context, context.creating, key, create)


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
    prepared = _prepare(request, protocol, metadata)
    invalid = misplaced_in(context, location, request.actions)
    if invalid is not None:
        raise Refused(invalid.detail, code=invalid.code)
    return table, prepared


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
    if created.published_version < created.latest_version:
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
    first_versions = first_versions_of(table)
    async with context.index.creation_section(table, who=context.who) as section:
        check_clock(context, section)
        if not _is_own_place(context, table):
            await check_around(context, section)
        await check_none_under_way(section)
        weight = offload.weight_of(prepared.proposal)
        first = await offload.run(weight, _first_version, section, prepared)
        ready = await first_versions.claim(section, log, first, context.limits)
        commit = await offload.run(
            weight,
            partial(
                ratified,
                ready,
                published=table.kind.log_first,
                attempts=1,
                duration_ms=round((context.monotonic_s() - started) * 1000),
                by=context.caller,
            ),
        )
        await section.append(commit)
        await section.record_change(Change(deed=Deed.CREATE, by=context.caller, version=0))
        await section.save()
    first_versions.created(context, section)
    return section.table


def _is_own_place(context: Context, table: NewTable) -> bool:
    """Whether the table is where the service puts one of its name, and nobody else may have one
    around it there. An allowed location inside the warehouse is everybody's."""
    locations = context.locations
    is_default = table.location == locations.default(table.name)
    return is_default and locations.scope_of(table.location) == table.name.lower()


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
    # A given protocol gets the feature of the kind that is asked for, as `prepare` adds to it what
    # the table's properties and schema need.
    return with_features(action, [CATALOG_MANAGED]) if request.catalog_managed else action


def _configuration(request: CreateTable, protocol: Protocol) -> dict[str, str]:
    configuration = storable(request.properties)
    if supports(protocol, CATALOG_MANAGED):
        configuration.setdefault("delta.enableInCommitTimestamps", "true")
    return configuration


def _prepare(request: CreateTable, protocol: Protocol, metadata: Metadata) -> PreparedTransaction:
    operation, parameters = _operation(request, metadata)
    proposal = Proposal(
        transaction_id=_transaction_id(request),
        read_version=-1,
        operation=operation,
        operation_parameters=parameters,
        operation_metrics=request.operation_metrics,
        user_metadata=request.user_metadata,
        engine_info=request.engine_info,
        actions=(protocol, metadata, *request.actions),
        size=sum(map(len, map(encode, (metadata, *request.actions)))),
    )
    nothing = ReadState(version=-1, protocol=None, metadata=None)
    prepared = check_operation(proposal) or prepare(proposal, nothing, pause=Rests())
    if isinstance(prepared, Invalid):
        raise Refused(prepared.detail, code=prepared.code)
    return prepared


def _operation(request: CreateTable, metadata: Metadata) -> tuple[str, Mapping[str, Any]]:
    """What version 0 is called in the history, with its parameters."""
    if request.operation is not None:
        return request.operation, request.operation_parameters
    with_files = any(isinstance(action, Add) for action in request.actions)
    clustering = _clustering(request, metadata)
    return "CREATE TABLE AS SELECT" if with_files else "CREATE TABLE", {
        "isManaged": "false" if request.location else "true",
        "description": request.comment,
        "partitionBy": json.dumps(metadata.partition_columns),
        **({} if clustering is None else {"clusterBy": json.dumps(clustering)}),
        "properties": json.dumps(metadata.configuration),
    }


def _clustering(request: CreateTable, metadata: Metadata) -> list[str] | None:
    """The names of the columns that the table is clustered by, where it says that it is. What is
    wrong with the domain is for `prepare` to refuse."""
    for action in request.actions:
        if isinstance(action, DomainMetadata) and action.domain == CLUSTERING_DOMAIN:
            try:
                physical = physical_paths(action.configuration)
            except ValueError:
                return None
            return [shown(c) for c in columns_at(parse_schema(metadata.schema_string), physical)]
    return None


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
    if request.operation is not None:
        told = (request.operation, request.operation_parameters, request.operation_metrics)
        sha.update(b"\n" + json.dumps([*told, request.user_metadata]).encode())
    return str(uuid5(_CREATIONS, sha.hexdigest()))
