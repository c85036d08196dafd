"""`DeltaTable` of Delta's Python API, coordinated: the same methods and parameters, and commits
that go through the service.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Self

from pyspark.sql import Column, DataFrame, SparkSession

from tidegate.errors import TableNotFound
from tidegate.lake import TOKEN_VARIABLE, URL_VARIABLE, Lake, connect
from tidegate.spark.application import application_id
from tidegate.spark.commands.arguments import assigned_columns, condition_column
from tidegate.spark.commands.builder import DeltaMergeBuilder
from tidegate.spark.commands.delete import delete
from tidegate.spark.commands.errors import InvalidCommand
from tidegate.spark.commands.update import update
from tidegate.spark.delta import descriptions
from tidegate.spark.errors import UnsupportedSession
from tidegate.table import Table

URL_SETTING = "spark.tidegate.url"
TOKEN_SETTING = "spark.tidegate.token"
_MANIFESTS = "symlink_format_manifest"
_BY_PATH = ("delta.`", "`")
_S3A = "s3a://"


class DeltaTable:
    """A table of the service, by the methods of Delta's class of this name.

    Which service is asked is as for `format("tidegate")`: `TIDEGATE_URL` and `TIDEGATE_TOKEN` of
    the driver's environment. The session's settings `spark.tidegate.url` and `spark.tidegate.token`
    come first. `over` takes a `tidegate.Table` instead.

    Conditions and values are columns, or expressions as SQL text; others raise `TypeError` and
    `ValueError`. What a command cannot make sense of raises `InvalidCommand`, an
    `AnalysisException` with Delta's error class, before any job.
    """

    def __init__(self, spark: SparkSession, table: Table, *, alias: str | None = None) -> None:
        self._spark = spark
        self._table = table
        self._alias = alias

    @classmethod
    def over(cls, spark: SparkSession, table: Table) -> Self:
        """The table of a lake at hand."""
        return cls(spark, table)

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> Self:
        """The table with this full name (in any case) or id, or at the path in ``delta.`path`
        ``."""
        start, end = _BY_PATH
        if tableOrViewName.lower().startswith(start) and tableOrViewName.endswith(end):
            return cls.forPath(sparkSession, tableOrViewName[len(start) : -len(end)])
        try:
            return cls(sparkSession, _lake_of(sparkSession).table(tableOrViewName))
        except TableNotFound as error:
            raise _missing(tableOrViewName, "create it, or register its location") from error

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> Self:
        """The table that is registered at this location; `hadoopConf` has to be empty, since data
        files are reached by the session's own settings."""
        if hadoopConf:
            raise UnsupportedSession(
                f"expected no hadoopConf, found {sorted(hadoopConf)}",
                hint="set it on the session, as spark.hadoop.*",
            )
        found = _at(_lake_of(sparkSession), path)
        if found is None:
            raise _missing(
                path, f'register it: lake.register_table("catalog.schema.table", {_url(path)!r})'
            )
        return cls(sparkSession, found)

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether a table is registered at this location."""
        return _at(_lake_of(sparkSession), identifier) is not None

    def toDF(self) -> DataFrame:
        """The rows of the latest version now."""
        found = self._table.read(self._spark)
        return found if self._alias is None else found.alias(self._alias)

    def alias(self, aliasName: str) -> Self:
        """The table under another name in expressions."""
        return type(self)(self._spark, self._table, alias=aliasName)

    def delete(self, condition: Column | str | None = None) -> None:
        """Delete the rows of which the condition is true, all without one."""
        delete(self._table, self._spark, condition_column(condition), alias=self._alias)

    def update(
        self,
        condition: Column | str | None = None,
        set: Mapping[str, Column | str] | None = None,
    ) -> None:
        """Set columns of the rows of which the condition is true, of all without one."""
        values = assigned_columns(set, name="'set'")
        update(self._table, self._spark, values, condition_column(condition), alias=self._alias)

    def merge(self, source: DataFrame, condition: Column | str) -> DeltaMergeBuilder:
        """Begin a MERGE: clauses are added to what is returned, and its `execute` does it."""
        return DeltaMergeBuilder(self._table, source, condition, alias=self._alias)

    def history(self, limit: int | None = None) -> DataFrame:
        """The commits, the latest first, with the columns of Delta's DESCRIBE HISTORY."""
        return descriptions.history(self._table, self._spark, limit)

    def detail(self) -> DataFrame:
        """Name, place, size and protocol, with the columns of Delta's DESCRIBE DETAIL."""
        return descriptions.detail(self._table, self._spark)

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Delete the data files that no version within the retention names, on the service. The
        DataFrame has no rows. A retention shorter than the table's is refused, as by `Table.vacuum`
        without `allow_shorter`."""
        retain = None if retentionHours is None else timedelta(hours=float(retentionHours))
        self._table.vacuum(retain=retain)
        return self._spark.createDataFrame([], "path STRING")

    def generate(self, mode: str) -> None:
        """Write manifests for readers that know nothing of Delta; the one mode is
        `symlink_format_manifest`, in any case."""
        if not isinstance(mode, str) or mode.lower() != _MANIFESTS:
            raise InvalidCommand(
                "DELTA_UNSUPPORTED_GENERATE_MODE",
                f"Specified mode '{mode}' is not supported. Supported modes are: {_MANIFESTS}",
            )
        self._table.generate_manifests()


def _lake_of(spark: SparkSession) -> Lake:
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


def _at(lake: Lake, path: str) -> Table | None:
    wanted = _url(path)
    return next((table for table in lake.tables() if _url(table.location) == wanted), None)


def _url(path: str) -> str:
    """A location as the service has it: `file:///folder`, `s3://bucket/folder`."""
    plain = path.rstrip("/")
    if plain.startswith("file:"):
        plain = "/" + plain.removeprefix("file:").lstrip("/")
    if plain.startswith("/"):
        return f"file://{plain}"
    return f"s3://{plain.removeprefix(_S3A)}" if plain.startswith(_S3A) else plain


def _missing(name: str, hint: str) -> InvalidCommand:
    return InvalidCommand(
        "DELTA_MISSING_DELTA_TABLE", f"{name} is not a Delta table of this service", hint=hint
    )
