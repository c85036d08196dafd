"""Which streaming query a batch is of, as Spark's driver knows it."""

from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidegate.spark.storage.hadoop import JavaObject, java_class

QUERY_ID = "sql.streaming.queryId"
"""The local property in which Spark names the query to the jobs of its batches."""
_RUN_ID = "spark.jobGroup.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningQuery:
    """The query whose batch this thread works on: `id` stays with its checkpoint, `run` is another
    one at each start. `mode`, in lower case, and `plan`, the analyzed one, are None where this
    Spark does not show them."""

    id: str
    run: str | None
    mode: str | None
    plan: JavaObject | None

    @classmethod
    def of(cls, spark: SparkSession) -> "RunningQuery | None":
        """None outside of a batch, and for Spark Connect, which tells its clients nothing."""
        jvm: JavaObject = getattr(spark, "_jvm", None)
        if jvm is None:
            return None
        context = spark.sparkContext
        found = context.getLocalProperty(QUERY_ID)
        if not found:
            return None
        run = context.getLocalProperty(_RUN_ID)
        try:
            # Asked of what sessions share: the batch's session is a clone, with no queries.
            running = spark._jsparkSession.sharedState().activeStreamingQueries()
            query = running.get(java_class(jvm, "java.util.UUID").fromString(found))
            return cls(
                id=found,
                run=str(query.runId().toString()),
                mode=str(query.outputMode().toString()).lower(),
                plan=query.analyzedPlan(),
            )
        except (AttributeError, Py4JError, PySparkException):
            # Not of Spark's API, so that another Spark may not have it.
            return cls(id=found, run=run or None, mode=None, plan=None)
