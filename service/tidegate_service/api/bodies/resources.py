"""The other request bodies: creating a table, registering, scanning and vacuuming one."""

from typing import Annotated, Any

import msgspec
from fastapi import Request
from msgspec import Meta, Raw, Struct, field

from tidegate_protocol.schema.table_schema import MAX_FIELDS
from tidegate_service.api.bodies.decoding import decode_envelope, read_body
from tidegate_service.api.bodies.proposals import MAX_VERSION, Predicate, decode_array
from tidegate_service.api.http.requests import JSON, media_type
from tidegate_service.core.access.names import MAX_NAME_LENGTH
from tidegate_service.core.tables.create import CreateTable
from tidegate_service.core.tables.register import RegisterTable
from tidegate_service.core.tables.scan import ScanRequest

TABLE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*){2}$"
"""What `core.access.names` takes, for the document."""


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
        tuple[str, ...], Meta(description="Names of columns of the schema, in order.")
    ] = ()
    properties: Annotated[
        dict[str, str], Meta(description="Table properties, such as `delta.appendOnly`.")
    ] = {}
    comment: str | None = None
    location: Annotated[
        str | None,
        Meta(
            description="A URL under the warehouse or an allowed location; "
            "by default a folder of the warehouse."
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


class RegisterTableBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An existing Delta table to adopt."""

    name: Annotated[
        str,
        Meta(
            description="`catalog.schema.table`, found in any case later.",
            examples=["main.air.flights"],
        ),
    ]
    location: Annotated[
        str,
        Meta(
            description="The folder that its `_delta_log` is in, as a URL under the warehouse or "
            "an allowed location."
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
            "restore: every version has to say that this service wrote it for this table. For "
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
        Annotated[tuple[str, ...], Meta(max_length=MAX_FIELDS)] | None,
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
    )


async def read_register(request: Request) -> RegisterTable:
    """Raises `BadRequest`, and `Refused` for a media type or size that is not taken."""
    media_type(request, JSON)
    body = await read_body(request, lambda content: decode_envelope(content, _REGISTER))
    return RegisterTable(
        name=body.name,
        location=body.location,
        catalog_managed=body.catalog_managed,
        by_marks=body.by_marks,
    )


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
