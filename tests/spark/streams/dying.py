"""A driver of a streaming query that is killed, with its JVM, at a given step.

    python -m tests.spark.streams.dying URL TABLE FOLDER STEP

The folder is that of a `Stream`: it has its input, and takes its checkpoint.
"""

import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from demo.spark import java_options
from tidegate.lake import Lake
from tidegate.wire.connection import Connection
from tidegate.wire.exchange import Answer, Request
from tidegate.wire.flow import RetryPolicy
from tidegate.wire.transport import HttpTransport

STEPS = ("files written", "proposal taken", "batch done")
"""After each of them the driver dies: nothing was proposed, the answer was not heard, the end of
the batch was not noted by Spark."""


def die() -> None:
    """Kill the process group, as when a machine goes."""
    os.killpg(0, signal.SIGKILL)


class DyingTransport:
    """A transport over the real one that dies around the first proposal."""

    def __init__(self, url: str, step: str) -> None:
        self._real = HttpTransport(url, token=None)
        self._step = step

    def send(self, request: Request, *, timeout_s: float) -> Answer:
        is_proposal = request.path.endswith("/commits")
        if is_proposal and self._step == "files written":
            die()
        answer = self._real.send(request, timeout_s=timeout_s)
        if is_proposal and self._step == "proposal taken":
            die()
        return answer

    def close(self) -> None:
        self._real.close()


def main(url: str, name: str, folder: Path, step: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        # As in the session of the tests: it lives for one batch.
        .config("spark.driver.extraJavaOptions", " ".join(java_options({})))
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    lake = Lake(Connection(DyingTransport(url, step), policy=RetryPolicy()), url=url)
    sink = lake.table(name).sink()

    def batch(df, number):
        sink(df, number)
        die()

    df = spark.readStream.schema("id bigint, month int").json(str(folder / "in"))
    query = (
        df.writeStream.foreachBatch(batch)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
