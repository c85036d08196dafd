"""`DeltaTable` of Delta's Python API, coordinated: the same methods and parameters, and commits
that go through the service.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Self, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidegate.spark.alter.definitions import plain_definitions
from tidegate.spark.application import current_session
from tidegate.spark.columns.definition import TableDefinition
from tidegate.spark.commands.delete import delete
from tidegate.spark.commands.making import Making
from tidegate.spark.commands.restore import restore
from tidegate.spark.commands.update import update
from tidegate.spark.convert.convert import convert, parts_of, place_of
from tidegate.spark.delta import descriptions
from tidegate.spark.delta.finding import (
    found_at,
    found_named,
    lake_of,
    table_at,
    table_named,
)
from tidegate.spark.delta.making import make_table
from tidegate.spark.delta.own_columns import OwnColumns
from tidegate.spark.delta.table_builder import DeltaTableBuilder
from tidegate.spark.errors import UnsupportedSession
from tidegate.spark.expressions.arguments import (
    assigned_columns,
    condition_column,
    of_type,
    texts,
)
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.merge.builder import DeltaMergeBuilder
from tidegate.spark.optimize.builder import DeltaOptimizeBuilder
from tidegate.spark.storage.locations import place_url
from tidegate.table import Table

_Builder: TypeAlias = "DeltaTableBuilder[DeltaTable]"
_MANIFESTS = "symlink_format_manifest"
_BY_PATH = ("delta.`", "`")


class DeltaTable:
    """A table of the service, by the methods of Delta's class of this name.

    Which service is asked is as for `format("tidegate")`: `TIDEGATE_URL` and `TIDEGATE_TOKEN` of
    the driver's environment. The session's settings `spark.tidegate.url` and `spark.tidegate.token`
    come first. `over` takes a `tidegate.Table` instead.

    Conditions and values are columns, or expressions as SQL text; others raise `TypeError` and
    `ValueError`. What a command cannot make sense of raises `InvalidCommand`, an
    `AnalysisException` with Delta's error class, before any job.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        *,
        alias: str | None = None,
        own: OwnColumns | None = None,
    ) -> None:
        self._spark = spark
        self._table = table
        self._alias = alias
        self._own = own or OwnColumns(spark)

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
        return cls(sparkSession, table_named(lake_of(sparkSession), tableOrViewName))

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
        return cls(sparkSession, table_at(lake_of(sparkSession), path))

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether a table is registered at this location."""
        return found_at(lake_of(sparkSession), identifier) is not None

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """Make a folder of Parquet files, ``parquet.`path` ``, the table `catalog.schema.table`.
        The `name` is needed, since a table of the service has one. `partitionSchema` is of the
        columns in the names of folders: `month INT, day INT`."""
        if name is None:
            raise InvalidCommand(
                "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
                f"expected a name for the table that {identifier} becomes, found none",
                hint='convertToDelta(spark, identifier, name="catalog.schema.table")',
            )
        schema = partitionSchema
        if isinstance(schema, str):
            schema = plain_definitions(sparkSession, schema)
        table = convert(
            lake_of(sparkSession).connection,
            sparkSession,
            place_of(parts_of(of_type(identifier, str, name="identifier"))),
            name=of_type(name, str, name="name"),
            partition_schema=schema,
            with_statistics=True,
            handle=Table,
        )
        return cls(sparkSession, table)

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> "_Builder":
        """Begin the definition of a new table."""
        return cls._building(sparkSession, Making.CREATE)

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> "_Builder":
        """Begin the definition of a table that is made where there is none."""
        return cls._building(sparkSession, Making.CREATE_IF_NOT_EXISTS)

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> "_Builder":
        """Begin the definition of what takes the place of a table."""
        return cls._building(sparkSession, Making.REPLACE)

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> "_Builder":
        """Begin the definition of a new table, or of what takes the place of one."""
        return cls._building(sparkSession, Making.CREATE_OR_REPLACE)

    @classmethod
    def _building(cls, given: SparkSession | None, making: Making) -> "_Builder":
        spark = current_session() if given is None else given
        if spark is None:
            raise UnsupportedSession("this process has no Spark session; expected one")

        def make(name: str | None, location: str | None, wanted: TableDefinition) -> DeltaTable:
            lake = lake_of(spark)
            place = None if location is None else place_url(location)
            found = found_named(lake, name) if name is not None else found_at(lake, place or "")
            made = make_table(lake, spark, making, wanted, found=found, name=name, location=place)
            return cls(spark, made)

        return DeltaTableBuilder(spark, make)

    def toDF(self) -> DataFrame:
        """The rows of the latest version now. Its columns are the table's in conditions and values
        of commands, as long as 100 further calls are not made."""
        found = self._table.read(self._spark)
        found = found if self._alias is None else found.alias(self._alias)
        self._own.note(found)
        return found

    def alias(self, aliasName: str) -> Self:
        """The table under another name in expressions."""
        return type(self)(self._spark, self._table, alias=aliasName, own=self._own)

    def delete(self, condition: Column | str | None = None) -> None:
        """Delete the rows of which the condition is true, all without one."""
        found = condition_column(condition, named=self._named)
        delete(self._table, self._spark, found, alias=self._alias)

    def update(
        self,
        condition: Column | str | None = None,
        set: Mapping[str, Column | str] | None = None,
    ) -> None:
        """Set columns of the rows of which the condition is true, of all without one."""
        values = assigned_columns(set, name="'set'", named=self._named)
        found = condition_column(condition, named=self._named)
        update(self._table, self._spark, values, found, alias=self._alias)

    def merge(self, source: DataFrame, condition: Column | str) -> DeltaMergeBuilder:
        """Begin a MERGE: clauses are added to what is returned, and its `execute` does it."""
        named = partial(self._named, source=source)
        return DeltaMergeBuilder(self._table, source, condition, alias=self._alias, named=named)

    def _named(self, column: Column, *, source: DataFrame | None = None) -> Column:
        alias = self._alias or self._table.name.rpartition(".")[2]
        return self._own.named(column, alias, source=source)

    def optimize(self) -> DeltaOptimizeBuilder:
        """Begin an OPTIMIZE, which a method of what is returned does."""
        return DeltaOptimizeBuilder(self._spark, self._table)

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
        if retain is not None and retain < timedelta():
            raise InvalidCommand(
                "DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
                f"Retention for Vacuum can't be less than 0 hours, and is {retentionHours}",
            )
        self._table.vacuum(retain=retain)
        return self._spark.createDataFrame([], "path STRING")

    def restoreToVersion(self, version: int) -> DataFrame:
        """Make the table what it was at a version; one row of Delta's metrics of RESTORE."""
        given = of_type(version, int, name="version")
        return descriptions.restored(restore(self._table, self._spark, version=given), self._spark)

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Make the table what it was at the latest version not after a timestamp, in the session's
        time zone; as `restoreToVersion`."""
        given = of_type(timestamp, str, name="timestamp")
        found = restore(self._table, self._spark, timestamp=given)
        return descriptions.restored(found, self._spark)

    def clone(
        self,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        *,
        location: str | None = None,
    ) -> Self:
        """Make a table of this one, as `catalog.schema.table`, and return it; `replace` lets it
        take the place of one."""
        return self._cloned(target, isShallow, replace, properties, location)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        *,
        location: str | None = None,
    ) -> Self:
        """As `clone`, of a version."""
        given = of_type(version, int, name="version")
        return self._cloned(target, isShallow, replace, properties, location, version=given)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        *,
        location: str | None = None,
    ) -> Self:
        """As `clone`, of the latest version not after a timestamp, in the session's time zone."""
        given = of_type(timestamp, str, name="timestamp")
        return self._cloned(target, isShallow, replace, properties, location, timestamp=given)

    def _cloned(
        self,
        target: str,
        is_shallow: bool,
        replace: bool,
        properties: Mapping[str, str] | None,
        location: str | None,
        *,
        version: int | None = None,
        timestamp: str | None = None,
    ) -> Self:
        found = self._table.clone(
            of_type(target, str, name="target"),
            shallow=of_type(is_shallow, bool, name="isShallow"),
            replace=of_type(replace, bool, name="replace"),
            properties=texts(properties, name="properties"),
            location=location,
            version=version,
            timestamp=timestamp,
            spark=self._spark,
        )
        return type(self)(self._spark, found.table)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Have the protocol support what these versions stand for."""
        reader = of_type(readerVersion, int, name="readerVersion")
        writer = of_type(writerVersion, int, name="writerVersion")
        self._table.alter(spark=self._spark).upgrade_protocol(reader, writer)

    def addFeatureSupport(self, featureName: str) -> None:
        """Have the protocol support a table feature."""
        name = of_type(featureName, str, name="featureName")
        self._table.alter(spark=self._spark).add_feature(name)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Take a table feature from the protocol; the history is not truncated."""
        name = of_type(featureName, str, name="featureName")
        given = False if truncateHistory is None else truncateHistory
        truncate = of_type(given, bool, name="truncateHistory")
        self._table.alter(spark=self._spark).drop_feature(name, truncate_history=truncate)

    def generate(self, mode: str) -> None:
        """Write manifests for readers that know nothing of Delta; the one mode is
        `symlink_format_manifest`, in any case."""
        if not isinstance(mode, str) or mode.lower() != _MANIFESTS:
            raise InvalidCommand(
                "DELTA_MODE_NOT_SUPPORTED",
                f"Specified mode '{mode}' is not supported. Supported modes are: {_MANIFESTS}",
            )
        self._table.generate_manifests()
