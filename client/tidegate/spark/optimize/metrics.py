"""What became of an OPTIMIZE, in Delta's words."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from tidegate.models import DataFile, Receipt
from tidegate.spark.commands.target import size_of, vectors_of
from tidegate.spark.optimize.clustering.clustering import Clustering
from tidegate.spark.optimize.writing import Rewritten
from tidegate.spark.tables.layout import TableLayout

_SIZES = "STRUCT<min: BIGINT, max: BIGINT, avg: DOUBLE, totalFiles: BIGINT, totalSize: BIGINT>"
_COUNT = "STRUCT<num: BIGINT, size: BIGINT>"
_SHOWN = "STRUCT<numFiles: BIGINT, size: BIGINT>"
SCHEMA = (
    "path STRING, metrics STRUCT<numFilesAdded: BIGINT, numFilesRemoved: BIGINT, "
    f"filesAdded: {_SIZES}, filesRemoved: {_SIZES}, partitionsOptimized: BIGINT, "
    f"zOrderStats: STRUCT<strategyName: STRING, inputCubeFiles: {_COUNT}, "
    f"inputOtherFiles: {_COUNT}, inputNumCubes: BIGINT, mergedFiles: {_COUNT}, "
    "numOutputCubes: BIGINT, mergedNumCubes: BIGINT>, "
    f"clusteringStats: STRUCT<inputZCubeFiles: {_SHOWN}, inputOtherFiles: {_SHOWN}, "
    f"inputNumZCubes: BIGINT, mergedFiles: {_SHOWN}, numOutputZCubes: BIGINT>, "
    "numBins: BIGINT, numBatches: BIGINT, totalConsideredFiles: BIGINT, "
    "totalFilesSkipped: BIGINT, preserveInsertionOrder: BOOLEAN, "
    "numFilesSkippedToReduceWriteAmplification: BIGINT, "
    "numBytesSkippedToReduceWriteAmplification: BIGINT, startTimeMs: BIGINT, endTimeMs: BIGINT, "
    "totalClusterParallelism: BIGINT, totalScheduledTasks: BIGINT, "
    "autoCompactParallelismStats: STRUCT<maxClusterActiveParallelism: BIGINT, "
    "minClusterActiveParallelism: BIGINT, maxSessionActiveParallelism: BIGINT, "
    "minSessionActiveParallelism: BIGINT>, "
    "deletionVectorStats: STRUCT<numDeletionVectorsRemoved: BIGINT, "
    "numDeletionVectorRowsRemoved: BIGINT>, numTableColumns: BIGINT, "
    "numTableColumnsWithStats: BIGINT>"
)
"""Of the DataFrame that Delta's OPTIMIZE returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimized:
    """The commits of an OPTIMIZE or REORG, none where there was nothing to rewrite, and Delta's
    `metrics` by its names."""

    receipts: tuple[Receipt, ...]
    path: str
    metrics: Mapping[str, object]

    def frame(self, spark: SparkSession) -> DataFrame:
        """One row, as Delta's command returns it."""
        return spark.createDataFrame([(self.path, dict(self.metrics))], SCHEMA)


@dataclass(slots=True, kw_only=True)
class Tally:
    """What was committed so far."""

    considered: Sequence[DataFile]
    ordered: bool
    clustering: Clustering | None
    started_s: float = field(default_factory=time.time)
    receipts: list[Receipt] = field(default_factory=list)
    rewritten: list[Rewritten] = field(default_factory=list)

    def note(self, receipt: Receipt, rewritten: Sequence[Rewritten]) -> None:
        """One more commit."""
        self.receipts.append(receipt)
        self.rewritten += rewritten

    def outcome(self, layout: TableLayout, spark: SparkSession) -> Optimized:
        """All of it."""
        added, removed = files_of(self.rewritten)
        partitions = len({each.bin.partition for each in self.rewritten})
        vectors = [vector for file in removed if (vector := file.deletion_vector) is not None]
        merged = {"num": len(removed), "size": size_of(removed)}
        indexed = layout.properties.num_indexed_columns
        columns = len(layout.spark_schema.fields)
        metrics: dict[str, object] = {
            "numFilesAdded": len(added),
            "numFilesRemoved": len(removed),
            "filesAdded": _sizes(added),
            "filesRemoved": _sizes(removed),
            "partitionsOptimized": partitions,
            "zOrderStats": {
                "strategyName": "all",
                "inputCubeFiles": {"num": 0, "size": 0},
                "inputOtherFiles": merged,
                "inputNumCubes": 0,
                "mergedFiles": merged,
                "numOutputCubes": partitions,
            }
            if self.ordered
            else None,
            "clusteringStats": None
            if self.clustering is None
            else self.clustering.metrics(self.considered, removed, cubes=len(self.rewritten)),
            "numBins": len(self.rewritten),
            "numBatches": max(1, len(self.receipts)),
            "totalConsideredFiles": len(self.considered),
            "totalFilesSkipped": max(0, len(self.considered) - len(removed)),
            "preserveInsertionOrder": False,
            "numFilesSkippedToReduceWriteAmplification": 0,
            "numBytesSkippedToReduceWriteAmplification": 0,
            "startTimeMs": _ms(self.started_s),
            "endTimeMs": _ms(time.time()),
            "totalClusterParallelism": spark.sparkContext.defaultParallelism,
            "totalScheduledTasks": 0,
            "deletionVectorStats": {
                "numDeletionVectorsRemoved": len(vectors),
                "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
            }
            if vectors
            else None,
            "numTableColumns": columns,
            "numTableColumnsWithStats": columns if indexed < 0 else min(indexed, columns),
        }
        return Optimized(receipts=tuple(self.receipts), path=layout.root, metrics=metrics)


def files_of(rewritten: Sequence[Rewritten]) -> tuple[list[DataFile], list[DataFile]]:
    """What is added and what is removed."""
    added = [add for each in rewritten for add in each.files.adds]
    return added, [file for each in rewritten for file in each.bin.files]


def history_metrics(rewritten: Sequence[Rewritten]) -> dict[str, str]:
    """Of one commit, as Delta's history has them."""
    added, removed = files_of(rewritten)
    sizes = sorted(file.size for file in added) or [0]
    metrics = {
        "numAddedFiles": len(added),
        "numAddedBytes": size_of(added),
        "numRemovedFiles": len(removed),
        "numRemovedBytes": size_of(removed),
        "minFileSize": sizes[0],
        "p25FileSize": sizes[len(sizes) // 4],
        "p50FileSize": sizes[len(sizes) // 2],
        "p75FileSize": sizes[len(sizes) * 3 // 4],
        "maxFileSize": sizes[-1],
        "numDeletionVectorsRemoved": vectors_of(removed),
    }
    return {name: str(value) for name, value in metrics.items()}


def _sizes(files: Sequence[DataFile]) -> dict[str, object]:
    sizes = [file.size for file in files]
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": sum(sizes) / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": sum(sizes),
    }


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
