"""Tidegate tables in PySpark; needs the `spark` extra.

flights.append(df)                                   # Spark's own Parquet writer, one commit
flights.read(spark, where="month = 5")               # Spark's own Parquet reader

flights.delete("month = 5")                          # likewise update and merge

tidegate.spark.register(spark)                       # the Python data source
df.write.format("tidegate").mode("append").save("main.air.flights")
"""

from tidegate.spark.errors import (
    ChangesUnavailable,
    CheckpointBehind,
    InvalidRows,
    SchemaMismatch,
    StorageError,
    StreamStopped,
    UnsupportedSession,
    UnsupportedTable,
)
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.query_errors import quiet_inside
from tidegate.spark.source.source import register

quiet_inside()

__all__ = [
    "ChangesUnavailable",
    "CheckpointBehind",
    "InvalidCommand",
    "InvalidRows",
    "SchemaMismatch",
    "StorageError",
    "StreamStopped",
    "UnsupportedSession",
    "UnsupportedTable",
    "register",
]
