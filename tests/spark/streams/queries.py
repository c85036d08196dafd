"""Streaming queries of tests: what they read, and what a driver that died left of them."""

import os
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery


class Stream:
    """A stream over files of rows, and the checkpoint of its query."""

    def __init__(self, spark: SparkSession, folder: Path, ddl: str) -> None:
        self._spark = spark
        self._input = folder / "in"
        self._input.mkdir(parents=True)
        self.checkpoint = folder / "checkpoint"
        self.df = (
            spark.readStream.schema(ddl).option("maxFilesPerTrigger", 1).json(str(self._input))
        )
        self._number = 0

    def feed(self, *rows: str) -> None:
        """Put a file of JSON rows there, which is a batch."""
        self._number += 1
        hidden = self._input / f"_{self._number:03d}"
        hidden.write_text("\n".join(rows))
        # Spark takes files by their times, which of two in one millisecond may be equal.
        os.utime(hidden, (self._number, self._number))
        hidden.rename(self._input / f"{self._number:03d}.json")

    def run(
        self, sink: Callable[[DataStreamWriter], DataStreamWriter], df: DataFrame | None = None
    ) -> StreamingQuery:
        """Run the query over all that is there, to its end. Raises what it failed of."""
        writer = sink((self.df if df is None else df).writeStream)
        query = (
            writer.option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    def forget_end_of_last_batch(self) -> None:
        """Leave the checkpoint as a driver leaves it that dies between the commit of a batch and
        the note that the batch is done."""
        commits = self.checkpoint / "commits"
        last = max((p for p in commits.iterdir() if p.name.isdecimal()), key=lambda p: int(p.name))
        last.unlink()
        (commits / f".{last.name}.crc").unlink(missing_ok=True)
