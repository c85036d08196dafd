"""What a session says of writes, where their options do not."""

import pytest

from tests.spark.tables import actions
from tidegate.spark.session_settings import settings_of, with_session


@pytest.fixture
def table(spark, create):
    table = create("a int, p int", "p")
    table.append(spark.sql("SELECT * FROM VALUES (1, 1), (2, 2) AS t(a, p)"))
    return table


def test_the_history_has_its_text(session, table):
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", "nightly")
    table.append(session.sql("SELECT 3 a, 3 p"))
    table.append(session.sql("SELECT 3 a, 3 p"), user_metadata="by hand")
    found = [commit.user_metadata for commit in table.history(limit=2)]
    assert found == ["by hand", "nightly"]


def test_rows_are_sorted_into_few_files(session, table):
    many = session.range(0, 40, 1, 8).selectExpr("CAST(id AS INT) a", "CAST(id % 2 AS INT) p")
    receipt = table.append(many)
    assert len(actions(table, receipt.version, "add")) == 16
    session.conf.set("spark.databricks.delta.optimizeWrite.enabled", "true")
    receipt = table.append(many)
    assert len(actions(table, receipt.version, "add")) == 2
    receipt = table.append(many, optimizeWrite=False)
    assert len(actions(table, receipt.version, "add")) == 16


def test_only_an_overwrite_that_says_nothing_else_takes_the_mode(session):
    session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    mode = {"partitionOverwriteMode": "dynamic"}
    settings = settings_of(session)
    assert with_session({}, settings, is_overwrite=True).items() >= mode.items()
    found = with_session({"overwriteSchema": "false"}, settings, is_overwrite=True)
    assert found.items() >= mode.items()
    for options, where in [({"overwriteSchema": True}, None), ({}, "p = 1")]:
        found = with_session(options, settings, is_overwrite=True, replace_where=where)
        assert "partitionOverwriteMode" not in found
    assert "partitionOverwriteMode" not in with_session({}, settings)


def test_a_rewrite_merges_no_columns(session):
    session.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    assert "mergeSchema" not in with_session({"dataChange": "false"}, settings_of(session))
