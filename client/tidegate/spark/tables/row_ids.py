"""Ids of rows and the versions that they were last written at, in columns of files: where a table
tracks its rows, those that are written again keep theirs there (PROTOCOL.md, "Row Tracking")."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField

from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.tables.assignment import quoted
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.features.properties import (
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    TableProperties,
)
from tidegate_protocol.features.row_tracking import ROW_TRACKING_PRESERVED_TAG
from tidegate_protocol.log.actions import Metadata


def row_id_fields(layout: TableLayout) -> list[StructField]:
    """The columns of files with row ids and commit versions; none where the table does not track
    its rows. Raises `UnsupportedTable` where it does, and does not say what they are called."""
    if not layout.properties.row_tracking:
        return []
    configuration = layout.properties.configuration
    names = [configuration.get(key) for key in (ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN)]
    fields = [StructField(name, LongType()) for name in names if name]
    if len(fields) != len(names):
        raise UnsupportedTable(
            f"table {layout.name} has row tracking on, but not both of {ROW_ID_COLUMN} and "
            f"{ROW_COMMIT_VERSION_COLUMN}, under which rows that are copied keep their ids"
        )
    return fields


def ids_among(rows: DataFrame, layout: TableLayout) -> list[str]:
    """The names of these columns, where the rows have them."""
    return [field.name for field in row_id_fields(layout) if field.name in rows.columns]


def kept_ids(rows: DataFrame, layout: TableLayout, changed: Column) -> dict[str, Column | None]:
    """These columns of rows that are written again, where they have them (`chosen`): a row that
    changed keeps its id, and its commit version is that of the commit."""
    return {
        name: F.when(~changed, quoted(name)) if number else None
        for number, name in enumerate(ids_among(rows, layout))
    }


def kept_tag(metadata: Metadata) -> dict[str, str] | None:
    """Delta's tag of a commit whose rows have the ids that they had, where a table with this
    metadata tracks its rows."""
    tracks = TableProperties.parse(metadata.configuration).row_tracking
    return {ROW_TRACKING_PRESERVED_TAG: "true"} if tracks else None
