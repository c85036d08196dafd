"""What an OPTIMIZE or REORG is to do with a table as of one version."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.commands.target import Target
from tidegate.spark.data_files.staging import DataFiles
from tidegate.spark.expressions.pruning import statistics
from tidegate.spark.optimize.arranging import arranged
from tidegate.spark.optimize.bins import Bin, bins_of, packed, worth_compacting
from tidegate.spark.optimize.clustering.clustering import Clustering
from tidegate.spark.optimize.clustering.cubes import cubes_to_be
from tidegate.spark.optimize.curves import hilbert, z_order
from tidegate.spark.optimize.older_types import with_older_types
from tidegate.spark.optimize.purge import with_leftovers
from tidegate.spark.optimize.selection import (
    OrderColumn,
    PartitionFilter,
    json_list,
    order_columns,
)
from tidegate.spark.optimize.settings import OptimizeSettings
from tidegate.spark.tables.zones import session_zone

OPTIMIZE = "OPTIMIZE"
REORG = "REORG"
_BYTES_OF_A_ROW = 64
"""Of a file that does not say how many rows it has. Rows are fewer, if anything."""


class Reorganized(Enum):
    """The files that a REORG rewrites: those that hold more than the table, or columns of another
    type than its."""

    LEFTOVERS = "leftovers"
    OLDER_TYPES = "older types"


_CHOICES = {
    Reorganized.LEFTOVERS: with_leftovers,
    Reorganized.OLDER_TYPES: with_older_types,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for: which partitions, and the columns to order rows by, if any. One that
    `is_full` clusters all of a clustered table. A REORG says which files it is to rewrite."""

    where: tuple[str, ...] = ()
    z_order_by: tuple[str, ...] = ()
    is_full: bool = False
    reorganizes: Reorganized | None = None

    @property
    def operation(self) -> str:
        """Delta's name of it."""
        return OPTIMIZE if self.reorganizes is None else REORG


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The request over a table at the target's version; `files` are those of its partitions."""

    request: Request
    target: Target
    settings: OptimizeSettings
    filter: PartitionFilter
    order: tuple[OrderColumn, ...]
    clustering: Clustering | None
    files: Sequence[DataFile] = field(repr=False)

    @classmethod
    def of(cls, request: Request, table: TableHandle, spark: SparkSession) -> Self:
        """Raises `UnsupportedTable`, and `InvalidCommand` and `UnsupportedSession` before any
        job."""
        settings = OptimizeSettings.of(spark)
        target = Target.begin(table, spark, alias=None, removes=False)
        clustering = Clustering.of(
            target, where=request.where, z_order_by=request.z_order_by, is_full=request.is_full
        )
        where = PartitionFilter.of(target, request.where, operation=request.operation)
        order = order_columns(
            target, request.z_order_by, checks_statistics=settings.checks_statistics
        )
        return cls(
            request=request,
            target=target,
            settings=settings,
            filter=where,
            order=order,
            clustering=clustering,
            files=where.files(target),
        )

    def bins(self, *, but: frozenset[str] = frozenset()) -> list[Bin]:
        """What is written again together, without the files of these paths."""
        settings, layout = self.settings, self.target.layout
        zone = session_zone(self.target.spark)
        files = [file for file in self.files if file.path not in but]
        if self.request.reorganizes is not None:
            files = _CHOICES[self.request.reorganizes](self.target.spark, layout, files)
            if self.clustering is not None:
                return cubes_to_be(files, size=settings.cube_size)
            return bins_of(files, layout, zone=zone, max_size=settings.max_file_size, least=1)
        if self.clustering is not None:
            return self.clustering.bins(files, settings)
        if self.order:
            return bins_of(files, layout, zone=zone, max_size=None, least=1)
        small = [
            file
            for file in files
            if worth_compacting(
                file,
                min_size=settings.min_file_size,
                max_deleted_ratio=settings.max_deleted_rows_ratio,
            )
        ]
        return bins_of(small, layout, zone=zone, max_size=settings.max_file_size, least=2)

    def batches(self, bins: Sequence[Bin]) -> list[list[Bin]]:
        """The bins of each commit."""
        return packed(bins, size=_size, limit=self.settings.batch_size)

    def arranged(self, rows: DataFrame, bin_: Bin) -> DataFrame:
        """The rows of a bin in the partitions that become files."""
        settings = self.settings
        columns = self.order if self.clustering is None else self.clustering.columns
        if columns:
            return arranged(
                rows,
                [each.column for each in columns],
                z_order if self.clustering is None else hilbert,
                files=max(1, bin_.size // settings.max_file_size),
                records=_records(bin_),
                ranges=settings.ranges,
            )
        return rows.repartition(1) if settings.repartitions else rows.coalesce(1)

    def marked(self, files: DataFiles) -> DataFiles:
        """The files that a bin became, as the log is to have them."""
        return files if self.clustering is None else self.clustering.marked(files)

    def parameters(self) -> dict[str, object]:
        """How Delta's history has the request."""
        found: dict[str, object] = {"predicate": self.filter.parameter()}
        if self.request.reorganizes is not None:
            # So in Delta, whatever it is for.
            return found | {"applyPurge": True}
        names = [] if self.clustering is None else self.clustering.names
        found |= {
            "zOrderBy": json_list([each.name for each in self.order]),
            "clusterBy": json_list(names),
            "auto": False,
        }
        return found | ({"isFull": self.request.is_full} if names else {})


def _records(bin_: Bin) -> int:
    """About how many rows there are, by what files say of themselves, or by their size."""
    return sum(map(_records_of, bin_.files))


def _records_of(file: DataFile) -> int:
    stats = statistics(file)
    if stats is None or stats.num_records is None:
        return file.size // _BYTES_OF_A_ROW
    return stats.num_records


def _size(bin_: Bin) -> int:
    return bin_.size
