"""What Unity Catalog's API answers."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid5

import msgspec
from starlette.responses import Response

from tidegate_protocol.features.known import UNITY_TABLE_ID
from tidegate_protocol.features.properties import IN_COMMIT_TIMESTAMPS
from tidegate_protocol.features.table_features import implied_features
from tidegate_service.api.http.request.requests import JSON
from tidegate_service.api.unity_catalog.columns import columns_of, struct_of
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.sharing import offload
from tidegate_service.core.tables.lookup import Page
from tidegate_service.core.unity_catalog.create import REQUIRED_FEATURES, Place
from tidegate_service.core.unity_catalog.identity import etag, is_managed, table_uuid

Json = dict[str, Any]

_SCHEMAS = UUID("3f5b6a0e-9d7b-4b8e-8f2a-1a8f6f1d2c33")
_READERS = tuple(name for name in REQUIRED_FEATURES if name != "inCommitTimestamp")
_PATHS = "/v1/catalogs/{catalog}/schemas/{schema}"
ENDPOINTS = (
    f"POST {_PATHS}/staging-tables",
    f"POST {_PATHS}/tables",
    f"GET {_PATHS}/tables/{{table}}",
    f"POST {_PATHS}/tables/{{table}}",
    f"GET {_PATHS}/tables/{{table}}/credentials",
    f"POST {_PATHS}/tables/{{table}}/metrics",
    "GET /v1/staging-tables/{table_id}/credentials",
)
"""Of the part for Delta."""
CONFIG: Json = {"protocol-version": "1.0", "endpoints": list(ENDPOINTS)}
NO_CREDENTIALS: Json = {"storage-credentials": []}
"""Clients then use what they have themselves."""


def table_type(table: TableRecord) -> str:
    return "MANAGED" if is_managed(table) else "EXTERNAL"


def loaded_answer(table: TableRecord) -> Json:
    """A table as the part for Delta loads it. There are no `commits` in it: the log has all
    versions up to the latest one."""
    metadata = table.metadata
    assert metadata is not None
    created = metadata.created_time or 0
    return {
        "metadata": {
            "etag": etag(table),
            "table-type": table_type(table),
            "table-uuid": table_uuid(table),
            "location": table.location,
            "created-time": created,
            "updated-time": max(created, table.latest_timestamp),
            "comment": metadata.description,
            "columns": struct_of(metadata),
            "partition-columns": list(metadata.partition_columns),
            "properties": properties_of(table),
            "last-commit-version": table.latest_version,
            "last-commit-timestamp-ms": table.latest_timestamp,
        },
        "commits": [],
        "latest-table-version": table.latest_version,
    }


def properties_of(table: TableRecord) -> dict[str, str]:
    """The table's own properties, and those that this API makes of protocol and version."""
    metadata, protocol = table.metadata, table.protocol
    assert metadata is not None
    assert protocol is not None
    features = {f"delta.feature.{name}": "supported" for name in implied_features(protocol)}
    return {
        **metadata.configuration,
        **features,
        "delta.minReaderVersion": str(protocol.min_reader_version),
        "delta.minWriterVersion": str(protocol.min_writer_version),
        "delta.lastUpdateVersion": str(table.latest_version),
        "delta.lastCommitTimestamp": str(table.latest_timestamp),
    }


def staging_answer(place: Place) -> Json:
    """Where a table is to be written. Column mapping is not suggested: not every client writes
    partition values under physical names."""
    return {
        "table-id": place.table_id,
        "table-type": "MANAGED",
        "location": place.location,
        "storage-credentials": [],
        "required-protocol": {
            "min-reader-version": 3,
            "min-writer-version": 7,
            "reader-features": list(_READERS),
            "writer-features": list(REQUIRED_FEATURES),
        },
        "suggested-protocol": {"reader-features": [], "writer-features": []},
        "required-properties": {IN_COMMIT_TIMESTAMPS: "true", UNITY_TABLE_ID: place.table_id},
        "suggested-properties": {},
    }


def classic_table(table: TableRecord) -> Json:
    """A table as the classic part shows it."""
    catalog, schema, name = table.name.split(".")
    metadata = table.metadata
    assert metadata is not None
    created = metadata.created_time or 0
    return {
        "name": name,
        "catalog_name": catalog,
        "schema_name": schema,
        "table_type": table_type(table),
        "data_source_format": "DELTA",
        "columns": columns_of(metadata),
        "storage_location": table.location,
        "comment": metadata.description,
        "properties": properties_of(table),
        "owner": None,
        "created_at": created,
        "created_by": None,
        "updated_at": max(created, table.latest_timestamp),
        "updated_by": None,
        "table_id": table_uuid(table),
    }


def classic_tables(page: Page) -> Json:
    return {
        "tables": [classic_table(table) for table in page.tables],
        "next_page_token": page.next_cursor,
    }


def classic_schema(catalog: str, schema: str) -> Json:
    """A schema. It is part of its tables' names, and nothing else is known of it."""
    full = f"{catalog}.{schema}"
    return {
        "name": schema,
        "catalog_name": catalog,
        "full_name": full,
        "comment": None,
        "properties": {},
        "owner": None,
        "created_at": 0,
        "created_by": None,
        "updated_at": 0,
        "updated_by": None,
        "schema_id": str(uuid5(_SCHEMAS, full.lower())),
    }


def answer(found: Json) -> Response:
    return Response(_as_text(found), media_type=JSON)


async def answer_of(make: Callable[[], Json], *tables: TableRecord) -> Response:
    """The answer that `make` gives of these tables. It is made in a thread where their metadata is
    long, whose columns are parsed."""
    weight = offload.weight_of_metadata(*(table.metadata for table in tables))
    text = await offload.run(weight, lambda: _as_text(make()))
    return Response(text, media_type=JSON)


def _as_text(answer: Json) -> bytes:
    return msgspec.json.encode(answer)
