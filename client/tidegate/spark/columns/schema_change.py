"""The table's columns as a write changes them: merged with the DataFrame's, or replaced by them.

As in Delta (`ImplicitMetadataOperation`), what is new is nullable, and comes with its comment. What
else its fields tell, at any depth, is of the table that they were read from.
"""

from collections.abc import Callable, Sequence
from itertools import count
from uuid import NAMESPACE_OID, uuid5

from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from tidegate.spark.columns.mapping import with_marks
from tidegate.spark.columns.widening import is_wider, with_changes
from tidegate.spark.errors import SchemaMismatch
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.schemas import is_untyped, nullable, with_only
from tidegate.spark.write_options import WriteOptions
from tidegate.transaction_content import TransactionContent
from tidegate_protocol.features.known import CLUSTERING
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.scan.clustering import domain_of

_COMMENT = "comment"


def change_schema(
    transaction: TransactionContent,
    df: StructType,
    options: WriteOptions,
    *,
    partition_by: Sequence[str] | None = None,
) -> None:
    """Have the transaction change the table's schema where the options ask for it and the
    DataFrame's, `df`, is another one. `partition_by` says how the table is, or with
    `overwriteSchema` is to be, partitioned; without it, it stays as it is. A table whose schema is
    overwritten is clustered by nothing any more.

    Raises `SchemaMismatch` for a new column without a type, where the DataFrame that is to take
    the place of all columns lacks one that the table is partitioned by, and for another
    partitioning than the table has.
    """
    head = transaction.head
    layout = TableLayout.of(name=head.name, location=head.location, metadata=transaction.metadata)
    if not options.overwrite_schema:
        check_partitioning(layout, partition_by)
    if not options.changes_schema:
        return
    known = layout.spark_schema
    columns = layout.partition_columns if partition_by is None else tuple(partition_by)
    if options.overwrite_schema:
        found = replaced_schema(df, columns, name=layout.name)
    else:
        found = merged(known, df, widens=layout.properties.type_widening)
    is_partitioned_otherwise = options.overwrite_schema and columns != layout.partition_columns
    if found != known or is_partitioned_otherwise:
        marked, properties = with_marks(found, layout, new_name=_names_of(transaction.id))
        transaction.update_metadata(
            schema=marked,
            set_properties=properties,
            partition_by=columns if is_partitioned_otherwise else None,
        )
        if options.overwrite_schema and supports(head.protocol, CLUSTERING):
            # The table is another one, whose columns nobody has asked to be clustered.
            transaction.action(domain_of(()))


def _names_of(transaction_id: str) -> Callable[[], str]:
    """Names that files have for new columns. They are the transaction's, because the data source
    plans, writes and commits in different processes, and its files have to have those of the
    commit's schema."""
    numbers = count()
    return lambda: f"col-{uuid5(NAMESPACE_OID, f'{transaction_id}/{next(numbers)}')}"


def check_partitioning(layout: TableLayout, partition_by: Sequence[str] | None) -> None:
    """Raise `SchemaMismatch` where the table is partitioned otherwise. Names are matched in any
    case; None says nothing."""
    if partition_by is None:
        return
    given = [name.lower() for name in partition_by]
    if given != [name.lower() for name in layout.partition_columns]:
        raise SchemaMismatch(
            f"Partition columns do not match the partition columns of table {layout.name}: given "
            f"{list(partition_by)}, the table has {list(layout.partition_columns)}",
            hint="leave partition_by out, or replace all columns and rows by overwriteSchema",
            error_class="DELTA_METADATA_MISMATCH",
        )


def merged(table: StructType, df: StructType, *, widens: bool = False) -> StructType:
    """The table's columns, then those that only the DataFrame has, at any depth. Columns are
    matched by name in any case; one that both have keeps the table's name and nullability, and its
    type, unless that is void, or the table `widens` and the DataFrame's is wider."""
    given = {field.name.lower(): field for field in df.fields}
    names = {field.name.lower() for field in table.fields}
    return StructType(
        [
            *(
                field
                if (other := given.get(field.name.lower())) is None
                else with_changes(
                    field, _merged_type(field.dataType, other.dataType, widens=widens)
                )
                for field in table.fields
            ),
            *(new_column(field) for name, field in given.items() if name not in names),
        ]
    )


def replaced_schema(df: StructType, partition_columns: Sequence[str], *, name: str) -> StructType:
    """The DataFrame's columns. Those that the table `name` is to be partitioned by are spelt as
    they are there."""
    fields = [new_column(field) for field in df.fields]
    for column in partition_columns:
        found = [i for i, field in enumerate(fields) if field.name.lower() == column.lower()]
        if not found:
            raise SchemaMismatch(
                f"the DataFrame lacks the column {column}, which table {name} is partitioned by",
                error_class="DELTA_PARTITION_COLUMN_NOT_FOUND",
            )
        field = fields[found[0]]
        fields[found[0]] = StructField(column, field.dataType, True, field.metadata)
    return StructType(fields)


def _merged_type(table: DataType, df: DataType, *, widens: bool) -> DataType:
    match table, df:
        case StructType(), StructType():
            return merged(table, df, widens=widens)
        case ArrayType(), ArrayType():
            inside = _merged_type(table.elementType, df.elementType, widens=widens)
            return ArrayType(inside, table.containsNull)
        case MapType(), MapType():
            return MapType(
                _merged_type(table.keyType, df.keyType, widens=widens),
                _merged_type(table.valueType, df.valueType, widens=widens),
                table.valueContainsNull,
            )
    if isinstance(table, NullType) and not is_untyped(df):
        return with_only(nullable(df), (_COMMENT,))
    return df if widens and is_wider(table, df) else table


def new_column(field: StructField) -> StructField:
    """A DataFrame's column as one that is new to a table: nullable, with its comments. Raises
    `SchemaMismatch` for one without a type."""
    if is_untyped(field.dataType):
        raise SchemaMismatch(
            f"the DataFrame's column {field.name}, which is new to the table, is, or holds, a "
            "NullType (VOID)",
            hint="cast it to a type, or leave it out",
        )
    comment = field.metadata.get(_COMMENT)
    metadata = {} if comment is None else {_COMMENT: comment}
    inside = with_only(nullable(field.dataType), (_COMMENT,))
    return StructField(field.name, inside, True, metadata)
