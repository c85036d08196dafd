"""What a session writes under an application's id and a version of its own, by Delta's settings."""

import pytest

from tests.spark.streams.queries import Stream
from tests.spark.tables import actions, overtake, rows
from tidegate import ConflictError, InvalidRequest

APP_ID = "spark.databricks.delta.write.txnAppId"
VERSION = "spark.databricks.delta.write.txnVersion"
IS_RESET = f"{VERSION}.autoReset.enabled"
MONTHS = [(10, 1), (11, 1), (20, 2), (21, 2)]


@pytest.fixture
def named(session, months):
    """The session, once the table is made: what it writes is version 7 of the application etl."""
    session.conf.set(APP_ID, "etl")
    session.conf.set(VERSION, "7")
    return session


def add_one(spark, table, **options):
    return table.update({"a": "a + 1"}, "month = 1", spark=spark, **options)


def merge(spark, table):
    source = spark.sql("SELECT 1 AS month, 5 AS more").alias("s")
    merged = table.merge(source, "t.month = s.month", alias="t")
    return merged.whenMatchedUpdate(set={"a": "t.a + s.more"}).execute()


COMMANDS = {
    "update": add_one,
    "merge": merge,
    "delete": lambda spark, table: table.delete("a = 10", spark=spark),
    "append": lambda spark, table: table.append(spark.sql("SELECT 30 AS a, 3 AS month")),
    "insert": lambda spark, table: table.insert(spark, [["30", "3"]]),
    "overwrite": lambda spark, table: table.overwrite(
        spark.sql("SELECT 1 AS a, 1 AS month"), replace_where="month = 1"
    ),
    "replace": lambda spark, table: table.replace(spark.sql("SELECT 1 AS a")),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_done_once(named, months, command):
    run = COMMANDS[command]
    run(named, months)
    once = rows(months.read(named))
    assert once != MONTHS
    assert months.version == 2
    (txn,) = actions(months, 2, "txn")
    assert (txn["appId"], txn["version"]) == ("etl", 7)
    again = run(named, months)
    assert getattr(again, "receipt", again) is None
    assert rows(months.read(named)) == once
    assert months.version == 2


def test_the_next_one_is_done(named, months):
    row = named.sql("SELECT 30 AS a, 3 AS month")
    for version in ("7", "8"):
        named.conf.set(VERSION, version)
        months.append(row)
    assert months.version == 3


def test_what_a_write_says_itself_goes_first(named, months):
    row = named.sql("SELECT 30 AS a, 3 AS month")
    months.append(row, txn=("other", 7))
    months.append(row)
    assert months.append(row) is None
    assert rows(months.read(named)) == [*MONTHS, (30, 3), (30, 3)]


@pytest.mark.parametrize("missing", [APP_ID, VERSION])
def test_one_without_the_other_is_refused(named, months, missing):
    named.conf.unset(missing)
    for command in ("update", "append", "replace"):
        with pytest.raises(InvalidRequest, match="go together") as refused:
            COMMANDS[command](named, months)
        assert refused.value.error_class == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"
    assert months.version == 1


def test_the_version_is_forgotten_where_that_is_wanted(named, months):
    named.conf.set(IS_RESET, "true")
    for command in ("update", "append"):
        for _ in ("landed", "left out"):
            named.conf.set(VERSION, "7" if command == "update" else "8")
            COMMANDS[command](named, months)
            with pytest.raises(InvalidRequest, match="go together"):
                COMMANDS[command](named, months)
    assert months.version == 3


def test_who_runs_the_same_beside_it_is_a_conflict_and_then_found_done(named, lake, months):
    same, mine = lake.table(months.id), lake.table(months.id)
    overtake(mine, lambda: add_one(named, same))
    # The rival has landed before this one asks for what is recorded.
    assert add_one(named, mine).receipt is None
    named.conf.set(VERSION, "8")
    ask = lake.table(months.id)
    known = ask.txn_version

    def txn_version(app_id):
        found = known(app_id)
        add_one(named, same)
        return found

    ask.txn_version = txn_version
    with pytest.raises(ConflictError):
        add_one(named, ask)
    assert rows(months.read(named))[:2] == [(12, 1), (13, 1)]


def test_batches_of_streams_are_the_streams(named, months, tmp_path):
    stream = Stream(named, tmp_path, "a int, month int")
    for month in (5, 6):
        stream.feed(f'{{"a":1,"month":{month}}}')
    stream.run(lambda writer: writer.foreachBatch(months.sink()))
    assert rows(months.read(named).where("month > 4")) == [(1, 5), (1, 6)]


def test_a_new_table_of_rows_has_recorded_it(named, lake, months):
    name = f"{months.name}_copy"
    row = named.sql("SELECT 30 AS a, 3 AS month")
    made = lake.create_table(name, as_select=row)
    (txn,) = actions(made, 0, "txn")
    assert (txn["appId"], txn["version"]) == ("etl", 7)
    assert made.append(row) is None
    named.conf.set(IS_RESET, "true")
    named.conf.set(VERSION, "8")
    lake.create_table(f"{name}_2", as_select=row)
    assert named.conf.get(VERSION, None) is None
    with pytest.raises(InvalidRequest, match="go together"):
        lake.create_table(f"{name}_3", as_select=row)
