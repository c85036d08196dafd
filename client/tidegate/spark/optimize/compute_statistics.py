"""COMPUTE STATS: the statistics of live files are put anew from the ends of the files. No row is
read or written.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from time import monotonic
from typing import Any

from pyspark.sql import SparkSession

from tidegate.handle import TableHandle
from tidegate.models import DataFile, Receipt
from tidegate.spark.commands.target import Target
from tidegate.spark.data_files.foreign_footers import statistics_by_name
from tidegate.spark.optimize.kept_statistics import with_kept
from tidegate.spark.optimize.selection import PartitionFilter
from tidegate.spark.session_settings import metadata_of
from tidegate.spark.storage.locations import DataStore, StoredFile
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.write.repeats import repeated
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.log.paths import decode

_OPERATION = "COMPUTE STATS"
_TIGHT = "tightBounds"
_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedStatistics:
    """The commit, None where each file had these statistics already; how many files were looked at,
    and how many of them have other statistics now."""

    receipt: Receipt | None
    files: int
    changed: int


def compute_statistics(
    table: TableHandle,
    spark: SparkSession,
    *,
    where: Sequence[str] = (),
    user_metadata: str | None = None,
    retries: int = 0,
) -> ComputedStatistics:
    """Put what the files' ends say of the columns that the table has statistics of
    (`delta.dataSkippingNumIndexedCols`, `delta.dataSkippingStatsColumns`) in the place of their
    statistics, in one commit that changes no row.

    `where` are predicates over partition columns, which choose partitions. Bounds of a file with a
    deletion vector are those of all of its rows, and said to be wide. Where the end of a file does
    not say something of a column, what the file's statistics say of it stays.

    A commit that removes a file, or marks rows of it, meanwhile is a conflict: it is done anew on
    the newer version, at most `retries` times. Raises `InvalidCommand` before any file is opened,
    `UnsupportedTable`, `StorageError`, and what `Transaction.commit` raises.
    """

    def once() -> ComputedStatistics:
        target = Target.begin(table, spark, alias=None, removes=False)
        chosen = PartitionFilter.of(target, where, operation=_OPERATION)
        files = chosen.files(target)
        store = store_at(target.layout.location, spark)
        with (
            target.passes(_OPERATION) as passes,
            ThreadPoolExecutor(max_workers=_THREADS) as pool,
        ):
            passes.opens(len(files))
            texts = list(pool.map(lambda file: _statistics(file, target.layout, store), files))
        changed = [
            with_fields(file, {"stats": text, "dataChange": False})
            for file, text in zip(files, texts, strict=True)
            if _values(file.stats) != _values(text)
        ]
        receipt = None
        if changed:
            target.transaction.read_files(changed)
            target.transaction.add(changed)
            receipt = target.transaction.commit(
                _OPERATION,
                parameters={"predicate": chosen.parameter()},
                user_metadata=metadata_of(user_metadata, spark),
            )
        return ComputedStatistics(receipt=receipt, files=len(files), changed=len(changed))

    return repeated(once, retries=retries, clock_s=monotonic)


def _statistics(file: DataFile, layout: TableLayout, store: DataStore) -> str:
    stored = StoredFile(
        path=decode(file.path), size=file.size, modification_time=file.modification_time
    )
    tight = None if file.deletion_vector is None else False
    text = statistics_by_name(store.footer(stored), layout, tight_bounds=tight)
    return with_kept(text, file.stats, layout.statistics_columns)


def _values(text: str | None) -> Mapping[str, Any]:
    """What a file's statistics say, to the last digit. That bounds are tight needs no saying."""
    found: dict[str, Any] = {} if text is None else json.loads(text, parse_float=Decimal)
    if found.get(_TIGHT) is True:
        del found[_TIGHT]
    return found
