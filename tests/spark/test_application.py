"""The service learns which Spark application is at work."""

import pytest

from tidegate.spark.application import application_id


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
