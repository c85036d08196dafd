"""Bodies of Unity Catalog's API to what the use cases take.

Fields that nobody here knows are passed over, as clients of later releases may send them. An
unknown requirement or action is refused: it would not be done.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Request
from msgspec import UNSET, Meta, Struct, UnsetType

from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Protocol
from tidegate_protocol.log.file_names import MAX_VERSION
from tidegate_protocol.schema import table_schema
from tidegate_service.api.bodies.decoding import decode_envelope, read_body
from tidegate_service.api.http.request.requests import JSON, media_type
from tidegate_service.api.unity_catalog.columns import undashed
from tidegate_service.core.access.locations import MAX_LOCATION_LENGTH
from tidegate_service.core.access.names import MAX_NAME_LENGTH
from tidegate_service.core.errors import Refused
from tidegate_service.core.unity_catalog.requests import (
    AddCommit,
    Definition,
    NewStockTable,
    Update,
)

B = TypeVar("B")
T = TypeVar("T")

MAX_ACTIONS = 32
"""More than there are kinds of."""
_Long = Annotated[int, Meta(ge=0, le=MAX_VERSION)]
_Name = Annotated[str, Meta(max_length=MAX_NAME_LENGTH)]
"""Of a table, a schema or a catalog. No file, id, tag or type of tables has a longer one either."""
_Location = Annotated[str, Meta(max_length=MAX_LOCATION_LENGTH)]
_Columns = Annotated[
    tuple[Annotated[str, Meta(max_length=table_schema.MAX_NAME_LENGTH)], ...],
    Meta(max_length=table_schema.MAX_FIELDS),
]


def _dashed(name: str) -> str:
    return name.replace("_", "-")


class _Kebab(Struct, frozen=True, kw_only=True, rename=_dashed):
    pass


class ProtocolBody(_Kebab, frozen=True, kw_only=True):
    """A table's protocol."""

    min_reader_version: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    min_writer_version: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None


class CommitBody(_Kebab, frozen=True, kw_only=True):
    """A staged commit."""

    version: _Long
    timestamp: _Long
    file_name: _Name
    file_size: _Long
    file_modification_timestamp: int | None = None


class AssertTableUuid(Struct, frozen=True, kw_only=True, tag_field="type", tag="assert-table-uuid"):
    """The table has this id."""

    uuid: _Name


class AssertEtag(Struct, frozen=True, kw_only=True, tag_field="type", tag="assert-etag"):
    """The table's metadata has this tag."""

    etag: _Name


class _Action(_Kebab, frozen=True, kw_only=True, tag_field="action"):
    pass


class AddCommitBody(_Action, frozen=True, kw_only=True, tag="add-commit"):
    """Make this the next version."""

    commit: CommitBody


class SetPublished(_Action, frozen=True, kw_only=True, tag="set-latest-backfilled-version"):
    """A note of the newest version that the client has seen in the log."""

    latest_published_version: Annotated[int, Meta(ge=-1, le=MAX_VERSION)]


class SetColumns(_Action, frozen=True, kw_only=True, tag="set-columns"):
    """The commit's schema."""

    columns: dict[str, Any]


class SetProperties(_Action, frozen=True, kw_only=True, tag="set-properties"):
    """Properties that the commit sets."""

    updates: dict[str, str]


class RemoveProperties(_Action, frozen=True, kw_only=True, tag="remove-properties"):
    """Properties that the commit removes."""

    removals: tuple[str, ...]


class SetProtocol(_Action, frozen=True, kw_only=True, tag="set-protocol"):
    """The commit's protocol."""

    protocol: ProtocolBody


class SetPartitionColumns(_Action, frozen=True, kw_only=True, tag="set-partition-columns"):
    """The commit's partition columns."""

    partition_columns: _Columns


class SetComment(_Action, frozen=True, kw_only=True, tag="set-table-comment"):
    """The commit's description of the table; null for none."""

    comment: str | None = None


class SetDomains(_Action, frozen=True, kw_only=True, tag="set-domain-metadata"):
    """Metadata domains that the commit sets."""

    updates: dict[str, Any]


class RemoveDomains(_Action, frozen=True, kw_only=True, tag="remove-domain-metadata"):
    """Metadata domains that the commit removes."""

    removals: tuple[str, ...]


Requirement = AssertTableUuid | AssertEtag
Action = (
    AddCommitBody
    | SetPublished
    | SetColumns
    | SetProperties
    | RemoveProperties
    | SetProtocol
    | SetPartitionColumns
    | SetComment
    | SetDomains
    | RemoveDomains
)


class UpdateTableBody(Struct, frozen=True, kw_only=True):
    """What is required of a table, and what is to be done with it: all of it or nothing."""

    requirements: Annotated[tuple[Requirement, ...], Meta(max_length=MAX_ACTIONS)] = ()
    updates: Annotated[tuple[Action, ...], Meta(max_length=MAX_ACTIONS)]


class StagingTableBody(Struct, frozen=True, kw_only=True):
    """The name, without catalog and schema, of a table to be."""

    name: _Name


class CreateStagedTableBody(_Kebab, frozen=True, kw_only=True):
    """A table whose version 0 was written where its staging said."""

    name: _Name
    location: _Location
    table_type: _Name = "MANAGED"
    columns: dict[str, Any]
    partition_columns: _Columns = ()
    protocol: ProtocolBody
    properties: dict[str, str] = {}
    comment: str | UnsetType | None = UNSET
    domain_metadata: dict[str, Any] = {}
    last_commit_timestamp_ms: _Long | None = None


class CreateSchemaBody(Struct, frozen=True, kw_only=True):
    """A schema."""

    name: _Name
    catalog_name: _Name


_UPDATE = msgspec.json.Decoder(UpdateTableBody)
_STAGING = msgspec.json.Decoder(StagingTableBody)
_CREATE = msgspec.json.Decoder(CreateStagedTableBody)
_SCHEMA = msgspec.json.Decoder(CreateSchemaBody)


async def read_update(request: Request) -> Update:
    """Raises `BadRequest`, and `Refused` for a media type or size that is not taken, for an action
    that comes twice and for a property that is both set and removed."""
    return await _read(request, _UPDATE, _update)


def _update(body: UpdateTableBody) -> Update:
    for given in (body.requirements, body.updates):
        _check_once(given)
    uuid: str | None = None
    etag: str | None = None
    for requirement in body.requirements:
        match requirement:
            case AssertTableUuid():
                uuid = requirement.uuid
            case AssertEtag():
                etag = requirement.etag
    commit, published = _commit_of(body.updates)
    return Update(
        table_uuid=uuid,
        etag=etag,
        commit=commit,
        published=published,
        definition=_definition(body.updates),
    )


async def read_staging(request: Request) -> str:
    """The table's name, without catalog and schema. Raises as above."""
    return await _read(request, _STAGING, lambda body: body.name)


async def read_schema(request: Request) -> tuple[str, str]:
    """Catalog and schema. Raises as above."""
    return await _read(request, _SCHEMA, lambda body: (body.catalog_name, body.name))


async def read_create(request: Request, *, catalog: str, schema: str) -> NewStockTable:
    """Raises as above, and `Refused` for a table that is not managed."""
    return await _read(request, _CREATE, partial(_new_table, catalog, schema))


def _new_table(catalog: str, schema: str, body: CreateStagedTableBody) -> NewStockTable:
    if body.table_type != "MANAGED":
        raise Refused(
            f"expected the table-type MANAGED, found {body.table_type[:80]!r}; tables that others "
            "keep are registered by the service's own API",
            code=Code.INVALID_REQUEST,
        )
    return NewStockTable(
        name=f"{catalog}.{schema}.{body.name}",
        location=body.location,
        timestamp=body.last_commit_timestamp_ms,
        definition=Definition(
            columns=undashed(body.columns),
            partition_columns=body.partition_columns,
            protocol=_protocol(body.protocol),
            set_properties=body.properties,
            comment=None if body.comment is UNSET else body.comment,
            comment_is_said=body.comment is not UNSET,
            set_domains=body.domain_metadata,
        ),
    )


async def _read(request: Request, decoder: msgspec.json.Decoder[B], make: Callable[[B], T]) -> T:
    """What `make` makes of the body, in the thread that decodes it: each of a hundred thousand
    values may be looked at."""
    media_type(request, JSON)
    return await read_body(request, lambda content: make(decode_envelope(content, decoder)))


def _check_once(given: Sequence[Struct]) -> None:
    kinds = [type(each).__struct_config__.tag for each in given]
    twice = sorted({str(kind) for kind in kinds if kinds.count(kind) > 1})
    if twice:
        raise Refused(f"{twice} come twice; expected each once", code=Code.INVALID_REQUEST)


def _commit_of(updates: Sequence[Action]) -> tuple[AddCommit | None, int | None]:
    commit: AddCommit | None = None
    published: int | None = None
    for update in updates:
        if isinstance(update, AddCommitBody):
            commit = AddCommit(
                version=update.commit.version,
                timestamp=update.commit.timestamp,
                file_name=update.commit.file_name,
                file_size=update.commit.file_size,
            )
        elif isinstance(update, SetPublished):
            published = update.latest_published_version
    return commit, published


def _definition(updates: Sequence[Action]) -> Definition:
    said: dict[str, Any] = {}
    for update in updates:
        match update:
            case SetColumns():
                said["columns"] = undashed(update.columns)
            case SetProperties():
                said["set_properties"] = update.updates
            case RemoveProperties():
                said["removed_properties"] = frozenset(update.removals)
            case SetProtocol():
                said["protocol"] = _protocol(update.protocol)
            case SetPartitionColumns():
                said["partition_columns"] = update.partition_columns
            case SetComment():
                said |= {"comment": update.comment, "comment_is_said": True}
            case SetDomains():
                said["set_domains"] = update.updates
            case RemoveDomains():
                said["removed_domains"] = frozenset(update.removals)
            case AddCommitBody() | SetPublished():
                continue
    definition = Definition(**said)
    both = [
        *(definition.set_properties.keys() & definition.removed_properties),
        *(definition.set_domains.keys() & definition.removed_domains),
    ]
    if both:
        raise Refused(f"{sorted(both)} are both set and removed", code=Code.INVALID_REQUEST)
    return definition


def _protocol(body: ProtocolBody) -> Protocol:
    return Protocol(
        min_reader_version=body.min_reader_version,
        min_writer_version=body.min_writer_version,
        reader_features=body.reader_features,
        writer_features=body.writer_features,
    )
