"""Spark's Java classes, loaded once and kept: `python -m demo.classes`.

Loading and checking them is half of what a session takes to start, and the demo starts five on few
cores. `scripts/setup` runs this.
"""

import tempfile
from pathlib import Path

from pyspark import SparkContext

from demo.spark import ARCHIVE, session

EXIT_S = 300.0


def main() -> None:
    """Run what the demo's writers have Spark do, and keep the classes that were loaded for it."""
    if ARCHIVE.exists():
        return
    part = ARCHIVE.with_suffix(".part")
    part.unlink(missing_ok=True)
    spark = session("classes", cores=1, further_java=(f'"-XX:ArchiveClassesAtExit={part}"',))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows")
        rows = spark.range(1000).selectExpr("id", "id % 3 AS p", "string(id) AS name")
        rows.write.partitionBy("p").parquet(path)
        read = spark.read.parquet(path)
        read.where(read["p"] == 1).drop("p").write.parquet(f"{path}-again")
        assert len(read.toPandas()) == 1000
    gateway = SparkContext._gateway
    assert gateway is not None
    spark.stop()
    gateway.shutdown()
    # Java writes the archive as it ends, which it does when its input ends.
    gateway.proc.stdin.close()
    gateway.proc.wait(EXIT_S)
    part.rename(ARCHIVE)


if __name__ == "__main__":
    main()
