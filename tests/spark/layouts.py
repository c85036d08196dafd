"""Layouts of tables that no service knows, for tests of the files alone."""

from pathlib import Path

from pyspark.sql.types import StructType

from tidegate.spark.data_files.staging import TransactionFolder
from tidegate.spark.storage.arrow import ArrowStore
from tidegate.spark.tables.layout import TRANSACTION_KEY, TableLayout
from tidegate_protocol.log.actions import Metadata


def layout_of(
    ddl: str | StructType,
    *,
    folder: Path = Path("/nowhere"),
    partition_by: tuple[str, ...] = (),
    properties: dict[str, str] | None = None,
) -> TableLayout:
    """The layout of a table with the columns of a DDL text (`a int NOT NULL, b string`)."""
    schema = ddl if isinstance(ddl, StructType) else StructType.fromDDL(ddl)
    return TableLayout.of(
        name="main.test.t",
        location=f"file://{folder}",
        metadata=Metadata(
            id="0" * 8,
            schema_string=schema.json(),
            partition_columns=partition_by,
            configuration=properties or {},
        ),
    )


def folder_of(layout: TableLayout, name: str) -> TransactionFolder:
    """The folder of an attempt at a transaction in a table on the local disk."""
    return TransactionFolder(layout, f"{TRANSACTION_KEY}={name}", ArrowStore(layout.location))
