"""The time zone of a session, which its timestamps without one are of.

A partition value of type TIMESTAMP may say no zone; then Delta reads it by the session's. Where
Spark casts it that is so by itself. Where Python reads it, zones are those that Java names: a
region, or what a time is from UTC.
"""

import re
from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from pyspark import TaskContext
from pyspark.sql import SparkSession

from tidegate.spark.errors import UnsupportedSession

SESSION_ZONE = "spark.sql.session.timeZone"

_OFFSET = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{2}))?)?"
    r"|([0-9]{2})([0-9]{2})([0-9]{2})?)"
)
_OF_UTC = ("Z", "UT", "UTC")
_ALWAYS_UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "+00:00", "-00:00"})


def session_zone(spark: SparkSession) -> str:
    return str(spark.conf.get(SESSION_ZONE))


def is_utc(zone: str) -> bool:
    """Whether a zone of this name is UTC."""
    return zone.lower() in _ALWAYS_UTC


def task_zone() -> str | None:
    """The zone that a task's session was told; None where Spark does not say it, which is where it
    is the default of the machine, or no query of SQL asks."""
    task = TaskContext.get()
    return None if task is None else task.getLocalProperty(SESSION_ZONE)


def zone_of(name: str | None) -> tzinfo:
    """The zone of this name. Raises `UnsupportedSession` for one that is not known here, None
    included."""
    if name is None:
        raise UnsupportedSession(
            "a partition value has no time zone, and tasks are not told that of the session",
            hint=f"set {SESSION_ZONE}, and do not read by DataFrame.rdd; or use Table.read and "
            "Table.overwrite",
        )
    if name in _OF_UTC:
        return UTC
    found = _OFFSET.fullmatch(name)
    if found is not None:
        hours, minutes, seconds = (int(found[n] or found[n + 3] or 0) for n in (2, 3, 4))
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise UnsupportedSession(
            f"a partition value has no time zone, and Python does not know the session's, {name}",
            hint=f"set {SESSION_ZONE} to a region, like America/Los_Angeles",
        ) from error
