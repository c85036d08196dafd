"""A DataFrame brought into the table's schema, or refused (Delta's schema enforcement)."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from tidegate.spark.columns.constraints import (
    Constraint,
    check_conditions,
    checked,
    constraints_of,
    generated_columns,
    with_generated,
)
from tidegate.spark.columns.lengths import within_length
from tidegate.spark.errors import SchemaMismatch
from tidegate.spark.tables.assignment import (
    assign,
    chosen,
    has_required,
    quoted,
    required,
    required_inside,
    same_type,
    unqualified,
)
from tidegate.spark.tables.building import few_calls
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.mapping import as_column
from tidegate.spark.tables.partitions import empty_as_null, folder_value
from tidegate.spark.tables.store_assignment import StoreAssignment
from tidegate.spark.values.defaults import default_of, default_value
from tidegate.spark.values.identity import check_given, numbered
from tidegate_protocol.schema.data_types import LENGTH_KEY


def conform(
    df: DataFrame,
    layout: TableLayout,
    *,
    is_copy: bool = False,
    further: Sequence[Constraint] = (),
    beside: Sequence[str] = (),
) -> DataFrame:
    """The DataFrame with the table's columns in their order, ready for Spark's Parquet writer, and
    columns of another's that are to be written `beside` them.

    Columns are matched by name in any case, and values stored by `spark.sql.storeAssignmentPolicy`.
    Of columns that are missing, generated ones are computed, identity columns get numbers, and
    others their default, which without one is null; partition columns without a default may not be
    missing, and come in the form that their folders are named by. `is_copy` says that the rows are
    the table's own, which keep their numbers, and `further` conditions hold of every row as the
    table's constraints do.

    Raises `SchemaMismatch`, and `UnsupportedTable` for expressions of the table that this session
    cannot read. Rows that do not fit, or break a constraint, make the job fail
    (`errors.refused_rows`).
    """
    known = _columns(df)
    kept = [known.pop(name.lower()).name for name in beside]
    fields = layout.spark_schema.fields
    table = {field.name.lower() for field in fields}
    extra = [field.name for name, field in known.items() if name not in table]
    if extra:
        raise SchemaMismatch(
            f"A schema mismatch detected when writing to table {layout.name}: the DataFrame has "
            f"the columns {extra}, which the table does not have; it has "
            f"{layout.spark_schema.names}",
            hint="leave them out, add them to the table by the option mergeSchema, or replace all "
            "columns and rows by overwriteSchema",
            error_class="DELTA_METADATA_MISMATCH",
        )
    if layout.partition_columns and not known.keys() & {
        field.name.lower() for field in layout.data_schema.fields
    }:
        raise SchemaMismatch(
            "Data written into Delta needs to contain at least one non-partitioned column; the "
            f"DataFrame has {df.columns}",
            error_class="DELTA_NON_PARTITION_COLUMN_ABSENT",
        )
    if not is_copy:
        check_given(layout, [f.name for f in fields if f.name.lower() in known])
    generated = generated_columns(layout)
    missing = [name for name in generated if name.lower() not in known]
    df = numbered(df, layout)
    known = _columns(df)
    storing = StoreAssignment.of(df.sparkSession)
    columns = {
        field.name: _marked(
            _conformed(field, known.get(field.name.lower()), layout, storing), field
        )
        for field in fields
        if field.name not in missing
    }
    given = unqualified(chosen(df, {**columns, **dict.fromkeys(kept)}))
    rows = with_generated(given, layout, missing=missing)
    constraints = [
        *constraints_of(layout, given=[name for name in generated if name not in missing]),
        *further,
    ]
    check_conditions(rows, layout, constraints)
    written: dict[str, Column | None] = {field.name: None for field in fields}
    written |= _folder_values(layout)
    if constraints:
        # One that is in the files: every writer evaluates it.
        carrier = layout.data_schema.fields[0].name
        written[carrier] = checked(quoted(carrier), rows, constraints)
    return chosen(rows, {**written, **dict.fromkeys(kept)})


def unchanged(df: DataFrame, layout: TableLayout) -> DataFrame:
    """Rows of the table as they were read, with what they have beside its columns, ready for
    Spark's Parquet writer. Nothing is checked: they were in the table before."""
    values = _folder_values(layout)
    return chosen(df, {name: values.get(name) for name in df.columns})


def _folder_values(layout: TableLayout) -> dict[str, Column]:
    """The partition columns in the form that their folders are named by."""
    types = layout.spark_schema
    return {
        name: folder_value(quoted(name), types[name].dataType, name=name)
        for name in layout.partition_columns
    }


def _columns(df: DataFrame) -> dict[str, StructField]:
    """The DataFrame's columns by their name in lower case. Columns of nothing but nulls and no
    type are as good as missing, but name a column all the same."""
    known: dict[str, StructField] = {}
    for field in df.schema.fields:
        if known.setdefault(field.name.lower(), field) is not field:
            raise SchemaMismatch(
                f"the DataFrame has the column {field.name} twice (names are matched in any case)",
                error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
            )
    return known


def _marked(value: Column | None, field: StructField) -> Column | None:
    """The value, for the conditions over it, too: Spark pads what it compares with CHAR columns."""
    if value is None or LENGTH_KEY not in field.metadata:
        return value
    return as_column(value, field)


@few_calls()
def _conformed(
    field: StructField, found: StructField | None, layout: TableLayout, storing: StoreAssignment
) -> Column | None:
    """None is for a column that is as the table has it already."""
    name = field.name
    is_partition = name in layout.partition_columns
    if found is None and default_of(field) is not None:
        value = within_length(default_value(field, layout, storing.spark), field)
        value = empty_as_null(value, field) if is_partition else value
        return value if field.nullable else required(value, name=name)
    if found is None:
        if is_partition:
            raise SchemaMismatch(
                f"Partition column {name} of table {layout.name} not found in the DataFrame",
                error_class="DELTA_MISSING_PARTITION_COLUMN",
            )
        if not field.nullable:
            raise SchemaMismatch(
                f"the DataFrame lacks the column {name} of table {layout.name}, which is NOT NULL",
                error_class="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
            )
        return F.lit(None).cast(field.dataType)
    is_same = found.name == name and same_type(found.dataType, field.dataType)
    is_free = field.nullable and not is_partition and LENGTH_KEY not in field.metadata
    if is_same and is_free and not has_required(field.dataType):
        return None
    value = assign(quoted(found.name), found.dataType, field.dataType, name=name, storing=storing)
    value = within_length(required_inside(value, field.dataType, name=name), field)
    if is_partition:
        value = empty_as_null(value, field)
    return value if field.nullable else required(value, name=name)
