"""What Spark's UI, the history and a terminal say of writes."""

import io
import threading
from functools import partial

import pytest

from tests.spark.streams.queries import Stream
from tests.spark.tables import rows
from tidegate import InvalidRequest
from tidegate.progress import progress
from tidegate.spark import InvalidRows
from tidegate.spark.jobs.passes import Passes

GROUP = "spark.jobGroup.id"
DESCRIPTION = "spark.job.description"
TIMES = ("executionTimeMs", "scanTimeMs", "rewriteTimeMs")


@pytest.fixture
def told(spark):
    """What the jobs since then are called, each with the group that it is in."""
    store = spark._jsc.sc().statusStore()

    def jobs() -> list[tuple[int, str | None, str | None]]:
        found = store.jobsList(None)
        return [
            (job.jobId(), *(each.get() if each.isDefined() else None for each in said))
            for job in (found.apply(place) for place in range(found.size()))
            for said in [(job.description(), job.jobGroup())]
        ]

    before = {number for number, *_ in jobs()}
    return lambda: {(what, group) for number, what, group in jobs() if number not in before}


@pytest.fixture
def mine(spark):
    """The thread has a group and a description of its own."""
    spark.sparkContext.setJobGroup("my-jobs", "nightly")
    yield "my-jobs", "nightly"
    for name in (GROUP, DESCRIPTION):
        spark.sparkContext.setLocalProperty(name, None)


def now(spark) -> tuple[str | None, str | None]:
    context = spark.sparkContext
    return context.getLocalProperty(GROUP), context.getLocalProperty(DESCRIPTION)


@pytest.fixture
def table(spark, create, copied):
    def make():
        table = create("id bigint, month int", "month")
        table.append(spark.sql("SELECT id, 5 AS month FROM range(4)"))
        return table

    return copied(make)


def row(spark, number: int = 2):
    return spark.sql(f"SELECT {number}L AS id, 5 AS month")


def test_writes_are_described_in_a_group_of_their_own(spark, table, told):
    before = now(spark)
    table.append(row(spark))
    table.overwrite(row(spark), replace_where="id = 2")
    found = told()
    assert {what for what, _ in found} == {
        f"WRITE of {table.name}: writing rows",
        f"WRITE of {table.name}: looking for rows in 2 files",
        f"WRITE of {table.name}: writing rows in the place of those in 2 files",
    }
    groups = {group for _, group in found}
    assert len(groups) == 2, "one for each of the writes"
    assert all(group.startswith("tidegate-") for group in groups)
    assert now(spark) == before


def test_a_group_of_the_callers_own_stays(spark, table, told, mine):
    table.append(row(spark))
    table.delete("id = 1")
    assert {group for _, group in told()} == {"my-jobs"}
    assert now(spark) == mine


def test_after_an_error_all_is_as_it_was(spark, create, table, mine):
    strict = create("id bigint NOT NULL")
    with pytest.raises(InvalidRows):
        strict.append(spark.sql("SELECT CAST(NULL AS BIGINT) AS id"))
    assert now(spark) == mine
    with pytest.raises(InvalidRequest):
        table.overwrite(row(spark), replace_where="nothing = 1")
    assert now(spark) == mine


def test_batches_of_a_stream_stay_in_the_group_of_their_query(session, table, tmp_path, told):
    stream = Stream(session, tmp_path, "id bigint, month int")
    stream.feed('{"id":1,"month":5}')
    query = stream.run(lambda writer: writer.foreachBatch(table.sink()))
    what = f"STREAMING UPDATE of {table.name}: writing rows of batch 0"
    assert (what, query.runId) in told()
    commit = table.history(limit=1)[0]
    assert commit.operation == "STREAMING UPDATE"
    assert set(TIMES) <= commit.operation_metrics.keys()


def test_the_history_tells_how_long_the_parts_took(spark, table):
    table.append(row(spark))
    table.overwrite(row(spark), replace_where="id = 2")
    for commit in table.history(limit=2):
        whole, scan, rewrite = (int(commit.operation_metrics[name]) for name in TIMES)
        assert whole >= rewrite > 0
        assert abs(whole - scan - rewrite) <= 1
    assert int(table.history(limit=2)[0].operation_metrics["scanTimeMs"]) > 0


def test_the_receipt_has_the_stats_of_the_commit(spark, table):
    stats = table.append(spark.sql("SELECT id, CAST(id AS INT) AS month FROM range(3)")).stats
    assert stats.num_add == stats.num_distinct_partitions_in_add == 3
    assert stats.num_files_total == table.head().num_files
    assert stats.txn_duration_ms >= stats.commit_duration_ms


def test_a_write_of_nothing_is_recorded_where_it_matters_what_was_read(spark, create):
    nothing = spark.range(0).selectExpr("id")
    assert create("id bigint").append(nothing) is None
    table = create("id bigint", **{"delta.isolationLevel": "WriteSerializable"})
    assert table.append(nothing).version == 1
    assert table.delete("id = 7").receipt.version == 2
    assert rows(table.read(spark)) == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_of_the_tasks(spark):
    seen = threading.Event()

    class Watched(Terminal):
        def write(self, text: str) -> int:
            if "of 2 tasks" in text:
                seen.set()
            return super().write(text)

    terminal = Watched()
    shown = partial(progress, stream=terminal, after_s=0.0, every_s=0.02)
    with Passes(spark, operation="WRITE", table="a.b.c", shown=shown) as passes:
        passes.writes_rows()
        slow = spark.range(0, 2, numPartitions=2).selectExpr(
            "java_method('java.lang.Thread', 'sleep', 300L)"
        )
        for _ in range(20):
            slow.write.format("noop").mode("overwrite").save()
            if seen.is_set():
                break
    assert seen.is_set()
    assert "\rWRITE of a.b.c: writing rows" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")
