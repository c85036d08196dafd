"""Points in time as a session writes them, and what a table had then."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from pyspark.sql import SparkSession

from tidegate.errors import VersionNotFound
from tidegate.handle import TableHandle, milliseconds
from tidegate.models import Scan
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.storage.hadoop import JavaObject, java_class, jvm_of
from tidegate.spark.tables.zones import session_zone


def milliseconds_of(timestamp: datetime | int | str, spark: SparkSession) -> int:
    """Milliseconds since the epoch of an aware datetime, of such a number, or of a text that SQL
    casts to a timestamp, by the session's time zone where it has none, down to the one at or before
    it. Raises `InvalidCommand` for another text, `ValueError` for a datetime without a time zone,
    and `UnsupportedSession` for a text without one in Spark Connect."""
    if not isinstance(timestamp, str):
        return milliseconds(timestamp)
    with suppress(ValueError):
        # Of one that Python knows as well, no session is asked.
        return milliseconds(datetime.fromisoformat(timestamp))
    jvm = jvm_of(spark)
    text = java_class(jvm, "org.apache.spark.unsafe.types.UTF8String").fromString(timestamp)
    found = _times(spark).stringToTimestamp(text, _zone(spark))
    if found.isEmpty():
        raise InvalidCommand(
            "DELTA_TIMESTAMP_INVALID",
            f"The provided timestamp ({timestamp}) cannot be converted to a valid timestamp",
        )
    return int(found.get()) // 1000


def shown(instant: int, spark: SparkSession) -> str:
    """Milliseconds since the epoch as Delta's history shows a timestamp."""
    jvm = jvm_of(spark)
    # By Java's calendar: Python's has no years above 9999, nor before 1.
    local = java_class(jvm, "java.time.Instant").ofEpochMilli(instant).atZone(_zone(spark))
    form = java_class(jvm, "java.time.format.DateTimeFormatter").ofPattern("uuuu-MM-dd HH:mm:ss")
    seconds = local.format(form)
    fraction = f"{instant % 1000:03}".rstrip("0") or "0"
    return f"{seconds}.{fraction}"


def scan_at(
    table: TableHandle,
    instant: int,
    spark: SparkSession,
    *,
    latest: int,
    too_late: Callable[[str, str], InvalidCommand],
    too_early: Callable[[str, str], InvalidCommand],
) -> Scan:
    """What the table had at an instant; its `latest` version is of that one. Both are milliseconds
    since the epoch.

    Raises what `too_late` makes of the instant and the latest version's, and what `too_early` makes
    of the instant and the reason that no version is of it.
    """
    if instant > latest:
        raise too_late(shown(instant, spark), shown(latest, spark))
    try:
        # The service takes no moment before 1970, and no version is of one.
        return table.scan(timestamp=max(instant, 0))
    except VersionNotFound as error:
        raise too_early(shown(instant, spark), error.detail) from error


def _zone(spark: SparkSession) -> JavaObject:
    return _times(spark).getZoneId(session_zone(spark))


def _times(spark: SparkSession) -> JavaObject:
    return java_class(jvm_of(spark), "org.apache.spark.sql.catalyst.util.DateTimeUtils")
