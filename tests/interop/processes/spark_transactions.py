"""Transactions of Delta's own in the Spark session of `spark_writer.py`.

A schedule is a folder, the lines of version 0 of a table there, what transaction A reads,
the lines of version 1, which B wins while A is open, and A's actions. The answer names the files
that Delta says A read, and the version that A landed as or the exception that Delta gave it. It
knows nothing of the repository that it lies in.
"""

import json
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

# Lines that are put there have no checksum to go on from.
CHECKSUMS = "spark.databricks.delta.writeChecksumFile.enabled"


class Transactions:
    """What runs a schedule in a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._session: Any = spark._jsparkSession
        self._action = self._module("actions.Action")

    def run(self, schedule: dict[str, Any]) -> dict[str, Any]:
        """The answer to it."""
        self._spark.conf.set(CHECKSUMS, "false")
        try:
            return self._run(schedule)
        finally:
            self._spark.conf.unset(CHECKSUMS)

    def _run(self, schedule: dict[str, Any]) -> dict[str, Any]:
        table = Path(schedule["folder"])
        put(table, 0, schedule["start"])
        log = self._module("DeltaLog").forTable(self._session, str(table))
        txn = log.startTransaction()
        parser = self._session.sessionState().sqlParser()
        read = set(schedule["files"])
        for parts in schedule["predicates"]:
            parsed = self._scala([parser.parseExpression(part) for part in parts])
            read |= {file.path() for file in self._listed(txn.filterFiles(parsed, False))}
        if schedule["files"]:
            live = txn.snapshot().allFiles().collect()
            txn.trackFilesRead(self._scala([f for f in live if f.path() in schedule["files"]]))
        if schedule["whole_table"]:
            txn.readWholeTable()
        for app_id in schedule["app_ids"]:
            txn.txnVersion(app_id)
        put(table, 1, schedule["winner"])
        lines = [json.dumps(line) for line in schedule["actions"]]
        actions = self._scala([self._action.fromJson(line) for line in lines])
        try:
            came = {"version": txn.commit(actions, self._operation(schedule["operation"]))}
        except Py4JJavaError as error:
            thrown = error.java_exception
            came = {"error": thrown.getClass().getSimpleName(), "detail": str(thrown.getMessage())}
        return {**came, "read": sorted(read)}

    def _scala(self, values: list[Any]) -> Any:
        """A Scala Seq of them."""
        found = self._jvm.java.util.ArrayList()
        for value in values:
            found.add(value)
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()

    def _listed(self, values: Any) -> list[Any]:
        """The values of a Scala Seq."""
        return list(self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(values))

    def _module(self, name: str) -> Any:
        """A Scala object of Delta's."""
        return getattr(self._jvm, f"org.apache.spark.sql.delta.{name}$").__getattr__("MODULE$")

    def _operation(self, name: str) -> Any:
        if name == "TRUNCATE":
            return getattr(self._jvm, "org.apache.spark.sql.delta.DeltaOperations$Truncate")()
        assert name == "Manual Update"
        return self._module("DeltaOperations$ManualUpdate")


def put(table: Path, version: int, lines: list[Any]) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (log / f"{version:020}.json").write_text(text)
