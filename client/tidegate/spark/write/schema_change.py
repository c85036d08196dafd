"""The table's columns as a write changes them: merged with the DataFrame's, or replaced by them.

As in Delta (`ImplicitMetadataOperation`), what is new is nullable, and comes with its comment.
"""

from uuid import uuid4

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tidegate.spark.errors import SchemaMismatch
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.schemas import is_untyped, nullable
from tidegate.spark.write.column_mapping import with_marks
from tidegate.spark.write.options import WriteOptions
from tidegate.transaction_content import TransactionContent

_COMMENT = "comment"


def change_schema(transaction: TransactionContent, df: StructType, options: WriteOptions) -> None:
    """Have the transaction change the table's schema where the options ask for it and the
    DataFrame's, `df`, is another one.

    Raises `SchemaMismatch` for a new column without a type, and where the DataFrame that is to take
    the place of all columns lacks one that the table is partitioned by.
    """
    if not options.changes_schema:
        return
    head = transaction.head
    layout = TableLayout.of(name=head.name, location=head.location, metadata=transaction.metadata)
    known = layout.spark_schema
    found = replaced_schema(df, layout) if options.overwrite_schema else merged(known, df)
    if found != known:
        marked, properties = with_marks(found, layout, new_name=lambda: f"col-{uuid4()}")
        transaction.update_metadata(schema=marked, set_properties=properties)


def merged(table: StructType, df: StructType) -> StructType:
    """The table's columns, then those that only the DataFrame has, at any depth. Columns are
    matched by name in any case; one that both have keeps the table's name, type and nullability."""
    given = {field.name.lower(): field for field in df.fields}
    names = {field.name.lower() for field in table.fields}
    return StructType(
        [
            *(
                field
                if (other := given.get(field.name.lower())) is None
                else StructField(
                    field.name,
                    _merged_type(field.dataType, other.dataType),
                    field.nullable,
                    field.metadata,
                )
                for field in table.fields
            ),
            *(_new(field) for name, field in given.items() if name not in names),
        ]
    )


def replaced_schema(df: StructType, layout: TableLayout) -> StructType:
    """The DataFrame's columns. Those that the table is partitioned by keep its spelling."""
    fields = [_new(field) for field in df.fields]
    for column in layout.partition_columns:
        found = [i for i, field in enumerate(fields) if field.name.lower() == column.lower()]
        if not found:
            raise SchemaMismatch(
                f"the DataFrame lacks the column {column}, which table {layout.name} is "
                "partitioned by"
            )
        field = fields[found[0]]
        fields[found[0]] = StructField(column, field.dataType, True, field.metadata)
    return StructType(fields)


def _merged_type(table: DataType, df: DataType) -> DataType:
    match table, df:
        case StructType(), StructType():
            return merged(table, df)
        case ArrayType(), ArrayType():
            return ArrayType(_merged_type(table.elementType, df.elementType), table.containsNull)
        case MapType(), MapType():
            return MapType(
                _merged_type(table.keyType, df.keyType),
                _merged_type(table.valueType, df.valueType),
                table.valueContainsNull,
            )
    return table


def _new(field: StructField) -> StructField:
    if is_untyped(field.dataType):
        raise SchemaMismatch(
            f"the DataFrame's column {field.name}, which is new to the table, is, or holds, a "
            "NullType (VOID)",
            hint="cast it to a type, or leave it out",
        )
    comment = field.metadata.get(_COMMENT)
    metadata = {} if comment is None else {_COMMENT: comment}
    return StructField(field.name, nullable(field.dataType), True, metadata)
