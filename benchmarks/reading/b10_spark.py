"""B10: what a table costs a Spark job, against the same rows into a folder of Parquet files."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tidegate
import tidegate.spark
from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_least
from benchmarks.rig.processes import cpu_seconds
from benchmarks.rig.world import World

_FLOOR = at_least(0.9)
_TABLE = "main.bench.rows"
_PARQUET, _APPEND, _IDENTITY, _SOURCE = "parquet", "append", "identity", "source"
_NOWHERE = "identity, written nowhere"
_NOTE = (
    "The rows are read from Parquet: a bigint, an int, a double, a float, two strings, a timestamp "
    "and a date. Spark has two threads. The identity `mapInArrow` sends them to Python workers and "
    "back and Spark writes them (`alone`: they are thrown away then); the data source writes them "
    "in the workers. One write of each kind goes before those that count."
)


def run(world: World, scale: Scale) -> Result:
    rows = scale.pick(quick=100_000, full=4_000_000)
    with _session(world) as spark, tidegate.connect(world.service.url) as lake:
        tidegate.spark.register(spark)
        frame = _frame(spark, world.new_folder() / "rows", rows)
        through = frame.mapInArrow(_identity, frame.schema)
        table = lake.create_table(_TABLE, schema=frame.schema)
        folder = world.new_folder() / "written"
        writes: dict[str, Callable[[], object]] = {
            _PARQUET: lambda: frame.write.parquet(str(folder)),
            _APPEND: lambda: table.append(frame),
            _IDENTITY: lambda: through.write.parquet(str(folder)),
            _SOURCE: lambda: _through_source(frame, world),
            _NOWHERE: lambda: through.write.format("noop").mode("overwrite").save(),
        }
        turns = _Turns(list(writes))
        for turn in range(scale.runs + 1):
            for name, write in writes.items():
                turns.measure(name, write, world, counts=turn > 0)
                shutil.rmtree(folder, ignore_errors=True)
        found, written = table.read(spark).count(), 2 * rows * (scale.runs + 1)
    if found != written:
        raise RuntimeError(f"expected {written} rows in the table, found {found}")
    return Result(
        figures=(
            turns.figure("table.append", _APPEND, _PARQUET, rows),
            turns.figure("format(tidegate), against its limit", _SOURCE, _IDENTITY, rows),
            turns.figure(
                "format(tidegate), against mapInArrow alone", _SOURCE, _NOWHERE, rows, floor=False
            ),
            turns.figure("format(tidegate), against parquet", _SOURCE, _PARQUET, rows, floor=False),
            turns.figure("the limit, against parquet", _IDENTITY, _PARQUET, rows, floor=False),
        ),
        notes=(_NOTE,),
    )


class _Turns:
    """Seconds of each kind of write, and CPU seconds of Spark with its workers."""

    def __init__(self, names: list[str]) -> None:
        self._seconds: dict[str, list[float]] = {name: [] for name in names}
        self._cpu: dict[str, list[float]] = {name: [] for name in names}

    def measure(
        self, name: str, write: Callable[[], object], world: World, *, counts: bool
    ) -> None:
        started, cpu = time.perf_counter(), _spark_cpu_seconds(world)
        write()
        seconds = time.perf_counter() - started
        if counts:
            self._seconds[name].append(seconds)
            self._cpu[name].append(_spark_cpu_seconds(world) - cpu)

    def figure(
        self, name: str, measured: str, against: str, rows: int, *, floor: bool = True
    ) -> Figure:
        pairs = zip(self._seconds[measured], self._seconds[against], strict=True)
        return Figure(
            name=name,
            unit="rows/s",
            pairs=tuple(Pair(measured=rows / ours, against=rows / other) for ours, other in pairs),
            floor=_FLOOR if floor else None,
            profile={
                "CPU µs a row, measured": 1e6 * median(self._cpu[measured]) / rows,
                "CPU µs a row, against": 1e6 * median(self._cpu[against]) / rows,
            },
        )


def _spark_cpu_seconds(world: World) -> float:
    """Of this process and all below it but the service and Postgres."""
    return cpu_seconds(os.getpid()) - world.service.cpu_seconds() - world.postgres_cpu_seconds()


@contextmanager
def _session(world: World) -> Iterator[SparkSession]:
    # Spark's workers are to have the same packages as the bench.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("tidegate-bench")
        .config("spark.driver.memory", "3g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(world.new_folder()))
        .config("spark.local.dir", str(world.new_folder()))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


def _frame(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    number = F.col("id")
    made = spark.range(rows, numPartitions=4).select(
        "id",
        (number % 12 + 1).cast("int").alias("month"),
        (F.rand(1) * 1000).alias("distance"),
        (F.rand(2) * 500).cast("float").alias("delay"),
        F.concat(F.lit("N"), (F.hash("id") % 5000).cast("string")).alias("tail"),
        F.concat(F.lit("carrier-"), (number % 16).cast("string")).alias("carrier"),
        F.timestamp_seconds(number + 1_700_000_000).alias("at"),
        F.date_add(F.lit("2020-01-01").cast("date"), (number % 1500).cast("int")).alias("day"),
    )
    made.write.parquet(str(folder))
    return spark.read.parquet(str(folder))


def _through_source(frame: DataFrame, world: World) -> None:
    writer = frame.write.format("tidegate").option("url", world.service.url)
    writer.mode("append").save(_TABLE)


def _identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


BENCH = Bench(
    id="b10",
    title="Spark",
    measured='rows/s of table.append(df) and of df.write.format("tidegate")',
    against="df.write.parquet of the same frame; for the data source the same with an identity "
    "mapInArrow before it, which is its limit",
    run=run,
)
