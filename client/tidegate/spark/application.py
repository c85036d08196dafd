"""Which Spark application is at work, for the service's log and the history."""

import re

from pyspark.sql import SparkSession

from tidegate.handle import TableHandle

_SETTING = "spark.app.id"
_LONGEST = 128
_OTHER = re.compile(r"[^A-Za-z0-9._-]")


def application_id(spark: SparkSession) -> str:
    """The id of the session's application. Cluster managers may have ids with characters that a
    header cannot carry: those become `_`."""
    return _OTHER.sub("_", str(spark.conf.get(_SETTING)))[:_LONGEST]


def table_of(table: TableHandle, spark: SparkSession) -> TableHandle:
    """The table, as the session's application uses it."""
    return table.for_application(application_id(spark))
