"""Tables made of a DataFrame: created with its rows (CREATE TABLE AS SELECT), or replaced by them.

A table that is created has its files in version 0, so that nobody ever sees it without its rows.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from tidegate.active import check_none_active
from tidegate.errors import TidegateError
from tidegate.handle import TableHandle
from tidegate.models import Receipt
from tidegate.schema_json import schema_text
from tidegate.spark.application import table_of
from tidegate.spark.errors import StorageError, UnsupportedTable
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout, new_folder
from tidegate.spark.tables.plans import reads_table
from tidegate.spark.tables.refusals import LENGTH_KEY, check_writable
from tidegate.spark.write.conform import conform
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write.rows import write_rows
from tidegate.spark.write.schema_change import new_column
from tidegate.spark.write.session import default_properties
from tidegate.spark.write.staging import TransactionFolder, private_folder
from tidegate.spark.write.write import check_removable
from tidegate.transaction import Transaction
from tidegate_protocol.features.known import CURRENT_DEFAULT
from tidegate_protocol.features.table_features import protocol_for
from tidegate_protocol.log.actions import Add, Metadata

T = TypeVar("T")
_DEFAULTS = "delta.feature.allowColumnDefaults"
_MAPPING = "delta.columnMapping.mode"


def create_as_select(
    create: Callable[[StructType, Mapping[str, str], Sequence[Add]], T],
    df: DataFrame,
    *,
    name: str,
    location: str,
    partition_by: Sequence[str],
    properties: Mapping[str, str],
) -> T:
    """Write the DataFrame's rows below the location, and have `create` make a table of its columns,
    of the properties with the session's defaults for new tables, and of the files.

    Raises as `Table.append` does before a table is asked for, and then what `create` raises. After
    a definite error no file stays behind.
    """
    spark = df.sparkSession
    wanted = default_properties(spark) | dict(properties)
    schema = columns_of(df.schema, wanted)
    layout = TableLayout.of(
        name=name,
        location=location,
        metadata=Metadata(
            id=name,
            schema_string=schema_text(schema),
            partition_columns=tuple(partition_by),
            configuration=wanted,
        ),
    )
    if wanted.get(_MAPPING, "none").lower() != "none":
        raise UnsupportedTable(
            f"table {name} would have mapped columns, whose names are given by its creation",
            hint="create it empty, and append",
        )
    protocol = protocol_for(layout.properties, layout.schema, catalog_managed=False)
    check_writable(layout, protocol)
    conformed = conform(df, layout)
    folder = TransactionFolder(layout, new_folder(str(uuid4())), store_at(location, spark))
    try:
        return create(schema, wanted, folder.write(conformed).adds)
    except TidegateError as error:
        if error.definite:
            _delete(folder, error)
        raise
    except BaseException as error:
        _delete(folder, error)
        raise


def replace(
    table: TableHandle,
    df: DataFrame,
    *,
    partition_by: Sequence[str],
    properties: Mapping[str, str],
    comment: str | None,
) -> Receipt:
    """Replace the table's rows, columns, partitioning, properties and comment in one commit
    (`REPLACE TABLE AS SELECT`); its id, name, location and history stay.

    Raises what `Table.overwrite` does.
    """
    check_none_active(table.id)
    spark = df.sparkSession
    transaction = Transaction(table_of(table, spark))
    wanted = default_properties(spark) | dict(properties)
    transaction.update_metadata(
        schema=columns_of(df.schema, wanted),
        set_properties=wanted,
        unset_properties=transaction.metadata.configuration.keys(),
        comment=comment,
        partition_by=partition_by,
    )
    layout = writable_layout(transaction)
    check_removable(layout)
    if reads_table(df, layout):
        transaction.read_whole_table()
    with private_folder(transaction, layout, spark) as folder:
        removed = transaction.filter_files()
        files = write_rows(transaction, folder, df)
        transaction.remove(removed)
        transaction.add(files.adds)
        return transaction.commit(
            "REPLACE TABLE AS SELECT",
            parameters={
                "isManaged": "false",
                "description": comment,
                "partitionBy": json.dumps(list(partition_by)),
                "properties": json.dumps(wanted),
            },
            metrics={
                "numFiles": str(len(files.adds)),
                "numOutputRows": str(files.rows),
                "numOutputBytes": str(files.size),
                "numRemovedFiles": str(len(removed)),
                "numRemovedBytes": str(sum(file.size for file in removed)),
            },
        )


def columns_of(schema: StructType, properties: Mapping[str, str]) -> StructType:
    """The columns of a table that is made of a DataFrame: nullable, with their comments, lengths
    and defaults. Raises `UnsupportedTable` for defaults where the table is not to have them."""
    fields = []
    for field in schema.fields:
        found = new_column(field)
        metadata = dict(found.metadata)
        if LENGTH_KEY in field.metadata:
            metadata[LENGTH_KEY] = field.metadata[LENGTH_KEY]
        if CURRENT_DEFAULT in field.metadata:
            if properties.get(_DEFAULTS) != "supported":
                raise UnsupportedTable(
                    f"column {field.name} of the DataFrame has the default "
                    f"{field.metadata[CURRENT_DEFAULT]}, and the table is not to have defaults",
                    hint=f"set the property {_DEFAULTS} to supported",
                    error_class="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
                )
            metadata[CURRENT_DEFAULT] = field.metadata[CURRENT_DEFAULT]
        fields.append(StructField(found.name, found.dataType, True, metadata))
    return StructType(fields)


def _delete(folder: TransactionFolder, error: BaseException) -> None:
    try:
        folder.delete()
    except (OSError, StorageError) as what:
        error.add_note(f"The files of the table to be could not be deleted: {what}")
