"""What Spark's UI and the log say of a command that is at work."""

import logging

import pytest

from tests.spark.tables import rows


def described(spark) -> set[str]:
    """What the jobs so far are called."""
    jobs = spark._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(i).description() for i in range(jobs.size())]
    return {each.get() for each in found if each.isDefined()}


@pytest.fixture
def mine(spark):
    """Jobs of the caller's own have a description."""
    spark.sparkContext.setJobDescription("nightly")
    yield "nightly"
    spark.sparkContext.setLocalProperty("spark.job.description", None)


def test_each_pass_is_named_with_its_files(spark, months, mine, caplog):
    caplog.set_level(logging.INFO, logger="tidegate.spark")
    months.delete("a = 10")
    months.update({"a": "a + 1"}, "a = 11")
    source = spark.sql("SELECT 21 AS a, 2 AS month").alias("s")
    months.merge(source, "t.a = s.a", alias="t").whenMatchedDelete().execute()
    expected = {
        f"{operation} of {months.name}: {what}"
        for operation, passes in {
            "DELETE": ("looking for rows in 1 files", "writing rows of 1 of 1 files"),
            "UPDATE": ("looking for rows in 1 files", "writing rows of 1 of 1 files"),
            "MERGE": ("looking for rows in 1 files", "writing rows of 1 of 1 files"),
        }.items()
        for what in passes
    }
    assert expected <= described(spark)
    assert expected <= set(caplog.messages)


def test_the_callers_own_description_is_there_again(spark, months, mine):
    months.delete("a = 10")
    assert rows(months.read(spark)) == [(11, 1), (20, 2), (21, 2)]
    assert spark.sparkContext.getLocalProperty("spark.job.description") == mine
    with pytest.raises(Exception, match="nothing"):
        months.delete("nothing = 1")
    assert spark.sparkContext.getLocalProperty("spark.job.description") == mine
