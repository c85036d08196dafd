"""The table that a command changes, as DataFrames: all at one version, that of its transaction."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from tidegate.active import check_none_active
from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.application import table_of
from tidegate.spark.data_files.footers import FOOTER_THREADS, num_records
from tidegate.spark.errors import StorageError
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.expressions.instant import Instant
from tidegate.spark.expressions.pruning import statistics
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.read.rows import rows_of_files
from tidegate.spark.storage.locations import StoredFile
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.plans import columns_of_table, own_reads, with_columns_of
from tidegate.spark.tables.refusals import check_readable
from tidegate.spark.values.identity import identity_columns
from tidegate.spark.write.beginning import check_known, record
from tidegate.spark.write.files import writable_layout
from tidegate.spark.write.repeats import own_rows_refused
from tidegate.spark.write.write import check_removable
from tidegate.transaction_handle import TransactionHandle
from tidegate_protocol.log.paths import decode


@dataclass(frozen=True, kw_only=True)
class Target:
    """A table at the read version of a command's transaction. `alias` is what the command calls it,
    `layout` as it was read, `instant` the command's current time. `is_repeated` says that the
    command is done again after a conflict.

    What is resolved over `nothing` holds of all of its `rows`, so that a command is resolved once.
    """

    spark: SparkSession
    transaction: TransactionHandle
    layout: TableLayout
    alias: str
    instant: Instant
    is_repeated: bool = False

    @classmethod
    def begin(
        cls,
        table: TableHandle,
        spark: SparkSession,
        *,
        alias: str | None,
        removes: bool = True,
        is_repeated: bool = False,
        version: int | None = None,
    ) -> Self:
        """Begin a transaction at a version, the latest one by default. Raises `TransactionActive`,
        `UnsupportedTable` for what the client does not write, and where `removes`
        `InvalidProposal` for a table that is append-only."""
        check_none_active(table.id)
        table = table_of(table, spark)
        head = None if version is None else table.as_of(version)
        transaction = TransactionHandle(table, head=head)
        layout = writable_layout(transaction)
        if removes:
            check_removable(layout)
        return cls(
            spark=spark,
            transaction=transaction,
            layout=layout,
            alias=alias or table.name.rpartition(".")[2],
            instant=Instant(spark),
            is_repeated=is_repeated,
        )

    def read_by(self, rows: DataFrame, *, removes: bool = True) -> Self:
        """The target of a command that takes these rows. Where they are its own, that is recorded
        as read: as of the version that they are of, so that what others committed since is a
        conflict. Raises as `begin` and, where it removes, `check_known` do, and `InvalidRequest`
        for a command that is repeated: it would take rows of the version that was read for those of
        a later one."""
        reads = own_reads(rows, self.layout)
        if reads is None:
            return self
        if removes:
            check_known(reads, self.layout)
        if self.is_repeated:
            raise own_rows_refused(self.layout.name)
        version = reads.version
        found = self
        if version is not None and version < self.transaction.read_version:
            found = self.begin(
                self.transaction.table,
                self.spark,
                alias=self.alias,
                removes=removes,
                version=version,
            )
        record(found.transaction, reads)
        return found

    def passes(self, operation: str) -> Passes:
        """What the command will be at."""
        return Passes(self.spark, operation=operation, table=self.layout.name)

    @cached_property
    def nothing(self) -> DataFrame:
        """The table's columns without rows, to resolve names over."""
        return columns_of_table(self.spark, self.layout).alias(self.alias)

    def rows(self, files: Sequence[DataFile], *, with_ids: bool = False) -> DataFrame:
        """The rows of the files, with the columns of `nothing`; `FILE` is the place of a row's file
        among them, `POSITION` the row's in it. `with_ids` is for rows that are written again, and
        have the ids that they are to keep where the table tracks them. Raises `UnsupportedTable`
        for what the client does not read."""
        check_readable(self.layout, self.transaction.head.protocol)
        rows = rows_of_files(
            self.spark, self.layout, files, located=True, is_whole=True, with_ids=with_ids
        )
        return with_columns_of(self.nothing, rows).alias(self.alias)

    def records(self, files: Sequence[DataFile]) -> Mapping[str, int]:
        """How many rows of the table each file holds, by its path, from the log or else from its
        footer."""
        found = {file.path: _logged(file) for file in files}
        unknown = [file for file in files if found[file.path] is None]
        counted = dict(zip([file.path for file in unknown], self._counted(unknown), strict=True))
        return {
            file.path: counted.get(file.path, found[file.path] or 0) - _marked(file)
            for file in files
        }

    def _counted(self, files: Sequence[DataFile]) -> list[int]:
        """How many rows there are by each file's footer, those that are marked, too."""
        if not files:
            return []
        store = store_at(self.layout.location, self.spark)

        def count(file: DataFile) -> int:
            size, time = file.size, file.modification_time
            stored = StoredFile(path=decode(file.path), size=size, modification_time=time)
            return num_records(store.footer(stored))

        with ThreadPoolExecutor(max_workers=FOOTER_THREADS) as pool:
            return list(pool.map(count, files))

    def check_all_there(self, files: Sequence[DataFile], *, rows: int) -> None:
        """Raise `StorageError` where the files, each of whose rows was written again, had more or
        fewer `rows` than the log says. Spark's reader takes an empty file, as some storage leaves
        behind, for one without rows."""
        expected = sum(self.records(files).values())
        if rows != expected:
            raise _other_rows(self.layout.name, f"{len(files)} files", expected, rows)

    def check_counts(self, files: Sequence[DataFile]) -> None:
        """Raise `StorageError` where the log says of a file another number of rows than its footer:
        for a command that goes by the log, and does not write all of the rows again."""
        logged = [file for file in files if _logged(file) is not None]
        for file, count in zip(logged, self._counted(logged), strict=True):
            expected = _logged(file)
            if expected is not None and count != expected:
                raise _other_rows(self.layout.name, f"the file {file.path}", expected, count)

    def marks_rows(self, operation: str) -> bool:
        """Whether the command marks rows by deletion vectors, instead of writing the others anew:
        the table has them on, and the session does not switch them off for the operation."""
        setting = f"spark.databricks.delta.{operation.lower()}.deletionVectors.persistent"
        allowed = str(self.spark.conf.get(setting, "true")).lower() == "true"
        return allowed and self.layout.properties.deletion_vectors

    def check_numbers_stay(self, assigned: Iterable[str]) -> None:
        """Raise `InvalidCommand` where a column that is assigned to has numbers of its own."""
        numbered = identity_columns(self.layout)
        for name in assigned:
            if name in numbered:
                raise InvalidCommand(
                    "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                    f"UPDATE on IDENTITY column {name} is not supported",
                )


def _logged(file: DataFile) -> int | None:
    stats = statistics(file)
    return None if stats is None else stats.num_records


def _marked(file: DataFile) -> int:
    return 0 if file.deletion_vector is None else file.deletion_vector.cardinality


def _other_rows(table: str, where: str, expected: int, found: int) -> StorageError:
    return StorageError(
        f"table {table}: expected {expected} rows in {where}, by the log, found {found}",
        hint="compare sizes and content of the files with the log; where the log is wrong, "
        "compute_statistics counts anew",
    )


def vectors_of(files: Iterable[DataFile]) -> int:
    """How many of the files have a deletion vector."""
    return sum(file.deletion_vector is not None for file in files)


def size_of(files: Sequence[DataFile]) -> int:
    """In bytes."""
    return sum(file.size for file in files)
