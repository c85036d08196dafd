"""The metadata rule (Delta: ConflictChecker.attemptToResolveMetadataConflicts).

A winner's metadata is tolerated when nothing but properties of an allow-list changed, in the
direction of enabling a feature, or when column mapping by name was put over the same columns, or
when identity columns gave numbers out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.answer import conflict
from tidegate_protocol.features import table_features
from tidegate_protocol.features.computed_columns import only_identity_marks_moved
from tidegate_protocol.features.known import CATALOG_MANAGED, COLUMN_MAPPING, IN_COMMIT_TIMESTAMP
from tidegate_protocol.features.properties import (
    IN_COMMIT_TIMESTAMPS,
    IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP,
    IN_COMMIT_TIMESTAMPS_SINCE_VERSION,
)
from tidegate_protocol.features.row_tracking import ROW_TRACKING_PRESERVED_TAG
from tidegate_protocol.log.actions import Metadata, Protocol
from tidegate_protocol.log.codec import encode
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction, WinningCommit
from tidegate_protocol.schema.table_schema import Field, InvalidSchema, StructType, parse_schema

_COLUMN_MAPPING_MODE = "delta.columnMapping.mode"
_COLUMN_MAPPING_MAX_ID = "delta.columnMapping.maxColumnId"
_DELETION_VECTORS = "delta.enableDeletionVectors"
_CHECKPOINT_POLICY = "delta.checkpointPolicy"
_ROW_TRACKING = "delta.enableRowTracking"
_ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
_ROW_COMMIT_VERSION_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
_CATALOG_TABLE_ID = "io.unitycatalog.tableId"

_IDENTITY_TAG = "delta.identity.schemaUpdate"

_COLUMN_MAPPING_FIELD_METADATA = frozenset(
    {
        "delta.columnMapping.id",
        "delta.columnMapping.nested.ids",
        "delta.columnMapping.physicalName",
        "parquet.field.id",
        "parquet.field.nested.ids",
    }
)

_ENVELOPE = msgspec.json.Decoder(dict[str, dict[str, Any]])


def metadata_rule(
    txn: PreparedTransaction, winner: WinningCommit
) -> PreparedTransaction | Conflict:
    """The transaction goes on with a winner's metadata that changed nothing it relied on."""
    theirs = winner.metadata
    if theirs is None:
        return txn
    if txn.metadata_changed:
        what = "changed the metadata, which this transaction changes, too"
        return conflict(Code.METADATA_CHANGED, winner, what)
    changed = changed_fields(txn.metadata, theirs)
    if changed == {"schemaString"} and _only_gave_numbers_out(txn.metadata, winner):
        return replace(txn, metadata=theirs)
    unresolvable = changed - {"configuration", "schemaString"}
    if unresolvable:
        what = f"changed {sorted(unresolvable)} in the metadata"
        return conflict(Code.METADATA_CHANGED, winner, what)
    properties = _intolerable_properties(txn.metadata, theirs, txn.protocol)
    if properties:
        what = f"changed the table properties {properties}"
        return conflict(Code.METADATA_CHANGED, winner, what)
    if "schemaString" in changed and not _only_maps_columns(txn.metadata, theirs):
        return conflict(Code.METADATA_CHANGED, winner, "changed the schema")
    tags = txn.tags
    if theirs.configuration.get(_ROW_TRACKING) != txn.metadata.configuration.get(_ROW_TRACKING):
        # It was enabled. What was written before that cannot have kept row ids.
        tags = {**tags, ROW_TRACKING_PRESERVED_TAG: "false"}
    return replace(txn, metadata=theirs, tags=tags)


def changed_fields(before: Metadata, after: Metadata) -> frozenset[str]:
    """The names (the log's) of the fields that differ, those that nobody here knows included."""
    mine, theirs = _fields(before), _fields(after)
    return frozenset(
        name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)
    )


def _fields(metadata: Metadata) -> dict[str, object]:
    """Known fields typed, so that an absent one equals its default; unknown ones as JSON text."""
    body = _ENVELOPE.decode(encode(metadata))["metaData"]
    known = {
        item.encode_name: getattr(metadata, item.name)
        for item in msgspec.structs.fields(metadata)
        if item.name != "raw"
    }
    unknown = {name: _canonical(value) for name, value in body.items() if name not in known}
    return {**unknown, **known}


def _canonical(value: object) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PropertyChange:
    """One property that a winner added or changed; `protocol` is the transaction's."""

    before: Metadata
    after: Metadata
    value: str
    is_new: bool
    protocol: Protocol

    def supports(self, feature: str) -> bool:
        return table_features.supports(self.protocol, feature)


_TOLERATED: Mapping[str, Callable[[_PropertyChange], bool]] = {
    _COLUMN_MAPPING_MODE: lambda change: (
        _enables_name_mapping(change.before, change.after) and change.supports(COLUMN_MAPPING)
    ),
    _COLUMN_MAPPING_MAX_ID: lambda change: True,
    # Files without deletion vectors are right on a table that allows them.
    _DELETION_VECTORS: lambda change: change.supports("deletionVectors") and _is_true(change.value),
    _CHECKPOINT_POLICY: lambda change: change.supports("v2Checkpoint") and change.value == "v2",
    # Rebasing gives the transaction its in-commit timestamp.
    IN_COMMIT_TIMESTAMPS: lambda change: (
        change.supports(IN_COMMIT_TIMESTAMP) and _is_true(change.value)
    ),
    IN_COMMIT_TIMESTAMPS_SINCE_VERSION: lambda change: change.is_new,
    IN_COMMIT_TIMESTAMPS_SINCE_TIMESTAMP: lambda change: change.is_new,
    _ROW_TRACKING: lambda change: change.supports("rowTracking") and _is_true(change.value),
    _ROW_ID_COLUMN: lambda change: _is_true(change.after.configuration.get(_ROW_TRACKING)),
    _ROW_COMMIT_VERSION_COLUMN: lambda change: _is_true(
        change.after.configuration.get(_ROW_TRACKING)
    ),
    _CATALOG_TABLE_ID: lambda change: change.is_new or not change.supports(CATALOG_MANAGED),
}
"""Delta's allow-list: the properties that may be added or changed, and when."""


def _intolerable_properties(before: Metadata, after: Metadata, protocol: Protocol) -> list[str]:
    mine, theirs = before.configuration, after.configuration
    intolerable = set(mine.keys() - theirs.keys())
    for name, value in theirs.items():
        if mine.get(name) == value:
            continue
        tolerates = _TOLERATED.get(name)
        change = _PropertyChange(
            before=before, after=after, value=value, is_new=name not in mine, protocol=protocol
        )
        if tolerates is None or not tolerates(change):
            intolerable.add(name)
    return sorted(intolerable)


def _only_gave_numbers_out(before: Metadata, winner: WinningCommit) -> bool:
    """Whether the winner did nothing but write down how far its identity columns have come."""
    info, after = winner.commit_info, winner.metadata
    tags = (None if info is None else info.tags) or {}
    if after is None or not _is_true(tags.get(_IDENTITY_TAG)):
        return False
    schemas = _schemas(before, after)
    return schemas is not None and only_identity_marks_moved(*schemas)


def _enables_name_mapping(before: Metadata, after: Metadata) -> bool:
    modes = [
        metadata.configuration.get(_COLUMN_MAPPING_MODE, "none").lower()
        for metadata in (before, after)
    ]
    return modes == ["none", "name"]


def _only_maps_columns(before: Metadata, after: Metadata) -> bool:
    """Whether the schemas differ in nothing but the column mapping that was put on top."""
    if not _enables_name_mapping(before, after):
        return False
    schemas = _schemas(before, after)
    if schemas is None:
        return False
    mine, theirs = schemas
    return len(mine.fields) == len(theirs.fields) and all(
        (old.name, old.type, old.nullable) == (new.name, new.type, new.nullable)
        and _unmapped(old) == _unmapped(new)
        for old, new in zip(mine.fields, theirs.fields, strict=True)
    )


def _schemas(before: Metadata, after: Metadata) -> tuple[StructType, StructType] | None:
    try:
        return parse_schema(before.schema_string), parse_schema(after.schema_string)
    except InvalidSchema:
        return None


def _unmapped(field: Field) -> dict[str, bytes]:
    """The field's metadata without what column mapping puts there."""
    return {
        name: _canonical(value)
        for name, value in field.metadata.items()
        if name not in _COLUMN_MAPPING_FIELD_METADATA
    }


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() == "true"
