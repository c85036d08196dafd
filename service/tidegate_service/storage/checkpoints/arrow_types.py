"""The columns of a checkpoint as Arrow types (PROTOCOL.md, "Checkpoint Schema")."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from tidegate_protocol.checkpoint.columns import FileColumns
from tidegate_protocol.schema.data_types import DataType, DecimalType, PrimitiveType

TEXTS = pa.map_(pa.string(), pa.string())
VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
ADD_FIELDS = {
    "path": pa.string(),
    "partitionValues": TEXTS,
    "size": pa.int64(),
    "modificationTime": pa.int64(),
    "dataChange": pa.bool_(),
    "tags": TEXTS,
    "deletionVector": VECTOR,
    "baseRowId": pa.int64(),
    "defaultRowCommitVersion": pa.int64(),
    "clusteringProvider": pa.string(),
    "stats": pa.string(),
}
REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("extendedFileMetadata", pa.bool_()),
        ("partitionValues", TEXTS),
        ("size", pa.int64()),
        ("tags", TEXTS),
        ("deletionVector", VECTOR),
        ("baseRowId", pa.int64()),
        ("defaultRowCommitVersion", pa.int64()),
    ]
)
SMALL = {
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", TEXTS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", TEXTS),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
}
"""The actions of any checkpoint that are no files."""
OF_V2 = {
    "checkpointMetadata": pa.struct([("version", pa.int64()), ("tags", TEXTS)]),
    "sidecar": pa.struct(
        [
            ("path", pa.string()),
            ("sizeInBytes", pa.int64()),
            ("modificationTime", pa.int64()),
            ("tags", TEXTS),
        ]
    ),
}
_PRIMITIVES = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(data_type: DataType) -> pa.DataType | None:
    """None for a type that has neither statistics nor partition values."""
    if isinstance(data_type, DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    return _PRIMITIVES.get(data_type.name) if isinstance(data_type, PrimitiveType) else None


def add_type(columns: FileColumns) -> pa.StructType:
    fields = dict(ADD_FIELDS)
    if not columns.stats_as_json:
        del fields["stats"]
    if columns.parsed:
        partitions = partitions_type(columns)
        if partitions is not None:
            fields["partitionValues_parsed"] = partitions
        fields["stats_parsed"] = statistics_type(columns)
    return pa.struct(list(fields.items()))


def partitions_type(columns: FileColumns) -> pa.StructType | None:
    """None of a table without partition columns."""
    fields = [
        (name, found)
        for name, data_type in columns.partitions or ()
        if (found := arrow_type(data_type)) is not None
    ]
    return pa.struct(fields) if fields else None


def statistics_type(columns: FileColumns) -> pa.StructType:
    """Of the columns that have any; a struct without fields is none in Parquet."""
    bounds = _tree(
        (column.path, found)
        for column in columns.statistics
        if column.has_bounds and (found := arrow_type(column.type)) is not None
    )
    counts = _tree((column.path, pa.int64()) for column in columns.statistics)
    parts = {"minValues": bounds, "maxValues": bounds, "nullCount": counts}
    return pa.struct(
        [
            ("numRecords", pa.int64()),
            *((name, part) for name, part in parts.items() if part is not None),
            ("tightBounds", pa.bool_()),
        ]
    )


def _tree(leaves: Iterable[tuple[tuple[str, ...], pa.DataType]]) -> pa.StructType | None:
    """Structs along the paths."""
    root: dict[str, Any] = {}
    for path, data_type in leaves:
        inside = root
        for name in path[:-1]:
            inside = inside.setdefault(name, {})
        inside[path[-1]] = data_type
    return _struct(root) if root else None


def _struct(fields: Mapping[str, Any]) -> pa.StructType:
    return pa.struct(
        [
            (name, _struct(found) if isinstance(found, dict) else found)
            for name, found in fields.items()
        ]
    )
