"""CONVERT TO DELTA: version 0 of a table, over the files of a folder."""

import re
import warnings
from collections.abc import Sequence
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tidegate.handle import TableHandle
from tidegate.new_table import check_feed_columns
from tidegate.spark.alter.alteration import as_json
from tidegate.spark.commands.creation import create_by, head_named
from tidegate.spark.commands.making import check_name, exists
from tidegate.spark.convert.folder import DeltaFolder, parquet_folder, unsupported
from tidegate.spark.expressions.definitions import check_adds_no_constraint
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.session_settings import metadata_of, new_properties
from tidegate.spark.storage.locations import place_url
from tidegate.wire.connection import Connection
from tidegate_protocol.features.properties import TableProperties

T = TypeVar("T", bound=TableHandle)

_OPERATION = "CONVERT"
_PARQUET = "parquet"
_BY_PATH = re.compile(r"(?:(?P<provider>[^.`]+)\.)?`(?P<path>.+)`", re.DOTALL)


def convert(
    connection: Connection,
    spark: SparkSession,
    location: str,
    *,
    name: str,
    partition_schema: StructType | None,
    with_statistics: bool,
    handle: type[T],
    user_metadata: str | None = None,
) -> T:
    """Make the folder of Parquet files at `location` the table `catalog.schema.table`: the files
    stay where they are, and the log says what they hold. `partition_schema` is of the columns in
    the names of folders, which have to be all there are. The session's defaults for properties of
    new tables hold. A folder that is this table already is left as it is. The table is handed out
    as a `handle`.

    Raises `InvalidCommand` under Delta's classes, what the storage raises, and what
    `Lake.create_table` raises, above all for a location that the service does not allow.
    """
    check_name(name, of="the name of the table", error_class="PARSE_SYNTAX_ERROR")
    found = head_named(connection, name)
    if found is not None and place_url(found.location) != location:
        raise exists(name, handle(connection, found))
    if found is not None:
        return handle(connection, found)
    properties = new_properties(spark, {})
    check_adds_no_constraint(properties)
    mode = TableProperties.parse(properties).column_mapping_mode
    if mode != "none":
        raise InvalidCommand(
            "DELTA_CONVERSION_UNSUPPORTED_COLUMN_MAPPING",
            f"The configuration 'delta.columnMapping.mode' cannot be set to `{mode}` when using "
            "CONVERT TO DELTA",
        )
    try:
        folder = parquet_folder(
            location,
            spark,
            partition_schema or StructType([]),
            with_statistics=with_statistics,
            operation=_OPERATION,
        )
    except DeltaFolder:
        raise InvalidCommand(
            "DELTA_TABLE_ALREADY_EXISTS",
            f"{location} is a Delta table already",
            hint=f"register it: lake.register_table({name!r}, {location!r})",
        ) from None
    check_feed_columns(folder.schema.json(), properties)
    head, told = create_by(
        connection,
        _OPERATION,
        {
            "name": name,
            "schema": folder.schema.json(),
            "partition_columns": list(folder.partition_by),
            "properties": properties,
            "location": location,
        },
        folder.files,
        parameters={
            "numFiles": len(folder.files),
            "partitionedBy": as_json(list(folder.partition_by)),
            "collectStats": with_statistics,
            "sourceFormat": _PARQUET,
        },
        metrics={"numConvertedFiles": str(len(folder.files))},
        user_metadata=metadata_of(user_metadata, spark),
    )
    for warning in told:
        warnings.warn(warning, stacklevel=2)
    return handle(connection, head)


def place_of(identifier: Sequence[str]) -> str:
    """The location of what CONVERT TO DELTA is given: `parquet` and a path. Raises `InvalidCommand`
    for anything else."""
    *provider, path = identifier
    if len(provider) != 1:
        raise InvalidCommand(
            "DELTA_MISSING_PROVIDER_FOR_CONVERT",
            "CONVERT TO DELTA only supports parquet tables. Please rewrite your target as "
            f"parquet.`{path}` if it's a parquet directory",
        )
    if provider[0].lower() != _PARQUET:
        raise unsupported(provider[0].lower(), path)
    return place_url(path)


def parts_of(identifier: str) -> tuple[str, ...]:
    """The parts of ``parquet.`path` ``, or of a name."""
    found = _BY_PATH.fullmatch(identifier)
    if found is None:
        return (identifier,) if "/" in identifier else tuple(identifier.split("."))
    provider = found["provider"]
    return (found["path"],) if provider is None else (provider, found["path"])
