"""The columns and properties of a new table: what they may not be, by Delta's rules, and which
columns it is clustered by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from tidegate.errors import InvalidProposal, InvalidRequest
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.column_mapping import assign
from tidegate_protocol.features.known import CLUSTERING, IDENTITY_START
from tidegate_protocol.features.properties import (
    COLUMN_MAPPING_MAX_ID,
    InvalidProperty,
    TableProperties,
    canonical,
    check_new,
)
from tidegate_protocol.log.actions import DomainMetadata, Metadata
from tidegate_protocol.scan.clustering import (
    InvalidClustering,
    clustering_columns,
    domain_of,
    shown,
)
from tidegate_protocol.schema.data_types import ArrayType, DataType, MapType, StructType, walk
from tidegate_protocol.schema.table_schema import (
    InvalidSchema,
    check_partition_columns,
    feed_columns,
    parse_schema,
    to_json,
    validate_table_schema,
)

CLUSTERING_FEATURE = f"delta.feature.{CLUSTERING}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewClustering:
    """What the creation of a clustered table says of its clustering. `schema` is JSON, with the ids
    and physical names of mapped columns: the domain has the physical names. `columns` are called as
    in Delta's history."""

    columns: Sequence[str]
    schema: str
    properties: Mapping[str, str]
    domain: DomainMetadata


def new_clustering(
    names: Sequence[str],
    schema_text: str,
    properties: Mapping[str, str],
    partition_by: Sequence[str],
) -> NewClustering:
    """A new table's clustering by columns of these names. Raises `InvalidRequest`."""
    if any(name.lower() == CLUSTERING_FEATURE for name in properties):
        raise _refused(
            "Cannot enable clustering table feature using TBLPROPERTIES. Please use CREATE OR "
            "REPLACE TABLE CLUSTER BY to create a Delta table with clustering",
            error_class="DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        )
    check_properties(properties)
    known = TableProperties.parse(canonical(properties))
    try:
        schema = _marked(parse_schema(schema_text), known)
        columns = clustering_columns(
            names, schema=schema, properties=known, partition_columns=partition_by
        )
    except InvalidClustering as error:
        raise _refused(str(error), error_class=error.error_class) from None
    except InvalidSchema as error:
        raise InvalidRequest(str(error), code=Code.INVALID_REQUEST, definite=True) from None
    return NewClustering(
        columns=[shown(column) for column in columns],
        schema=to_json(schema) if known.column_mapping else schema_text,
        properties={CLUSTERING_FEATURE: "supported"},
        domain=domain_of(columns),
    )


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise `InvalidRequest`, under Delta's error class, for properties that no table can have."""
    try:
        check_new(properties)
        TableProperties.parse(canonical(properties))
    except InvalidProperty as error:
        raise InvalidRequest(
            str(error),
            code=Code.INVALID_REQUEST,
            definite=True,
            error_class=error.condition,
        ) from None


def check_metadata(before: Metadata, after: Metadata) -> None:
    """As `check_feed_columns`, of what takes the place of a table's metadata."""
    try:
        had_feed = TableProperties.parse(before.configuration).change_data_feed
    except InvalidProperty:
        return
    check_feed_columns(after.schema_string, after.configuration, had_feed=had_feed)


def check_feed_columns(
    schema_text: str, properties: Mapping[str, str], *, had_feed: bool = False
) -> None:
    """Raise `InvalidProposal` where a table would have columns that its change data feed has, too.
    `had_feed`: it is the columns that are new, and not the feed. What cannot be parsed is for the
    service to refuse."""
    try:
        wanted = TableProperties.parse(canonical(properties))
        schema = parse_schema(schema_text)
    except (InvalidProperty, InvalidSchema):
        return
    taken = feed_columns(schema) if wanted.change_data_feed else []
    if not taken:
        return
    if had_feed:
        error_class = "RESERVED_CDC_COLUMNS_ON_WRITE"
        text = (
            f"The write contains reserved columns {taken} that are used internally as metadata "
            "for Change Data Feed"
        )
    else:
        error_class = "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
        text = (
            "Unable to enable Change Data Capture on the table. The table already contains "
            f"reserved columns {taken}"
        )
    raise InvalidProposal(
        text,
        code=Code.INVALID_SCHEMA,
        hint="rename these columns, or leave them out",
        definite=True,
        error_class=error_class,
    )


def new_columns(schema_text: str, properties: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The JSON of a new table's columns as the log has them, and the properties that come with
    them: where the given ones ask for column mapping, each column has an id and a physical name,
    for files to know it by, and the table tells how far the ids go. The columns are such as
    `check_columns` lets through."""
    known = TableProperties.parse(canonical(properties))
    schema = parse_schema(schema_text)
    if not known.column_mapping:
        return to_json(schema), {}
    marked, highest = _with_marks(schema, known)
    return to_json(marked), {COLUMN_MAPPING_MAX_ID: str(highest)}


def _marked(schema: StructType, properties: TableProperties) -> StructType:
    """With ids and physical names where columns are mapped; those that it has stay."""
    return _with_marks(schema, properties)[0] if properties.column_mapping else schema


def _with_marks(schema: StructType, properties: TableProperties) -> tuple[StructType, int]:
    """The columns with ids and physical names, and the highest id."""
    highest = properties.max_column_id or 0
    return assign(schema, max_id=highest, new_name=lambda: f"col-{uuid4()}")


def check_columns(
    schema_text: str, properties: Mapping[str, str], partition_by: Sequence[str]
) -> None:
    """Raise the `InvalidRequest` of the service, and what `check_new_table` raises, for columns
    that no table of these properties can have, and for what it cannot be partitioned by: whoever
    writes its rows first is to know before."""
    check_new_table(schema_text, partition_by)
    check_properties(properties)
    try:
        known = TableProperties.parse(canonical(properties))
        schema = parse_schema(schema_text)
        validate_table_schema(schema, column_mapping=known.column_mapping)
        check_partition_columns(schema, partition_by)
    except InvalidSchema as error:
        raise InvalidRequest(str(error), code=Code.INVALID_SCHEMA, definite=True) from None


def check_new_table(schema_text: str, partition_by: Sequence[str]) -> None:
    """Raise `InvalidRequest` for a NOT NULL field inside of a list or a map, which nobody would
    enforce, and for an identity column that the table is partitioned by. What is no schema at all
    is for the service to refuse."""
    try:
        schema = parse_schema(schema_text)
    except InvalidSchema:
        return
    for field in schema.fields:
        for path in _required_in_collections(field.type, (field.name,)):
            raise _refused(
                f"field {'.'.join(path)} is NOT NULL inside of a list or a map, which is not "
                "enforced on rows; expected a nullable one",
                error_class="DELTA_NESTED_NOT_NULL_CONSTRAINT",
            )
    partitions = {name.lower() for name in partition_by}
    for field in schema.fields:
        if IDENTITY_START in field.metadata and field.name.lower() in partitions:
            raise _refused(
                f"column {field.name} is an identity column; a table is not partitioned by one",
                error_class="DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
            )


def _required_in_collections(data_type: DataType, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    match data_type:
        case StructType(fields=fields):
            return [
                found
                for field in fields
                for found in _required_in_collections(field.type, (*path, field.name))
            ]
        case ArrayType(element=element):
            return _required(element, (*path, "element"))
        case MapType(key=key, value=value):
            return [*_required(key, (*path, "key")), *_required(value, (*path, "value"))]
    return []


def _required(data_type: DataType, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [(*path, *inner) for inner, field, _ in walk(data_type) if not field.nullable]


def _refused(detail: str, *, error_class: str) -> InvalidRequest:
    return InvalidRequest(detail, code=Code.INVALID_SCHEMA, definite=True, error_class=error_class)
