"""`python -m demo [--keep] [--data-dir DIR] [--warehouse s3] [--engine duckdb]`: to `demo ok`."""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

import tidegate
from demo import duckdb_writer
from demo import service as services
from demo import warehouse as warehouses
from demo.flights import SLICE, Totals, differences, load, stage, totals
from demo.jars import JarsUnavailable, hadoop_aws
from demo.load import DUCKDB, ENGINES, SLICES, SPARK, WriterFailed
from demo.load import load as load_flights
from demo.race import race
from demo.s3_server import S3Server, S3ServerFailed
from demo.service import Service, ServiceFailed
from demo.spark import session
from demo.warehouse import Warehouse
from demo.writer import WRITERS

TABLE = "main.air.flights"
MONTH = 5

console = Console(highlight=False)
_started = time.monotonic()


def main() -> int:
    """0 where every copy of the data agrees, 1 where one differs or something failed."""
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the service and its data")
    parser.add_argument("--data-dir", type=Path, help="where to keep them (a temporary folder)")
    parser.add_argument(
        "--warehouse",
        choices=warehouses.KINDS,
        default="local",
        help="where the table lies; s3 is a server of the demo's own (local)",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=SPARK,
        help="the last writer: duckdb commits through Unity Catalog's API, to a catalog-managed "
        "table (spark)",
    )
    arguments = parser.parse_args()
    if arguments.engine == DUCKDB and arguments.warehouse != "local":
        parser.error("expected the local warehouse with the engine duckdb: it has no keys for s3")
    data_dir = Path(arguments.data_dir or tempfile.mkdtemp(prefix="tidegate-demo-")).absolute()
    data_dir.mkdir(parents=True, exist_ok=True)
    service = None
    s3 = ExitStack()
    # Told to end, it cleans up as it does for Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        warehouse = Warehouse()
        if arguments.warehouse == "s3":
            warehouse = s3_warehouse(s3, data_dir)
        say("starting the service, with a Postgres of its own")
        service = services.start(data_dir, warehouse.service)
        say(f"it is ready at {service.url}")
        return run(service, data_dir, warehouse, arguments.engine)
    except (ServiceFailed, S3ServerFailed, WriterFailed, tidegate.TidegateError) as error:
        console.print(f"demo failed: {error}", markup=False)
        return 1
    except JarsUnavailable as error:
        console.print(f"demo failed: Spark needs hadoop-aws for S3: {error}", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print("demo interrupted")
        return 130
    finally:
        if arguments.keep and service is not None:
            s3.pop_all()
        s3.close()
        end(service, data_dir, keep=arguments.keep, own_folder=arguments.data_dir is None)


def s3_warehouse(s3: ExitStack, data_dir: Path) -> Warehouse:
    """Start an S3 server, which ends with the stack. Raises `JarsUnavailable` before that."""
    hadoop_aws()
    folder = data_dir / "s3"
    folder.mkdir(exist_ok=True)
    server = s3.enter_context(S3Server(folder))
    say(f"an S3 server is up at {server.endpoint}, process {server.pid}")
    return warehouses.on_s3(server)


def run(service: Service, data_dir: Path, warehouse: Warehouse, engine: str) -> int:
    flights = load()
    expected = totals(flights)
    staged = stage(flights, data_dir, slices=SLICES)
    say(f"{expected.rows:,} flights are staged for {WRITERS} writers")
    spark = session("demo", cores=2)
    try:
        rows = spark.read.parquet(str(staged)).drop(SLICE)
        with tidegate.connect(service.url) as lake:
            table = lake.create_table(
                TABLE,
                schema=rows.schema,
                partition_by=["month"],
                catalog_managed=engine == DUCKDB,
            )
            jobs = f"{WRITERS} Spark jobs start"
            if engine == DUCKDB:
                jobs = f"{WRITERS - 1} Spark jobs and DuckDB start"
            say(f"{TABLE} is created; {jobs}, and append at once")
            commits = load_flights(service.url, TABLE, staged, data_dir, progress, engine=engine)
            say(f"{commits} appends have landed; two jobs overwrite month {MONTH} at once")
            race(table, rows.where(f"month = {MONTH}"), f"month = {MONTH}", say)
            console.print(versions(table))
            problems = compare(table, spark, expected, warehouse)
            if engine == DUCKDB:
                problems += compare_by_duckdb(service.url, expected)
            versions_count = table.version + 1
    finally:
        spark.stop()
    for problem in problems:
        console.print(f"differs: {problem}", markup=False)
    if problems:
        return 1
    console.print(f"demo ok: {expected.rows} rows, {versions_count} versions")
    return 0


def compare(
    table: tidegate.Table,
    spark: SparkSession,
    expected: Totals,
    warehouse: Warehouse,
) -> list[str]:
    """What differs from the source, read back through the service and, of a plain table, from the
    log alone."""
    through = totals(table.read(spark).toPandas())
    say(f"read back through the service: {through.rows:,} rows")
    problems = differences(through, expected, by="through the service")
    if table.head().catalog_managed:
        # deltalake opens none of these.
        return problems
    log = DeltaTable(table.location, storage_options=dict(warehouse.deltalake))
    alone = totals(log.to_pyarrow_table().to_pandas())
    say(f"read by deltalake from the log alone: {alone.rows:,} rows at version {log.version()}")
    problems += differences(alone, expected, by="by deltalake")
    if log.version() != table.version:
        problems.append(f"deltalake sees version {log.version()}, the service {table.version}")
    return problems


def compare_by_duckdb(url: str, expected: Totals) -> list[str]:
    found = totals(duckdb_writer.read(url, TABLE))
    say(f"read by DuckDB: {found.rows:,} rows")
    return differences(found, expected, by="by DuckDB")


def versions(table: tidegate.Table) -> Grid:
    grid = Grid("version", "operation", "writer", "rebased over", "duration", title=TABLE)
    for commit in sorted(table.history(), key=lambda commit: commit.version):
        grid.add_row(
            str(commit.version),
            commit.operation,
            commit.user_metadata or "",
            str(commit.rebased_over),
            f"{commit.metrics.duration_ms} ms",
        )
    return grid


def progress(writer: int, told: Mapping[str, Any]) -> None:
    if "ready" in told:
        what = "has its session"
    elif "version" in told:
        what = f"landed version {told['version']}"
    else:
        tries = told["tries"]
        what = f"(DuckDB) landed a commit, in {tries} {'try' if tries == 1 else 'tries'}"
    say(f"writer {writer + 1} {what}")


def say(what: str) -> None:
    console.print(f"{time.monotonic() - _started:6.1f} s  {what}", markup=False)


def end(service: Service | None, data_dir: Path, *, keep: bool, own_folder: bool) -> None:
    if service is not None and keep:
        console.print(f"the service stays up at {service.url}", markup=False)
        console.print(f"  docs      {service.url}/docs", markup=False)
        console.print(f"  table     {service.url}/api/v1/tables/{TABLE}", markup=False)
        console.print(f"  data      {data_dir}", markup=False)
        console.print(f"  stop it   kill {service.process.pid}", markup=False)
        return
    if service is not None:
        service.stop()
    if own_folder:
        shutil.rmtree(data_dir, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
