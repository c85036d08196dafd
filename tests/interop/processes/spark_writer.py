"""Run what comes in, one JSON value a line, in a Spark session with Delta: a text is an SQL
statement, an object a schedule of transactions (`spark_transactions.py`) or a stream of JSON files
into a table, up to the files that are there. `spark_writer.py JARS FOLDER SETTINGS`, the settings
as JSON. It knows nothing of the repository that it lies in."""

import importlib
import json
import os
import sys

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

jars, folder, more = sys.argv[1:]
# Delta prints what a VACUUM has done; only answers go to where they are read.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
os.environ["PYSPARK_PYTHON"] = sys.executable
settings = {
    "spark.jars": jars,
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    # What is compiled would be let go and compiled again in the room that it has usually.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m "
    "-XX:+UseSerialGC",
    "spark.local.dir": folder,
    "spark.sql.warehouse.dir": f"{folder}/warehouse",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    # Fifty, which is right for large tables, is most of the work for small ones.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    # For tables as small, to compile and to plan anew takes longer than to run.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    **json.loads(more),
}
builder = SparkSession.builder.master("local[1]").appName("foreign")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
# It lies beside this program, which is no part of a package.
transactions = importlib.import_module("spark_transactions").Transactions(spark)


def rows(asked):
    if isinstance(asked, str):
        return [list(row) for row in spark.sql(asked).collect()]
    read = spark.readStream.schema(asked["schema"]).option("maxFilesPerTrigger", 1)
    written = read.json(asked["folder"]).writeStream.format("delta").trigger(availableNow=True)
    written = written.option("checkpointLocation", asked["checkpoint"])
    written.toTable(asked["table"]).awaitTermination()
    return []


def answer_to(asked):
    if isinstance(asked, dict) and "winner" in asked:
        return {"came": transactions.run(asked)}
    return {"rows": rows(asked)}


for line in sys.stdin:
    try:
        answer = answer_to(json.loads(line))
    except (PySparkException, Py4JJavaError) as error:
        answer = {"error": str(error)}
    print(json.dumps(answer, default=str), file=answers, flush=True)
