"""A folder of Parquet files as what is cloned."""

import json

from pyspark.sql import SparkSession

from tidegate.spark.clone.source import NO_VERSION, CloneSource
from tidegate.spark.convert.folder import DeltaFolder, parquet_folder
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import decode


def parquet_source(location: str, spark: SparkSession) -> CloneSource:
    """The folder at a location. Columns in the names of its folders are of the types that Spark
    finds for them. Raises as `parquet_folder`."""
    name = f"parquet.`{location}`"
    try:
        folder = parquet_folder(location, spark, None, with_statistics=True, operation="CLONE")
    except DeltaFolder:
        raise InvalidCommand(
            "DELTA_TABLE_ALREADY_EXISTS",
            f"{location} is a Delta table, and no folder of Parquet files",
            hint=f"register it, and clone delta.`{location}`",
        ) from None
    metadata = {
        "id": location,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": folder.schema.json(),
        "partitionColumns": list(folder.partition_by),
        "configuration": {},
    }
    found = decode(json.dumps({"metaData": metadata}).encode())
    assert isinstance(found, Metadata)
    return CloneSource(
        name=name,
        location=location,
        version=NO_VERSION,
        is_latest=True,
        metadata=found,
        files=folder.files,
    )
