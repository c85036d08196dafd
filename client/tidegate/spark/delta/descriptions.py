"""History and details of a table, and what came of commands, as DataFrames with Delta's columns."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidegate.spark.clone.clone import Cloned
from tidegate.spark.commands.restore import Restored
from tidegate.spark.tables.clustering import clustering_of
from tidegate.table import Table
from tidegate_protocol.features.table_features import implied_features
from tidegate_protocol.scan.clustering import columns_at, shown

_HISTORY = (
    "version BIGINT, timestamp TIMESTAMP, userId STRING, userName STRING, operation STRING, "
    "operationParameters MAP<STRING, STRING>, "
    "job STRUCT<jobId: STRING, jobName: STRING, jobRunId: STRING, runId: STRING, "
    "jobOwnerId: STRING, triggerType: STRING>, notebook STRUCT<notebookId: STRING>, "
    "clusterId STRING, readVersion BIGINT, isolationLevel STRING, isBlindAppend BOOLEAN, "
    "operationMetrics MAP<STRING, STRING>, userMetadata STRING, engineInfo STRING"
)
_DETAIL = (
    "format STRING, id STRING, name STRING, description STRING, location STRING, "
    "createdAt TIMESTAMP, lastModified TIMESTAMP, partitionColumns ARRAY<STRING>, "
    "clusteringColumns ARRAY<STRING>, numFiles BIGINT, sizeInBytes BIGINT, "
    "properties MAP<STRING, STRING>, minReaderVersion INT, minWriterVersion INT, "
    "tableFeatures ARRAY<STRING>"
)

_RESTORED = {
    "table_size_after_restore": "tableSizeAfterRestore",
    "num_of_files_after_restore": "numOfFilesAfterRestore",
    "num_removed_files": "numRemovedFiles",
    "num_restored_files": "numRestoredFiles",
    "removed_files_size": "removedFilesSize",
    "restored_files_size": "restoredFilesSize",
}
"""The columns that Delta shows of a RESTORE, and the metrics that they have."""
_CLONED = {
    "source_table_size": "sourceTableSize",
    "source_num_of_files": "sourceNumOfFiles",
    "num_removed_files": "numRemovedFiles",
    "num_copied_files": "numCopiedFiles",
    "removed_files_size": "removedFilesSize",
    "copied_files_size": "copiedFilesSize",
}
"""The same of a CLONE."""


def history(table: Table, spark: SparkSession, limit: int | None) -> DataFrame:
    """A row a commit, the latest first; at most `limit` of them where it is given."""
    rows = [
        {
            "version": commit.version,
            "timestamp": _time(commit.timestamp),
            "operation": commit.operation,
            "operationParameters": _texts(commit.operation_parameters),
            "readVersion": commit.read_version,
            "isolationLevel": None
            if commit.isolation_level is None
            else commit.isolation_level.value,
            "isBlindAppend": commit.is_blind_append,
            "operationMetrics": _texts(commit.operation_metrics),
            "userMetadata": commit.user_metadata,
            "engineInfo": commit.engine_info,
        }
        for commit in table.history(limit=limit)
    ]
    return _frame(spark, _HISTORY, rows)


def detail(table: Table, spark: SparkSession) -> DataFrame:
    """One row: name, place, size and protocol of the latest version."""
    head = table.head()
    created = head.metadata.created_time
    protocol = head.protocol
    clustering = columns_at(head.schema, clustering_of(table, protocol))
    row = {
        "format": "delta",
        "id": head.metadata.id,
        "name": head.name,
        "description": head.metadata.description,
        "location": head.location,
        "createdAt": None if created is None else _time(created),
        "lastModified": _time(head.timestamp),
        "partitionColumns": list(head.partition_columns),
        "clusteringColumns": [shown(column) for column in clustering],
        "numFiles": head.num_files,
        "sizeInBytes": head.size_bytes,
        "properties": dict(head.metadata.configuration),
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "tableFeatures": sorted(implied_features(protocol)),
    }
    return _frame(spark, _DETAIL, [row])


def restored(found: Restored, spark: SparkSession) -> DataFrame:
    """One row: the metrics of a RESTORE."""
    return _metrics(spark, found.metrics, _RESTORED)


def cloned(found: Cloned[Table], spark: SparkSession) -> DataFrame:
    """One row: the metrics of a CLONE; none where the table was there."""
    return _metrics(spark, found.metrics, _CLONED)


def _metrics(
    spark: SparkSession, metrics: Mapping[str, int], columns: Mapping[str, str]
) -> DataFrame:
    rows = [{column: metrics[name] for column, name in columns.items()}] if metrics else []
    return _frame(spark, ", ".join(f"{column} BIGINT" for column in columns), rows)


def _frame(spark: SparkSession, ddl: str, rows: list[dict[str, Any]]) -> DataFrame:
    schema = spark.createDataFrame([], ddl).schema
    values = [tuple(row.get(name) for name in schema.names) for row in rows]
    return spark.createDataFrame(values, schema)


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """As Delta's history shows them: texts as they are, others as JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
    }
