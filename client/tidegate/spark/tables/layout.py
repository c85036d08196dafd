"""A table as a writer or reader of its data files sees it: where they go, and their columns."""

import json
import secrets
from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql.types import StructType as SparkStruct

from tidegate.spark.storage.locations import absolute, arrow_path, hadoop_url
from tidegate.spark.tables.mapping import physical_schema
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.scan.statistics_writing import statistics_columns
from tidegate_protocol.schema.data_types import Field, Leaf, StructType, physical_name
from tidegate_protocol.schema.partition_values import partition_path
from tidegate_protocol.schema.table_schema import parse_schema

TRANSACTION_KEY = "tidegate_txn"
"""Each attempt at a transaction writes below a folder of its own in the table's location,
`tidegate_txn=<id>.<attempt>`.

The folder is private, so that what a failed job leaves behind can be told from everybody else's
files: a transaction that brings its own id may be attempted again, and the files of an earlier
attempt may be in the table. It is named like a Hive partition, so that partition discovery reads
the files of many transactions under one base path; and not like `_hidden` or `.hidden`, because
VACUUM passes over such folders, and what a killed driver left in one would stay for ever.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is read of a table: the rows for which `where` is true, all without one, which the table
    has at `version` and, for whoever reads them, now. None is a past that was asked for: Delta,
    too, takes what it has read of one for no part of a transaction (`isTimeTravelQuery`).
    `transaction` is the id of one that has recorded the files, where the rows are those of files
    that it gave."""

    version: int | None
    where: str | None = None
    transaction: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """The place and the columns of a table's data files, as of one version of its metadata.

    `schema` and `spark_schema` are the same columns in two vocabularies; `partition_columns`
    are spelt as they are there. `reading` is what a DataFrame that is made of it reads, for its
    plan to say so; None where none is made that leaves the client's hands. `clustering` are the
    physical paths of the columns that it is clustered by, where it is to be written.
    """

    name: str
    location: str
    schema: StructType
    spark_schema: SparkStruct
    partition_columns: tuple[str, ...]
    properties: TableProperties
    reading: Reading | None = None
    clustering: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, *, name: str, location: str, metadata: Metadata) -> Self:
        """Raises `UnsupportedTable` for a location that no file system is known for."""
        hadoop_url(location)
        schema = parse_schema(metadata.schema_string)
        found = (schema.field(column) for column in metadata.partition_columns)
        return cls(
            name=name,
            location=location,
            schema=schema,
            spark_schema=SparkStruct.fromJson(json.loads(metadata.schema_string)),
            partition_columns=tuple(field.name for field in found if field is not None),
            properties=TableProperties.parse(metadata.configuration),
        )

    @property
    def is_mapped(self) -> bool:
        """Whether files have columns under names of their own, or by ids."""
        return self.properties.column_mapping

    def physical_name(self, field: Field) -> str:
        """What files, folders and the log's partition values call a column or nested field."""
        return physical_name(field) if self.is_mapped else field.name

    @property
    def physical(self) -> "TableLayout":
        """The same table with its columns as the files, their folders and the log's partition
        values have them."""
        if not self.is_mapped:
            return self
        schema = physical_schema(self.spark_schema)
        found = (self.schema.field(column) for column in self.partition_columns)
        return replace(
            self,
            schema=parse_schema(schema.json()),
            spark_schema=schema,
            partition_columns=tuple(
                self.physical_name(field) for field in found if field is not None
            ),
        )

    @property
    def described(self) -> str:
        """The columns and what they are partitioned by, for messages."""
        columns = self.spark_schema.simpleString()
        partitions = list(self.partition_columns)
        return f"{columns} partitioned by {partitions}" if partitions else columns

    @property
    def statistics_columns(self) -> tuple[Leaf, ...]:
        """The leaf columns that its files have statistics of."""
        return statistics_columns(
            self.schema, self.properties, self.partition_columns, clustering=self.clustering
        )

    @property
    def root(self) -> str:
        """The table's location as Spark knows it. Locations carry no percent escapes."""
        return hadoop_url(self.location)

    @property
    def data_schema(self) -> StructType:
        """The columns that are inside the data files: all but the partition columns."""
        partitions = set(self.partition_columns)
        return StructType(fields=tuple(f for f in self.schema.fields if f.name not in partitions))

    def url(self, path: str) -> str:
        """A file's URL as Spark knows it, from its decoded path in an action."""
        return hadoop_url(absolute(path, self.location))

    def path(self, path: str) -> str:
        """A file's path in Arrow's file system, from its decoded path in an action."""
        return arrow_path(absolute(path, self.location))


def new_folder(transaction_id: str) -> str:
    """A folder for the files of one attempt at a transaction, relative to the table's location
    and not encoded; another one at each call."""
    attempt = f"{transaction_id}.{secrets.token_hex(8)}"
    return partition_path({TRANSACTION_KEY: attempt}, [TRANSACTION_KEY])
