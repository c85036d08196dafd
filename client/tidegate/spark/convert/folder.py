"""A folder of Parquet files, as a table would have it."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from tidegate.models import DataFile
from tidegate.spark.convert.columns import merged_columns, with_partition_columns
from tidegate.spark.convert.partitions import partition_names, partition_values, partitions_of
from tidegate.spark.data_files.foreign_footers import statistics_by_name
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.storage.locations import DataStore, StoredFile, hadoop_url
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.log.actions import Add, Metadata
from tidegate_protocol.log.paths import LOG_FOLDER, encode

_THREADS = 16
_LEAST = 12
"""In bytes, of a Parquet file without anything in it."""
_COLUMNS = b"org.apache.spark.sql.parquet.row.metadata"
"""The key in a file's metadata by which Spark says what its columns are."""
_ICEBERG = re.compile(r"metadata/[^/]+\.metadata\.json")
_STREAMED = "_spark_metadata/"
_AS_IT_IS = {"__globPaths__": "false", "recursiveFileLookup": "true"}
"""A path with a bracket in it is that path, and folders say nothing of columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFolder:
    """The files of a folder that hold rows, with the columns of all of them, of which those of
    `partition_by` are in the names of folders."""

    location: str
    schema: StructType
    partition_by: Sequence[str]
    files: Sequence[DataFile]


class DeltaFolder(Exception):
    """The folder has a Delta log."""


def parquet_folder(
    location: str,
    spark: SparkSession,
    partition_schema: StructType | None,
    *,
    with_statistics: bool,
    operation: str,
) -> ParquetFolder:
    """Read the folder's listing and the end of each file, for an operation. Without a
    `partition_schema` the columns in the names of folders are of the types that Spark finds for
    them.

    Raises `DeltaFolder`, `InvalidCommand` under Delta's classes, and what the storage raises.
    """
    store = store_at(location, spark)
    files = _listed(location, store)
    if partition_schema is None:
        partition_schema = _found_partitions(location, files[0].path, spark)
    folders = partitions_of(location, [file.path for file in files], partition_schema)
    with Passes(spark, operation=operation, table=location) as passes:
        passes.opens(len(files))
        with ThreadPoolExecutor(max_workers=_THREADS) as pool:
            footers = list(pool.map(lambda file: _footer(location, store, file), files))
        data = merged_columns(_columns(location, files, footers, spark))
    schema = with_partition_columns(data, partition_schema)
    layout = TableLayout.of(
        name=location,
        location=location,
        metadata=Metadata(
            id=location,
            schema_string=schema.json(),
            partition_columns=tuple(partition_schema.names),
        ),
    )
    values = partition_values(folders, layout, spark)
    adds = [
        Add(
            path=encode(file.path),
            partition_values=values[number],
            size=file.size,
            modification_time=file.modification_time,
            data_change=True,
            stats=statistics_by_name(footers[number], layout) if with_statistics else None,
        )
        for number, file in enumerate(files)
    ]
    return ParquetFolder(
        location=location, schema=schema, partition_by=layout.partition_columns, files=adds
    )


def _listed(location: str, store: DataStore) -> Sequence[StoredFile]:
    everything = store.files("")
    for file in everything:
        if file.path.startswith(f"{LOG_FOLDER}/"):
            raise DeltaFolder
        if _ICEBERG.fullmatch(file.path):
            raise unsupported("iceberg", location)
        if file.path.startswith(_STREAMED):
            raise InvalidCommand(
                "DELTA_OPERATION_NOT_ALLOWED",
                f"{location} was written by a streaming query, and {_STREAMED} says which of its "
                "files count; this client does not read that",
                hint="read it by Spark, and write the rows into a table",
            )
    files = [file for file in everything if file.size and not _is_hidden(file.path)]
    if not files:
        raise InvalidCommand(
            "DELTA_EMPTY_DIRECTORY", f"No file found in the directory: {location}."
        )
    return sorted(files, key=lambda file: file.path)


def _is_hidden(path: str) -> bool:
    """As Spark passes over files: by a folder of a partition column it does not."""
    *folders, name = path.split("/")
    return name.startswith(("_", ".")) or any(
        folder.startswith(("_", ".")) and "=" not in folder for folder in folders
    )


def unsupported(provider: str, place: str) -> InvalidCommand:
    """The error for what is no folder of Parquet files."""
    return InvalidCommand(
        "DELTA_CONVERT_NON_PARQUET_TABLE",
        f"CONVERT TO DELTA only supports parquet tables, but you are trying to convert a "
        f"{provider} source: {provider}.`{place}`",
    )


def _footer(location: str, store: DataStore, file: StoredFile) -> pq.FileMetaData:
    try:
        if file.size < _LEAST:
            raise pa.ArrowInvalid(f"it has {file.size} bytes")
        return store.footer(file)
    except pa.ArrowInvalid as error:
        raise InvalidCommand(
            "DELTA_FAILED_READ_FILE_FOOTER",
            f"Could not read footer for file: {location}/{file.path}: {error}",
        ) from error


def _columns(
    location: str,
    files: Sequence[StoredFile],
    footers: Sequence[pq.FileMetaData],
    spark: SparkSession,
) -> list[tuple[str, StructType]]:
    """The columns of files, each with the first file that has these, as Spark reads them."""
    firsts: dict[tuple[bytes, str], str] = {}
    for file, footer in zip(files, footers, strict=True):
        said = (footer.metadata or {}).get(_COLUMNS, b"")
        firsts.setdefault((said, str(footer.schema)), file.path)
    root = hadoop_url(location)
    reader = spark.read.options(**_AS_IT_IS)
    return [(path, reader.parquet(f"{root}/{path}").schema) for path in firsts.values()]


def _found_partitions(location: str, path: str, spark: SparkSession) -> StructType:
    names = [name for name, _ in partition_names(path)]
    if not names:
        return StructType([])
    found = spark.read.option("__globPaths__", "false").parquet(hadoop_url(location)).schema
    types = {field.name.lower(): field.dataType for field in found.fields}
    return StructType([StructField(name, types[name.lower()]) for name in names])
