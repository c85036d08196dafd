"""PySpark's log of failing queries has the caller's own, and none of ours."""

import logging

import pytest
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

import tidegate
from tidegate import InvalidRequest
from tidegate.spark import InvalidCommand


@pytest.fixture
def logged():
    """The messages that PySpark writes to standard error meanwhile."""
    found: list[str] = []

    class Listed(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    handler = Listed()
    loggers = [PySparkLogger.getLogger(f"{of}QueryContextLogger") for of in ("SQL", "DataFrame")]
    for logger in loggers:
        logger.addHandler(handler)
    yield found
    for logger in loggers:
        logger.removeHandler(handler)


def test_calls_that_succeed_log_nothing(spark, months, logged):
    rows = spark.sql("SELECT 10 AS a, 1 AS month")
    months.overwrite(rows, replace_where="a = 10")
    months.overwrite(rows, replace_where="month = 1")
    months.overwrite(rows, replace_where="1 = 1")
    months.update({"a": "a + 1"}, "month = 1", spark=spark)
    assert months.delete("a = 11", spark=spark).deleted == 1
    assert logged == []


def test_nor_do_refusals(spark, lake, months, logged):
    rows = spark.sql("SELECT 10 AS a, 1 AS month")
    with pytest.raises(InvalidRequest):
        months.overwrite(rows, replace_where="nothing = 1")
    with pytest.raises(InvalidRequest):
        months.read(spark, "nothing = 1")
    with pytest.raises(InvalidCommand):
        months.delete("nothing = 1", spark=spark)
    with pytest.raises(InvalidCommand):
        months.update({"a": "nothing"}, spark=spark)
    with pytest.raises(InvalidCommand):
        months.merge(rows, "nothing = a").whenMatchedDelete().execute()
    with pytest.raises(InvalidCommand):
        tidegate.sql(spark, f"DELETE FROM {months.name} WHERE nothing", lake=lake)
    assert logged == []


def test_the_callers_own_queries_do(spark, logged):
    with pytest.raises(AnalysisException):
        spark.sql("SELECT nothing")
    assert len(logged) == 1
    assert "`nothing`" in logged[0]
