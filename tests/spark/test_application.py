"""The service learns which Spark application is at work."""

import pytest

from tidegate import connect
from tidegate.spark import UnsupportedSession
from tidegate.spark.application import application_id, table_of

ATTEMPTS = "spark.databricks.delta.maxCommitAttempts"


def tags(table):
    return table.history(limit=1)[0].tags


def test_both_roads_name_the_application_in_the_history(spark, create, source):
    table = create("id bigint")
    mine = {"spark.app.id": spark.sparkContext.applicationId}
    table.append(spark.range(1))
    assert tags(table).items() >= mine.items()
    table.overwrite(spark.range(2))
    assert tags(table).items() >= mine.items()
    source.write(spark.range(3), table)
    assert (table.version, tags(table).items() >= mine.items()) == (3, True)


def test_what_no_header_carries_is_replaced(session):
    session.conf.set("spark.app.id", "my app/ä\r\nX: 1" + "x" * 200)
    found = application_id(session)
    assert found.startswith("my_app____X__1xx")
    assert len(found) == 128


@pytest.mark.parametrize("given", ["app-20240101-0001", "local-1700000000000"])
def test_what_one_does_is_kept(session, given):
    session.conf.set("spark.app.id", given)
    assert application_id(session) == given


def attempts(table, session) -> int | None:
    return table_of(table, session).connection.policy.commit_attempts


def test_the_session_says_how_often_a_commit_is_tried(session, create, lake):
    table = create("id bigint")
    assert attempts(table, session) is None
    session.conf.set(ATTEMPTS, "3")
    assert attempts(table, session) == 3
    assert table.connection.policy.commit_attempts is None, "it is the session's, not the lake's"
    assert table.append(session.range(1)).version == 1
    with connect(lake.url, max_commit_attempts=7) as told:
        assert attempts(told.table(table.id), session) == 7


@pytest.mark.parametrize("given", ["0", "many"])
def test_a_number_of_attempts_that_is_none_is_refused(session, create, given):
    table = create("id bigint")
    session.conf.set(ATTEMPTS, given)
    with pytest.raises(UnsupportedSession, match="a whole number of at least 1"):
        table.append(session.range(1))
