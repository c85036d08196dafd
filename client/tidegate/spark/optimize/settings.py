"""What a session says of OPTIMIZE, by Delta's settings."""

from dataclasses import dataclass
from typing import Self

from pyspark.sql import SparkSession

from tidegate.spark.session_settings import Settings, at_least, boolean, ratio

CHECK_STATISTICS = "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled"
_PREFIX = "spark.databricks.delta.optimize."
_CUBES = _PREFIX + "clustering.mergeStrategy.minCubeSize."
_RANGES = "spark.databricks.io.skipping.mdc.rangeId.max"
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeSettings:
    """Sizes are in bytes. Files below `min_file_size` are compacted, and those that have lost more
    than `max_deleted_rows_ratio` of their rows; `max_file_size` is what files are to reach.

    Of a clustered table, cubes are made of about `cube_size` bytes at most, and stay as they are
    from `stable_cube_size` on.

    `batch_size` is how much of the table one commit rewrites, None for all in one. With
    `repartitions`, a bin is read by many tasks and shuffled to the one that writes. `ranges` is how
    finely a curve tells the values of a column apart.
    """

    min_file_size: int = _GIB
    max_file_size: int = _GIB
    max_deleted_rows_ratio: float = 0.05
    stable_cube_size: int = 100 * _GIB
    cube_size: int = 150 * _GIB
    batch_size: int | None = None
    threads: int = 15
    repartitions: bool = False
    ranges: int = 1_000
    checks_statistics: bool = True

    @classmethod
    def of(cls, spark: SparkSession) -> Self:
        """Raises `UnsupportedSession` for a value that a setting cannot have."""
        given = Settings(spark)
        usual = cls()
        stable_size = given.get(_CUBES + "threshold", at_least(0), usual.stable_cube_size)
        cube_size = given.get(_CUBES + "targetCubeSize", at_least(0), usual.cube_size)
        return cls(
            min_file_size=given.get(_PREFIX + "minFileSize", at_least(0), usual.min_file_size),
            max_file_size=given.get(_PREFIX + "maxFileSize", at_least(1), usual.max_file_size),
            max_deleted_rows_ratio=given.get(
                _PREFIX + "maxDeletedRowsRatio", ratio, usual.max_deleted_rows_ratio
            ),
            stable_cube_size=stable_size,
            cube_size=max(cube_size, stable_size),
            batch_size=given.get(_PREFIX + "batchSize", given.size, None),
            threads=given.get(_PREFIX + "maxThreads", at_least(1), usual.threads),
            repartitions=given.get(_PREFIX + "repartition.enabled", boolean, usual.repartitions),
            ranges=given.get(_RANGES, at_least(2), usual.ranges),
            checks_statistics=given.get(CHECK_STATISTICS, boolean, usual.checks_statistics),
        )
