"""The table that a command changes, as DataFrames: all at one version, that of its transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.active import check_none_active
from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.application import table_of
from tidegate.spark.commands.errors import InvalidCommand
from tidegate.spark.commands.pruning import statistics
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.read.rows import rows_of_files
from tidegate.spark.storage.locations import StoredFile
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.partitions import typed_partitions
from tidegate.spark.tables.refusals import check_readable
from tidegate.spark.tables.schemas import as_nullable
from tidegate.spark.values.identity import identity_columns
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write.footers import num_records
from tidegate.spark.write.write import check_removable
from tidegate.transaction import Transaction
from tidegate_protocol.log.paths import decode

_NUMBER = "__tidegate_number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A table at the read version of a command's transaction. `alias` is what the command calls it,
    `layout` as it was read."""

    spark: SparkSession
    transaction: Transaction
    layout: TableLayout
    alias: str

    @classmethod
    def begin(
        cls, table: TableHandle, spark: SparkSession, *, alias: str | None, removes: bool = True
    ) -> Self:
        """Begin a transaction at the latest version. Raises `TransactionActive`, `UnsupportedTable`
        for what the client does not write, and where `removes` `InvalidProposal` for a table that
        is append-only."""
        check_none_active(table.id)
        transaction = Transaction(table_of(table, spark))
        layout = writable_layout(transaction)
        if removes:
            check_removable(layout)
        return cls(
            spark=spark,
            transaction=transaction,
            layout=layout,
            alias=alias or table.name.rpartition(".")[2],
        )

    def nothing(self) -> DataFrame:
        """The table's columns without rows, to resolve names over."""
        empty = self.spark.createDataFrame([], as_nullable(self.layout.spark_schema))
        return empty.alias(self.alias)

    def rows(self, files: Sequence[DataFile]) -> DataFrame:
        """The rows of the files; `FILE` is the place of a row's file among them, `POSITION` the
        row's in it. Raises `UnsupportedTable` for what the client does not read."""
        check_readable(self.layout, self.transaction.head.protocol)
        return rows_of_files(self.spark, self.layout, files, located=True).alias(self.alias)

    def partitions_where(self, files: Sequence[DataFile], condition: Column) -> list[DataFile]:
        """The files in whose partitions a condition over partition columns is true."""
        partitions = list({tuple(file.partition_values.items()): None for file in files})
        if not partitions:
            return []
        arrays = typed_partitions(self.layout.physical, [dict(values) for values in partitions])
        typed = zip(self.layout.partition_columns, arrays.values(), strict=True)
        numbers = self.spark.range(len(partitions)).coalesce(1).withColumnRenamed("id", _NUMBER)
        position = F.col(_NUMBER)
        values = (F.get(array, position.cast("int")).alias(name) for name, array in typed)
        frame = numbers.select(position, *values).alias(self.alias)
        true = {row[0] for row in frame.where(condition).select(_NUMBER).collect()}
        chosen = {values for number, values in enumerate(partitions) if number in true}
        return [file for file in files if tuple(file.partition_values.items()) in chosen]

    def records(self, files: Sequence[DataFile]) -> Mapping[str, int]:
        """How many rows of the table each file holds, by its path, from the log or else from its
        footer."""
        found: dict[str, int] = {}
        for file in files:
            stats = statistics(file)
            known = None if stats is None else stats.num_records
            held = self._count(file) if known is None else known
            vector = file.deletion_vector
            found[file.path] = held - (0 if vector is None else vector.cardinality)
        return found

    def _count(self, file: DataFile) -> int:
        stored = StoredFile(
            path=decode(file.path), size=file.size, modification_time=file.modification_time
        )
        return num_records(store_at(self.layout.location, self.spark).footer(stored))

    def check_rewritable(self) -> None:
        """Raise `UnsupportedTable` where rows that are copied would lose the ids that they have."""
        if self.layout.properties.row_tracking:
            raise UnsupportedTable(
                f"table {self.layout.name} has row tracking on, and rows that this client copies "
                "into new files would lose their ids",
                hint="delete whole partitions, or use a Delta client that keeps row ids",
            )

    def check_numbers_stay(self, assigned: Iterable[str]) -> None:
        """Raise `InvalidCommand` where a column that is assigned to has numbers of its own."""
        numbered = identity_columns(self.layout)
        for name in assigned:
            if name in numbered:
                raise InvalidCommand(
                    "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                    f"UPDATE on IDENTITY column {name} is not supported",
                )


def vectors_of(files: Iterable[DataFile]) -> int:
    """How many of the files have a deletion vector."""
    return sum(file.deletion_vector is not None for file in files)


def size_of(files: Sequence[DataFile]) -> int:
    """In bytes."""
    return sum(file.size for file in files)
