"""Rows of SQL expressions, `DEFAULT` among them, as a DataFrame of a table's columns."""

from collections.abc import Sequence
from time import monotonic

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.errors import InvalidRequest
from tidegate.handle import TableHandle
from tidegate.models import Receipt
from tidegate.spark.columns.constraints import generated_columns
from tidegate.spark.errors import SchemaMismatch
from tidegate.spark.expressions.arguments import expression
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.values.defaults import default_of
from tidegate.spark.values.identity import identity_columns
from tidegate.spark.write.beginning import check_repeatable
from tidegate.spark.write.repeats import repeated
from tidegate.spark.write.write import append
from tidegate_protocol.base.problems import Code

_DEFAULT = "default"


def insert(
    table: TableHandle,
    spark: SparkSession,
    values: Sequence[Sequence[str]],
    *,
    columns: Sequence[str] | None,
    user_metadata: str | None,
    retries: int = 0,
) -> Receipt | None:
    """Append the rows in one commit; after a conflict by the columns and defaults that the table
    has then, `retries` times at most. Raises what `inserted` and `append` do."""

    def once() -> Receipt | None:
        head = table.head()
        layout = TableLayout.of(name=head.name, location=head.location, metadata=head.metadata)
        rows = inserted(values, columns, layout, spark)
        if retries:
            check_repeatable(table, rows)
        return append(table, rows, user_metadata=user_metadata)

    return repeated(once, retries=retries, clock_s=monotonic)


def inserted(
    values: Sequence[Sequence[str]],
    columns: Sequence[str] | None,
    layout: TableLayout,
    spark: SparkSession,
) -> DataFrame:
    """The rows of `INSERT INTO ... VALUES`: expressions for the named columns, or for all of the
    table's in their order. `DEFAULT` is the column's default, which without one is null; a column
    that the table computes is one that is missing where every row says `DEFAULT`.

    The fields of structs go by position, too. Raises `SchemaMismatch` for rows of another length
    and for columns that are not the table's, and `InvalidRequest` for expressions that this session
    cannot compute.
    """
    fields = layout.spark_schema.fields if columns is None else named_fields(columns, layout)
    for row in values:
        if len(row) != len(fields):
            raise SchemaMismatch(
                f"a row has {len(row)} values, and is for the {len(fields)} columns "
                f"{[field.name for field in fields]} of table {layout.name}",
                error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            )
    computed = computed_columns(layout)
    given = [
        (place, field)
        for place, field in enumerate(fields)
        if field.name not in computed or not all(is_default(row[place]) for row in values)
    ]
    found: DataFrame | None = None
    try:
        for row in values:
            # Neither columns nor aliases that an expression could name.
            one = (
                spark.range(1)
                .select()
                .select([expression(_sql(row[place], field)) for place, field in given])
            )
            found = one if found is None else found.union(one)
    except (AnalysisException, ParseException) as error:
        raise InvalidRequest(
            f"the values {values} cannot be computed: {error.getMessage()}",
            code=Code.INVALID_REQUEST,
            definite=True,
        ) from error
    if found is None:
        raise InvalidRequest(
            "expected at least one row of values", code=Code.INVALID_REQUEST, definite=True
        )
    return by_position(found, [field for _, field in given], layout)


def by_position(
    rows: DataFrame, fields: Sequence[StructField], layout: TableLayout, *, more: bool = False
) -> DataFrame:
    """The rows with these columns of the table in the place of theirs, and the fields of structs
    likewise. With `more` there may be further ones at the end. Raises `SchemaMismatch`."""
    found = rows.schema
    wanted = _named_as(found, StructType(list(fields)), layout, more=more)
    rows = rows.toDF(*wanted.names)
    renamed = {
        field.name: quoted(field.name).cast(field.dataType)
        for field, old in zip(wanted.fields, found.fields, strict=True)
        if field.dataType != old.dataType
    }
    return rows.withColumns(renamed) if renamed else rows


def computed_columns(layout: TableLayout) -> set[str]:
    """The columns that the table computes where a row does not give them."""
    return {*identity_columns(layout), *generated_columns(layout)}


def named_fields(columns: Sequence[str], layout: TableLayout) -> list[StructField]:
    """The table's columns with these names, in any case. Raises `SchemaMismatch`."""
    known = {field.name.lower(): field for field in layout.spark_schema.fields}
    if unknown := [name for name in columns if name.lower() not in known]:
        raise SchemaMismatch(
            f"table {layout.name} has no columns {unknown}; it has {layout.spark_schema.names}"
        )
    return [known[name.lower()] for name in columns]


def is_default(text: str) -> bool:
    """Whether a value is the word DEFAULT."""
    return text.strip().lower() == _DEFAULT


def _sql(text: str, field: StructField) -> str:
    return (default_of(field) or "NULL") if is_default(text) else text


def _named_as(
    found: StructType, wanted: StructType, layout: TableLayout, *, more: bool
) -> StructType:
    """The columns, or fields, under the names that the table has for these places."""
    if len(found) < len(wanted) or (len(found) > len(wanted) and not more):
        raise _arity(layout, len(found), wanted.names)
    fields = [
        StructField(
            target.name,
            _type_as(field.dataType, target.dataType, layout, more=more),
            field.nullable,
        )
        for field, target in zip(found.fields, wanted.fields, strict=False)
    ]
    return StructType([*fields, *found.fields[len(wanted) :]])


def _arity(layout: TableLayout, found: int, wanted: Sequence[str]) -> SchemaMismatch:
    return SchemaMismatch(
        f"Cannot write to table {layout.name}: expected {len(wanted)} columns, {list(wanted)}, "
        f"found {found}",
        hint="list the columns, or insert BY NAME",
        error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
    )


def _type_as(found: DataType, wanted: DataType, layout: TableLayout, *, more: bool) -> DataType:
    """The type with the names that another has for the fields of its structs."""
    match found, wanted:
        case StructType(), StructType():
            return _named_as(found, wanted, layout, more=more)
        case ArrayType(), ArrayType():
            element = _type_as(found.elementType, wanted.elementType, layout, more=more)
            return ArrayType(element, found.containsNull)
        case MapType(), MapType():
            key = _type_as(found.keyType, wanted.keyType, layout, more=more)
            value = _type_as(found.valueType, wanted.valueType, layout, more=more)
            return MapType(key, value, found.valueContainsNull)
    return found
