"""Arrow batches of a DataFrame brought into a table's columns.

The data source hands over batches as they are, so that what Spark would do to a column is not
to be had here. It takes columns of the table's own types, and numbers that fit without a loss;
`Table.append` does the rest of Spark's store assignment.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import NumericType
from pyspark.sql.types import StructType as SparkStruct

from tidegate.spark.errors import InvalidRows, SchemaMismatch
from tidegate.spark.tables.assignment import same_type
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.mapping import PARQUET_ID
from tidegate.spark.tables.refusals import check_typed
from tidegate_protocol.schema.data_types import (
    BINARY,
    BOOLEAN,
    BYTE,
    COLUMN_ID,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
    type_name,
)

_ARROW: Mapping[DataType, pa.DataType] = {
    BINARY: pa.binary(),
    BOOLEAN: pa.bool_(),
    BYTE: pa.int8(),
    DATE: pa.date32(),
    DOUBLE: pa.float64(),
    FLOAT: pa.float32(),
    INTEGER: pa.int32(),
    LONG: pa.int64(),
    SHORT: pa.int16(),
    STRING: pa.string(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
    TIMESTAMP_NTZ: pa.timestamp("us"),
}


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type that files and batches have for a table's type. Everything inside is
    nullable, as in the files that Spark writes."""
    match data_type:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element=element):
            return pa.list_(arrow_type(element))
        case MapType(key=key, value=value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case StructType():
            return pa.struct(list(arrow_schema(data_type)))
    return _ARROW[data_type]


def arrow_schema(struct: StructType) -> pa.Schema:
    """The schema of files; those of a physical layout have the ids of mapped columns."""
    return pa.schema(
        [
            pa.field(field.name, arrow_type(field.type), metadata=_ids(field))
            for field in struct.fields
        ]
    )


def _ids(field: Field) -> dict[bytes, bytes] | None:
    found = field.metadata.get(COLUMN_ID)
    return None if found is None else {PARQUET_ID: str(found).encode()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Where a table's column comes from: its position among the DataFrame's, None for null."""

    name: str
    type: DataType
    nullable: bool
    position: int | None
    is_partition: bool


class BatchColumns:
    """How the batches of a DataFrame become the table's columns, settled once for all of them."""

    def __init__(self, schema: SparkStruct, layout: TableLayout) -> None:
        """Raises `SchemaMismatch` for a DataFrame of this schema that does not fit the table, and
        `UnsupportedTable` for a void column."""
        check_typed(layout)
        positions: dict[str, int] = {}
        for position, field in enumerate(schema.fields):
            if positions.setdefault(field.name.lower(), position) != position:
                raise SchemaMismatch(
                    f"the DataFrame has the column {field.name} twice (names are matched in any "
                    "case)",
                    error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
                )
        table = {field.name.lower() for field in layout.schema.fields}
        if extra := [field.name for field in schema.fields if field.name.lower() not in table]:
            raise SchemaMismatch(
                f"the DataFrame has the columns {extra}, which table {layout.name} does not "
                f"have; it has {layout.spark_schema.names}",
                hint="leave them out, or add them to the table by the option mergeSchema",
                error_class="DELTA_METADATA_MISMATCH",
            )
        self._sources = tuple(
            _source(field.name, positions.get(field.name.lower()), schema, layout)
            for field in layout.schema.fields
        )

    def conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the table's columns in their order. Raises `InvalidRows`."""
        arrays = [_array(source, batch) for source in self._sources]
        return pa.RecordBatch.from_arrays(arrays, [source.name for source in self._sources])


def _source(name: str, position: int | None, schema: SparkStruct, layout: TableLayout) -> _Source:
    field = layout.schema.field(name)
    if field is None:
        raise AssertionError(f"{name} is no column of {layout.name}")
    is_partition = name in layout.partition_columns
    if position is None and is_partition:
        raise SchemaMismatch(
            f"the DataFrame lacks the partition column {name} of table {layout.name}",
            error_class="DELTA_MISSING_PARTITION_COLUMN",
        )
    if position is None and not field.nullable:
        raise SchemaMismatch(
            f"the DataFrame lacks the column {name} of table {layout.name}, which is NOT NULL",
            error_class="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
        )
    if position is not None:
        source, target = schema.fields[position].dataType, layout.spark_schema[name].dataType
        numbers = isinstance(source, NumericType) and isinstance(target, NumericType)
        if not same_type(source, target) and not numbers:
            raise SchemaMismatch(
                f"column {name} is {source.simpleString()} in the DataFrame and "
                f"{target.simpleString()} in the table; the data source converts numbers only, "
                "and does not check NOT NULL inside of columns (Table.append does both)",
                error_class="DELTA_FAILED_TO_MERGE_FIELDS",
            )
    return _Source(
        name=name,
        type=field.type,
        nullable=field.nullable,
        position=position,
        is_partition=is_partition,
    )


def _array(source: _Source, batch: pa.RecordBatch) -> pa.Array:
    target = arrow_type(source.type)
    if source.position is None:
        return pa.nulls(batch.num_rows, target)
    array = batch.column(source.position)
    if array.type != target:
        try:
            array = array.cast(target)
        except pa.ArrowInvalid as error:
            raise InvalidRows(
                f"column {source.name} holds a value that is no {type_name(source.type)}: {error}",
                error_class="CAST_OVERFLOW_IN_TABLE_INSERT",
            ) from None
    if not source.nullable:
        empty = source.is_partition and source.type in (STRING, BINARY)
        if array.null_count or (empty and _holds_empty(array)):
            raise InvalidRows(
                f"column {source.name} is NOT NULL, but a row holds null there",
                error_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
            )
    return array


def _holds_empty(array: pa.Array) -> bool:
    """Whether a text or bytes are empty, which partition values cannot tell from null."""
    found: bool = pc.any(pc.equal(pc.binary_length(array), 0)).as_py() or False
    return found
