"""The tables that names and places of a Spark session stand for."""

import os
from functools import lru_cache

from pyspark.sql import SparkSession

from tidegate.errors import TableNotFound
from tidegate.lake import TOKEN_VARIABLE, URL_VARIABLE, Lake, connect
from tidegate.spark.application import application_id
from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.storage.locations import place_url
from tidegate.table import Table

URL_SETTING = "spark.tidegate.url"
TOKEN_SETTING = "spark.tidegate.token"


def lake_of(spark: SparkSession) -> Lake:
    """The service that the session names, or the driver's environment. Raises
    `UnsupportedSession` where neither does."""
    url = spark.conf.get(URL_SETTING, None) or os.environ.get(URL_VARIABLE)
    token = spark.conf.get(TOKEN_SETTING, None) or os.environ.get(TOKEN_VARIABLE)
    if not url:
        raise UnsupportedSession(
            f"no service is named; expected a URL as {URL_SETTING} of the session, or in "
            f"{URL_VARIABLE}"
        )
    return _connected(url, token or None, application_id(spark))


@lru_cache(maxsize=16)
def _connected(url: str, token: str | None, application: str) -> Lake:
    """One connection for each service and session, as long as the process lives."""
    return connect(url, token=token, application_id=application)


def found_named(lake: Lake, name: str) -> Table | None:
    """The table with this full name (in any case) or id, if there is one."""
    try:
        return lake.table(name)
    except TableNotFound:
        return None


def table_named(lake: Lake, name: str) -> Table:
    """The same; raises `InvalidCommand` where there is none."""
    found = found_named(lake, name)
    if found is None:
        raise _missing(name, "create it, or register its location")
    return found


def found_at(lake: Lake, place: str) -> Table | None:
    """The table that is registered at this location, if one is."""
    wanted = place_url(place)
    return next((table for table in lake.tables() if place_url(table.location) == wanted), None)


def table_at(lake: Lake, place: str) -> Table:
    """The same; raises `InvalidCommand`, which says how to register it, where none is."""
    found = found_at(lake, place)
    if found is None:
        how = f'register it: lake.register_table("catalog.schema.table", {place_url(place)!r})'
        raise _missing(place, how)
    return found


def _missing(name: str, hint: str) -> InvalidCommand:
    return InvalidCommand(
        "DELTA_MISSING_DELTA_TABLE", f"{name} is not a Delta table of this service", hint=hint
    )
