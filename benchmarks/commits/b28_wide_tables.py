"""B28: commands on tables of many columns, beside stock Delta Spark's."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

import tidegate
from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_most
from benchmarks.rig.world import World
from tests.interop.processes.foreign_spark import ForeignSpark, foreign_spark

_FLOOR = at_most(1.5)
_ROWS = 1_000
_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
}
"""Of both sessions."""
_NOTE = (
    f"The table has a key and columns of INT, and {_ROWS:,} rows. The MERGE takes as many, of "
    "which half match, by UPDATE * and INSERT *; UPDATE sets one column of one row, and DELETE "
    "takes one row. Both sides have two threads and Spark's usual compiler. One turn goes before "
    "those that count. Stock Delta is the newest release on the Spark that it is built for."
)
Command = Callable[[int], object]


def run(world: World, scale: Scale) -> Result:
    figures: list[Figure] = []
    with (
        _stock(world) as stock,
        _session(world) as spark,
        tidegate.connect(world.service.url) as lake,
    ):
        for width in scale.pick(quick=(100,), full=(300, 1_000)):
            ours = _ours(lake, spark, width)
            theirs = _theirs(stock, f"{world.new_folder()}/stock", width)
            for name, command in ours.items():
                figures.append(
                    _figure(f"{name}, {width:,} columns", width, scale, command, theirs[name])
                )
    return Result(figures=tuple(figures), notes=(_NOTE,))


def _figure(name: str, width: int, scale: Scale, ours: Command, theirs: Command) -> Figure:
    pairs = []
    for turn in range(scale.runs + 1):
        measured, against = (_seconds(command, turn) for command in (ours, theirs))
        if turn:
            pairs.append(Pair(measured=measured, against=against))
    return Figure(name=name, unit="s", pairs=tuple(pairs), floor=_FLOOR, at=float(width))


def _seconds(command: Command, turn: int) -> float:
    started = time.perf_counter()
    command(turn)
    return time.perf_counter() - started


def _ours(lake: tidegate.Lake, spark: SparkSession, width: int) -> dict[str, Command]:
    fields = [
        StructField("id", LongType()),
        *(StructField(n, IntegerType()) for n in _names(width)),
    ]
    table = lake.create_table(f"main.bench.wide_{width}", schema=StructType(fields))
    table.append(_rows(spark, 0, width))

    def merge(turn: int) -> object:
        source = _rows(spark, _ROWS // 2 * (turn + 1), width).alias("s")
        merging = table.merge(source, "t.id = s.id", alias="t")
        return merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    return {
        "MERGE": merge,
        "UPDATE": lambda turn: table.update({"c1": "c1 + 1"}, f"id = {turn}", spark=spark),
        "DELETE": lambda turn: table.delete(f"id = {turn}", spark=spark),
    }


def _theirs(stock: ForeignSpark, place: str, width: int) -> dict[str, Command]:
    table = f"delta.`{place}`"

    def rows(first: int) -> str:
        return f"SELECT {', '.join(_values(width))} FROM range({first}, {first + _ROWS})"

    def merge(turn: int) -> object:
        return stock.run(
            f"MERGE INTO {table} t USING ({rows(_ROWS // 2 * (turn + 1))}) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    stock.run(f"CREATE TABLE {table} USING delta AS {rows(0)}")
    return {
        "MERGE": merge,
        "UPDATE": lambda turn: stock.run(f"UPDATE {table} SET c1 = c1 + 1 WHERE id = {turn}"),
        "DELETE": lambda turn: stock.run(f"DELETE FROM {table} WHERE id = {turn}"),
    }


def _names(width: int) -> Sequence[str]:
    return [f"c{number}" for number in range(width)]


def _values(width: int) -> list[str]:
    return [
        "id",
        *(f"CAST(id % 1000 + {n} AS INT) AS {name}" for n, name in enumerate(_names(width))),
    ]


def _rows(spark: SparkSession, first: int, width: int) -> DataFrame:
    return spark.range(first, first + _ROWS).selectExpr(*_values(width))


@contextmanager
def _stock(world: World) -> Iterator[ForeignSpark]:
    try:
        with foreign_spark(world.new_folder(), _SETTINGS) as stock:
            yield stock
    except pytest.skip.Exception as missing:
        # Which ends a run of pytest's test, and no bench.
        raise RuntimeError(str(missing)) from missing


@contextmanager
def _session(world: World) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("tidegate-bench")
    settings = {
        **_SETTINGS,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(world.new_folder()),
        "spark.local.dir": str(world.new_folder()),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        yield session
    finally:
        session.stop()


BENCH = Bench(
    id="b28",
    title="commands on wide tables",
    measured="seconds of table.merge, table.update and table.delete",
    against="the same by SQL of stock Delta Spark on a table of its own",
    run=run,
)
