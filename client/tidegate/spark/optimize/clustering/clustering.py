"""Liquid clustering: by which columns an OPTIMIZE clusters a table, and what that rules out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self
from uuid import uuid4

from tidegate.models import DataFile
from tidegate.spark.commands.target import Target
from tidegate.spark.data_files.staging import DataFiles
from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.optimize.bins import Bin
from tidegate.spark.optimize.clustering.cubes import (
    counted,
    cubes_to_be,
    in_cube,
    shown_files,
    to_cluster,
)
from tidegate.spark.optimize.selection import OrderColumn
from tidegate.spark.optimize.settings import OptimizeSettings
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.features.known import CLUSTERING
from tidegate_protocol.features.table_features import supports
from tidegate_protocol.scan.clustering import (
    InvalidClustering,
    check_number,
    columns_at,
    shown,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    """The columns that a table is clustered by; where it `is_full`, all files are to be."""

    columns: tuple[OrderColumn, ...]
    is_full: bool

    @classmethod
    def of(
        cls, target: Target, *, where: Sequence[str], z_order_by: Sequence[str], is_full: bool
    ) -> Self | None:
        """None for a table that is not clustered by anything. Raises `InvalidCommand` for what an
        OPTIMIZE of a clustered table may not be given and only that may, and `UnsupportedTable` for
        columns that are not there."""
        layout = target.layout
        if supports(target.transaction.head.protocol, CLUSTERING):
            _check_plain(where, z_order_by)
        if is_full and not layout.clustering:
            raise InvalidCommand(
                "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
                "OPTIMIZE FULL is only supported for clustered tables with non-empty clustering "
                "columns",
            )
        columns = _columns(layout)
        return cls(columns=columns, is_full=is_full) if columns else None

    @property
    def names(self) -> list[str]:
        """As tags and history have them."""
        return [column.name for column in self.columns]

    def bins(self, files: Sequence[DataFile], settings: OptimizeSettings) -> list[Bin]:
        """What becomes a cube each."""
        chosen = to_cluster(
            files, self.names, stable_size=settings.stable_cube_size, is_full=self.is_full
        )
        return cubes_to_be(chosen, size=settings.cube_size)

    def marked(self, files: DataFiles) -> DataFiles:
        """The files that a bin became, as a cube."""
        cube_id = str(uuid4())
        return replace(files, adds=tuple(in_cube(add, cube_id, self.names) for add in files.adds))

    def metrics(
        self, before: Sequence[DataFile], removed: Sequence[DataFile], *, cubes: int
    ) -> dict[str, object]:
        """What Delta tells of it: `before` are the table's files, and `cubes` how many there are
        now in the place of the `removed`."""
        found = counted(before, self.names, is_full=self.is_full)
        return {
            "inputZCubeFiles": shown_files(found.in_cubes),
            "inputOtherFiles": shown_files(found.others),
            "inputNumZCubes": found.cubes,
            "mergedFiles": shown_files(removed),
            "numOutputZCubes": cubes,
        }


def _check_plain(where: Sequence[str], z_order_by: Sequence[str]) -> None:
    if where:
        raise InvalidCommand(
            "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            "OPTIMIZE command for Delta table with clustering doesn't support partition "
            f"predicates. Please remove the predicates: {' '.join(where)}",
        )
    if z_order_by:
        raise InvalidCommand(
            "DELTA_CLUSTERING_WITH_ZORDER_BY",
            "OPTIMIZE command for Delta table with clustering cannot specify ZORDER BY. Please "
            f"remove ZORDER BY ({', '.join(z_order_by)})",
        )


def _columns(layout: TableLayout) -> tuple[OrderColumn, ...]:
    found = columns_at(layout.schema, layout.clustering)
    if len(found) != len(layout.clustering):
        missing = {*layout.clustering} - {column.physical_path for column in found}
        raise UnsupportedTable(
            f"table {layout.name} is clustered by {sorted('.'.join(path) for path in missing)}; "
            f"expected columns of it ({layout.described})",
            hint="do it again, or choose its clustering columns by ALTER TABLE ... CLUSTER BY",
        )
    if found and layout.partition_columns:
        raise UnsupportedTable(
            f"table {layout.name} is partitioned by {list(layout.partition_columns)} and clustered "
            f"by {[shown(column) for column in found]}; expected one of both",
            hint="ALTER TABLE ... CLUSTER BY NONE",
        )
    try:
        check_number(len(found))
    except InvalidClustering as error:
        raise InvalidCommand(error.error_class, str(error)) from None
    return tuple(OrderColumn(name=shown(column), path=column.path) for column in found)
