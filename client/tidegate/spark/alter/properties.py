"""Table properties, set and unset, and the table's comment, which Delta sets as one of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.errors import InvalidRequest
from tidegate.models import Receipt
from tidegate.new_table import check_feed_columns
from tidegate.spark.alter.alteration import Alteration, as_json
from tidegate.spark.alter.features.backfill import ENABLEMENT_ONLY_TAG, Begin, backfill, switches_on
from tidegate.spark.expressions.definitions import check_adds_no_constraint
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.write.protocol import raised
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features import upkeep
from tidegate_protocol.features.column_mapping import assign, columns
from tidegate_protocol.features.properties import (
    COLUMN_MAPPING_MAX_ID,
    InvalidProperty,
    TableProperties,
    canonical,
    check_new,
    storable,
)
from tidegate_protocol.features.table_features import missing_features, with_features
from tidegate_protocol.log.actions import Protocol
from tidegate_protocol.schema.table_schema import parse_schema, to_json

COMMENT = "comment"
_CLUSTERING = "delta.feature.clustering"
_RESERVED: Mapping[str, tuple[str, str]] = {
    "location": (
        "DELTA_CANNOT_CHANGE_LOCATION",
        "Cannot change the 'location' of the Delta table using SET TBLPROPERTIES",
    ),
    "provider": (
        "DELTA_CANNOT_CHANGE_PROVIDER",
        "'provider' is a reserved table property, and cannot be altered",
    ),
    "clusteringcolumns": (
        "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
        "The Delta table configuration clusteringColumns cannot be specified by the user",
    ),
    # Ids are never used again: none would be left above one that is too high.
    COLUMN_MAPPING_MAX_ID.lower(): (
        "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
        f"The Delta table configuration {COLUMN_MAPPING_MAX_ID} cannot be specified by the user",
    ),
    _CLUSTERING: (
        "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        "Cannot enable clustering table feature using ALTER TABLE SET TBLPROPERTIES",
    ),
}
"""What is said of names, in lower case, that are no property's to set."""


def set_properties(alteration: Alteration, given: Mapping[str, str], *, begin: Begin) -> Receipt:
    """SET TBLPROPERTIES. `comment` is the table's comment. `delta.feature.<name>` = `supported`,
    `delta.minReaderVersion` and `delta.minWriterVersion` raise the protocol, and are not kept.
    Where rows are to be tracked, commits before this one give the table's files row ids.

    Raises `InvalidCommand`, `InvalidRequest` for values that a property cannot have, and what
    `Transaction.commit` raises.
    """
    _check(given)
    wanted = canonical(given)
    changes = _with(alteration, wanted)
    protocol = raised(alteration.protocol, TableProperties.parse(wanted))
    tags = None
    if switches_on(alteration, wanted):
        backfill(begin)
        alteration = begin()
        changes = _with(alteration, wanted)
        protocol = raised(alteration.protocol, TableProperties.parse(wanted))
        tags = {ENABLEMENT_ONLY_TAG: "true"} if len(wanted) == 1 else None
    return _commit(
        alteration,
        changes,
        protocol=protocol,
        operation="SET TBLPROPERTIES",
        parameters={"properties": as_json(wanted)},
        tags=tags,
    )


def _with(alteration: Alteration, wanted: Mapping[str, str]) -> dict[str, Any]:
    """The metadata's fields, by the log's names, of the table with these properties as well."""
    properties = {name: value for name, value in wanted.items() if name != COMMENT}
    changes = _changed(alteration, {**alteration.metadata.configuration, **storable(properties)})
    if COMMENT in wanted:
        changes["description"] = wanted[COMMENT]
    return changes


def unset_properties(alteration: Alteration, names: Iterable[str], *, if_exists: bool) -> Receipt:
    """UNSET TBLPROPERTIES. One that is not there is an error, unless `if_exists`. Raises as
    `set_properties` does."""
    gone = list(canonical(dict.fromkeys(names, "")))
    metadata = alteration.metadata
    known = {*metadata.configuration, *([COMMENT] if metadata.description is not None else [])}
    for name in gone:
        if name not in known and not if_exists:
            raise InvalidCommand(
                "DELTA_UNSET_NON_EXISTENT_PROPERTY",
                f"Attempted to unset non-existent property '{name}' in table "
                f"{alteration.layout.name}",
            )
    kept = {name: value for name, value in metadata.configuration.items() if name not in gone}
    changes = _changed(alteration, kept)
    if COMMENT in gone:
        changes["description"] = None
    return _commit(
        alteration,
        changes,
        protocol=alteration.protocol,
        operation="UNSET TBLPROPERTIES",
        parameters={"properties": as_json(gone), "ifExists": if_exists},
    )


def _commit(
    alteration: Alteration,
    changes: Mapping[str, Any],
    *,
    protocol: Protocol,
    operation: str,
    parameters: Mapping[str, Any],
    tags: Mapping[str, str] | None = None,
) -> Receipt:
    if protocol != alteration.protocol:
        # A commit that names its protocol names all that it needs of it.
        properties = TableProperties.parse(changes["configuration"])
        schema = parse_schema(changes.get("schemaString", alteration.metadata.schema_string))
        lacking = missing_features(protocol, properties, schema)
        alteration.set_protocol(with_features(protocol, lacking))
    alteration.set_metadata(changes)
    return alteration.commit(operation, parameters, tags=tags)


def _check(given: Mapping[str, str]) -> None:
    """Raise for names that are none of a property, and for values that they cannot have."""
    check_adds_no_constraint(given)
    for name in given:
        if name.lower() in _RESERVED:
            raise InvalidCommand(*_RESERVED[name.lower()])
    try:
        check_new(given)
    except InvalidProperty as error:
        if error.condition is None:
            raise _refused(str(error)) from None
        raise InvalidCommand(error.condition, str(error)) from None


def _changed(alteration: Alteration, configuration: Mapping[str, str]) -> dict[str, Any]:
    """The metadata's fields, by the log's names, of a table with these properties. Raises
    `InvalidCommand` and `InvalidRequest` for those that it cannot have."""
    before = alteration.layout.properties
    after = TableProperties.parse(configuration)
    schema_text, had_feed = alteration.metadata.schema_string, before.change_data_feed
    check_feed_columns(schema_text, configuration, had_feed=had_feed)
    _check_retention(configuration)
    modes = (before.column_mapping_mode, after.column_mapping_mode)
    if modes[0] == modes[1]:
        return {"configuration": dict(configuration)}
    if modes != ("none", "name"):
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            f"Changing column mapping mode from '{modes[0]}' to '{modes[1]}' is not supported",
        )
    schema, highest = _mapped(schema_text)
    return {
        "configuration": {**configuration, COLUMN_MAPPING_MAX_ID: str(highest)},
        "schemaString": schema,
    }


def _mapped(schema_string: str) -> tuple[str, int]:
    """The schema with ids, and with the names that its files have as the physical ones."""
    schema = parse_schema(schema_string)
    # In the order in which they are asked for: parents first.
    names = iter([field.name for _, _, field in columns(schema)])
    marked, highest = assign(schema, max_id=0, new_name=lambda: next(names))
    return to_json(marked), highest


def _check_retention(configuration: Mapping[str, str]) -> None:
    log = upkeep.log_retention_ms(configuration)
    files = upkeep.deleted_file_retention_ms(configuration)
    if log is not None and log < files:
        names = (upkeep.LOG_RETENTION, upkeep.DELETED_FILE_RETENTION)
        shown = [f"{name} (= {configuration.get(name, 'its default')})" for name in names]
        raise _refused(f"{shown[0]} needs to be greater than or equal to {shown[1]}")


def _refused(detail: str) -> InvalidRequest:
    return InvalidRequest(detail, code=Code.INVALID_REQUEST, definite=True)
