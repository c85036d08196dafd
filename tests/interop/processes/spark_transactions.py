"""Run transactions of Delta's own, one JSON text a line: `spark_transactions.py JARS FOLDER`.

A line is a schedule: a folder, the lines of version 0 of a table there, what transaction A reads,
the lines of version 1, which B wins while A is open, and A's actions. The answer names the files
that Delta says A read, and the version that A landed as or the exception that Delta gave it. It
knows nothing of the repository that it lies in.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

jars, folder = sys.argv[1:]
# Delta prints what it does; only answers go to where they are read.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
settings = {
    "spark.jars": jars,
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.local.dir": folder,
    "spark.sql.warehouse.dir": f"{folder}/warehouse",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Tables are tiny and many: compiling a query takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
builder = SparkSession.builder.master("local[1]").appName("transactions")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
jvm: Any = spark._jvm
session: Any = spark._jsparkSession


def scala(values: list[Any]) -> Any:
    """A Scala Seq of them."""
    found = jvm.java.util.ArrayList()
    for value in values:
        found.add(value)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()


def listed(values: Any) -> list[Any]:
    """The values of a Scala Seq."""
    return list(jvm.scala.jdk.javaapi.CollectionConverters.asJava(values))


def module(name: str) -> Any:
    """A Scala object of Delta's."""
    return getattr(jvm, f"org.apache.spark.sql.delta.{name}$").__getattr__("MODULE$")


ACTION = module("actions.Action")


def operation_of(name: str) -> Any:
    if name == "TRUNCATE":
        return getattr(jvm, "org.apache.spark.sql.delta.DeltaOperations$Truncate")()
    assert name == "Manual Update"
    return module("DeltaOperations$ManualUpdate")


def put(table: Path, version: int, lines: list[Any]) -> None:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (log / f"{version:020}.json").write_text(text)


def run(schedule: dict[str, Any]) -> dict[str, Any]:
    table = Path(schedule["folder"])
    put(table, 0, schedule["start"])
    log = module("DeltaLog").forTable(session, str(table))
    txn = log.startTransaction()
    parser = session.sessionState().sqlParser()
    read = set(schedule["files"])
    for parts in schedule["predicates"]:
        scanned = txn.filterFiles(scala([parser.parseExpression(part) for part in parts]), False)
        read |= {file.path() for file in listed(scanned)}
    if schedule["files"]:
        live = txn.snapshot().allFiles().collect()
        txn.trackFilesRead(scala([file for file in live if file.path() in schedule["files"]]))
    if schedule["whole_table"]:
        txn.readWholeTable()
    for app_id in schedule["app_ids"]:
        txn.txnVersion(app_id)
    put(table, 1, schedule["winner"])
    actions = scala([ACTION.fromJson(json.dumps(line)) for line in schedule["actions"]])
    try:
        came = {"version": txn.commit(actions, operation_of(schedule["operation"]))}
    except Py4JJavaError as error:
        thrown = error.java_exception
        came = {"error": thrown.getClass().getSimpleName(), "detail": str(thrown.getMessage())}
    return {**came, "read": sorted(read)}


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), file=answers, flush=True)
