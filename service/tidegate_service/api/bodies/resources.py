"""The other request bodies: creating a table, registering, scanning and vacuuming one."""

from typing import Annotated, Any

import msgspec
from fastapi import Request
from msgspec import Meta, Raw, Struct, field

from tidegate_protocol.base.problems import Code
from tidegate_protocol.schema import table_schema
from tidegate_protocol.schema.table_schema import MAX_FIELDS
from tidegate_service.api.bodies.decoding import decode_envelope, read_body
from tidegate_service.api.bodies.proposals import (
    MAX_VERSION,
    OPERATION,
    Predicate,
    check_operation,
    check_told,
    decode_array,
)
from tidegate_service.api.http.request.requests import JSON, media_type
from tidegate_service.core.access.locations import MAX_LOCATION_LENGTH, check_length
from tidegate_service.core.access.names import MAX_NAME_LENGTH, check_name
from tidegate_service.core.errors import Refused
from tidegate_service.core.tables.create import CreateTable
from tidegate_service.core.tables.register import RegisterTable
from tidegate_service.core.tables.scan import ScanRequest

TABLE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*){2}$"
"""What `core.access.names` takes, for the document."""
Column = Annotated[str, Meta(max_length=table_schema.MAX_NAME_LENGTH)]


class CreateTableBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table to create, at version 0."""

    name: Annotated[
        str,
        Meta(
            description="`catalog.schema.table`, found in any case later.",
            examples=["main.air.flights"],
            extra_json_schema={"pattern": TABLE_NAME, "maxLength": MAX_NAME_LENGTH},
        ),
    ]
    schema: Annotated[
        dict[str, Any] | str,
        Meta(description="Delta's struct JSON, as an object or as the string of it."),
    ]
    partition_columns: Annotated[
        tuple[Column, ...],
        Meta(max_length=MAX_FIELDS, description="Names of columns of the schema, in order."),
    ] = ()
    properties: Annotated[
        dict[str, str], Meta(description="Table properties, such as `delta.appendOnly`.")
    ] = {}
    comment: str | None = None
    location: Annotated[
        str | None,
        Meta(
            description="A URL under the warehouse or an allowed location; "
            "by default a folder of the warehouse.",
            extra_json_schema={"maxLength": MAX_LOCATION_LENGTH},
        ),
    ] = None
    catalog_managed: Annotated[
        bool,
        Meta(description="True: ratified by the service, published to the log afterwards."),
    ] = False
    protocol: Annotated[
        dict[str, Any] | None,
        Meta(description="The body of a protocol action; by default what the table needs."),
    ] = None
    actions: Annotated[
        Raw, Meta(description="Further actions of version 0, such as its first files.")
    ] = field(default_factory=lambda: Raw(b"[]"))
    operation: Annotated[
        str | None,
        Meta(
            description="What creates it, by Delta's name, such as `CLONE`; by default "
            "`CREATE TABLE`, or `CREATE TABLE AS SELECT` with files.",
            extra_json_schema={"pattern": OPERATION},
        ),
    ] = None
    operation_parameters: Annotated[
        dict[str, Any], Meta(description="With an `operation`: goes into commitInfo as it is.")
    ] = {}
    operation_metrics: Annotated[
        dict[str, Any], Meta(description="Goes into commitInfo as it is.")
    ] = {}
    user_metadata: str | None = None
    engine_info: Annotated[
        str | None, Meta(description="The writer's name and version, for commitInfo.")
    ] = None


class RegisterTableBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An existing Delta table to adopt."""

    name: Annotated[
        str,
        Meta(
            description="`catalog.schema.table`, found in any case later.",
            examples=["main.air.flights"],
            extra_json_schema={"pattern": TABLE_NAME, "maxLength": MAX_NAME_LENGTH},
        ),
    ]
    location: Annotated[
        str,
        Meta(
            description="The folder that its `_delta_log` is in, as a URL under the warehouse or "
            "an allowed location.",
            extra_json_schema={"maxLength": MAX_LOCATION_LENGTH},
        ),
    ]
    catalog_managed: Annotated[
        bool,
        Meta(
            description="True for a catalog-managed table of this service that was forgotten: "
            "it is one again."
        ),
    ] = False
    by_marks: Annotated[
        bool,
        Meta(
            description="True, with `catalog_managed`, for one that this index has lost, as by a "
            "restore: every version has to say that this service wrote it for this table, or to "
            "have the bytes of a staged commit; version 0 of a stock client has to be where the "
            "service placed the table. For "
            "admins of everything, who know that nobody else ratifies its commits."
        ),
    ] = False


class ScanBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which version to read, and what of it. At most one of `version` and `timestamp`."""

    version: Annotated[int, Meta(ge=0, le=MAX_VERSION)] | None = None
    timestamp: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_VERSION)] | None,
        Meta(description="In ms since 1970, UTC: the latest version at or before it."),
    ] = None
    predicates: Annotated[
        tuple[Predicate, ...],
        Meta(
            max_length=1000,
            description="Spark SQL text. A file is returned if any of them may match one of its "
            "rows; all files, if there are none.",
            examples=[["month = 5"]],
        ),
    ] = ()
    columns: Annotated[
        Annotated[tuple[Column, ...], Meta(max_length=MAX_FIELDS)] | None,
        Meta(description="Cuts the statistics of the files down to these top-level columns."),
    ] = None


class CheckpointBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which version to write a checkpoint."""

    version: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_VERSION)] | None,
        Meta(description="The latest one by default."),
    ] = None


class VacuumBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long removed files are to be kept, and whether to delete the others."""

    retain_ms: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_VERSION)] | None,
        Meta(
            description="By default what the table says in "
            "`delta.deletedFileRetentionDuration`, or a week."
        ),
    ] = None
    allow_shorter: Annotated[
        bool, Meta(description="True for a retention that is shorter than the table's.")
    ] = False
    dry_run: Annotated[
        bool, Meta(description="True to be told what would be deleted, and nothing else.")
    ] = False


_CREATE = msgspec.json.Decoder(CreateTableBody)
_REGISTER = msgspec.json.Decoder(RegisterTableBody)
_SCAN = msgspec.json.Decoder(ScanBody)
_CHECKPOINT = msgspec.json.Decoder(CheckpointBody)


async def read_create(request: Request) -> CreateTable:
    """Raises `BadRequest`, and `Refused` for a media type or size that is not taken."""
    media_type(request, JSON)
    return await read_body(request, _create)


def _create(content: bytes) -> CreateTable:
    body = decode_envelope(content, _CREATE, actions=lambda value: value.actions)
    _check_place(body.name, body.location)
    if body.operation is not None:
        check_operation(body.operation)
    elif body.operation_parameters:
        raise Refused(
            "expected an operation beside operation_parameters, found none: a creation without "
            "one has Delta's operation CREATE TABLE, and its parameters",
            code=Code.INVALID_REQUEST,
        )
    check_told(
        body.operation_parameters, body.operation_metrics, body.user_metadata, body.engine_info
    )
    return CreateTable(
        name=body.name,
        schema=body.schema,
        partition_columns=body.partition_columns,
        properties=body.properties,
        comment=body.comment,
        location=body.location,
        catalog_managed=body.catalog_managed,
        protocol=body.protocol,
        actions=decode_array(body.actions),
        operation=body.operation,
        operation_parameters=body.operation_parameters,
        operation_metrics=body.operation_metrics,
        user_metadata=body.user_metadata,
        engine_info=body.engine_info,
    )


async def read_register(request: Request) -> RegisterTable:
    """Raises `BadRequest`, and `Refused` for a media type or size that is not taken."""
    media_type(request, JSON)
    return await read_body(request, _register)


def _register(content: bytes) -> RegisterTable:
    body = decode_envelope(content, _REGISTER)
    _check_place(body.name, body.location)
    return RegisterTable(
        name=body.name,
        location=body.location,
        catalog_managed=body.catalog_managed,
        by_marks=body.by_marks,
    )


def _check_place(name: str, location: str | None) -> None:
    """Raise `Refused` for what can be no table's: rights are looked up by the name, and the
    location is gone through, where everybody's requests are."""
    check_name(name)
    if location is not None:
        check_length(location)


async def read_scan(request: Request) -> ScanRequest:
    """Raises `BadRequest`, and `Refused` for a media type or size that is not taken."""
    media_type(request, JSON)
    body = await read_body(request, lambda content: decode_envelope(content, _SCAN))
    return ScanRequest(
        version=body.version,
        timestamp=body.timestamp,
        predicates=body.predicates,
        columns=body.columns,
    )


async def read_checkpoint(request: Request) -> int | None:
    """The version. Raises `BadRequest`, and `Refused` for a media type or size that is not
    taken."""
    media_type(request, JSON)
    body = await read_body(request, lambda content: decode_envelope(content, _CHECKPOINT))
    return body.version
