"""The store of a location, as a Spark session reaches it."""

from pyspark.sql import SparkSession

from tidegate.spark.storage.arrow import ArrowStore
from tidegate.spark.storage.hadoop import HadoopStore
from tidegate.spark.storage.locations import LOCAL, DataStore, scheme_of


def store_at(location: str, spark: SparkSession) -> DataStore:
    """The store that the location lies in. Raises `UnsupportedSession` and `StorageError` where
    the session does not reach it."""
    if scheme_of(location) == LOCAL:
        return ArrowStore(location)
    store = HadoopStore(spark, location)
    store.check()
    return store
