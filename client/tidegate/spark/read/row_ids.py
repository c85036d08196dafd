"""Ids of rows and the versions that they were last written at, where a table tracks rows
(PROTOCOL.md, "Row Tracking").

A row's are those that its file has in columns of their own, or where those are null, what the log
says of the file: its first id, to which the row's position is added, and its commit version.
"""

import json
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from tidegate.spark.tables.assignment import quoted
from tidegate_protocol.log.actions import Add


def row_id_columns(
    fields: Sequence[StructField], files: Sequence[Add], number: Column, position: Column
) -> dict[str, Column | None]:
    """What a row has in each of the columns, by their names; `number` is the place of its file
    among these."""
    first_ids = _longs([file.base_row_id for file in files])
    versions = _longs([file.default_row_commit_version for file in files])
    place = number.cast("int")
    of_file = (F.get(first_ids, place) + position, F.get(versions, place))
    return {
        field.name: F.coalesce(quoted(field.name), value)
        for field, value in zip(fields, of_file, strict=True)
    }


def _longs(values: Sequence[int | None]) -> Column:
    """In one literal: of thousands, each would be an expression of its own."""
    return F.from_json(F.lit(json.dumps(values)), "array<bigint>")
