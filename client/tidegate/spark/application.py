"""Which Spark application is at work, for the service's log and the history, and how often it tries
to commit."""

import re

from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidegate.handle import TableHandle
from tidegate.spark.session_settings import COMMIT_ATTEMPTS, Settings, at_least

_SETTING = "spark.app.id"
_LONGEST = 128
_OTHER = re.compile(r"[^A-Za-z0-9._-]")


def current_session() -> SparkSession | None:
    """The session of this thread, or else the first one of this process: Spark knows of none in
    threads that did not make it. None without either, and where it was stopped."""
    if (found := SparkSession.getActiveSession()) is not None:
        return found
    return None if SparkContext._active_spark_context is None else SparkSession._instantiatedSession


def application_id(spark: SparkSession) -> str:
    """The id of the session's application. Cluster managers may have ids with characters that a
    header cannot carry: those become `_`."""
    return _OTHER.sub("_", str(spark.conf.get(_SETTING)))[:_LONGEST]


def table_of(table: TableHandle, spark: SparkSession) -> TableHandle:
    """The table, as the session's application uses it: under its id, and with proposals that are
    sent as often at most as the session says by Delta's setting, where the lake was not told.
    Raises `UnsupportedSession` for another value than a number of attempts."""
    mine = table.for_application(application_id(spark))
    most = Settings(spark).get(COMMIT_ATTEMPTS, at_least(1), None)
    if most is not None and mine.connection.policy.commit_attempts is None:
        mine.connection = mine.connection.with_commit_attempts(most)
    return mine
