"""Rows of the table itself through `format("tidegate")`. PySpark shows a source no plan: the option
`readVersion` says at which version they were read."""

import pytest
from pyspark.errors import PySparkException

from tests.spark.tables import rows


class TestOwnRows:
    @pytest.fixture
    def table(self, session, create):
        table = create("id bigint")
        table.append(session.range(0, 3, 1, 1))
        return table

    @pytest.mark.parametrize("mode", ["overwrite", "append"])
    def test_do_not_undo_what_landed_since(self, session, source, table, mode):
        old = source.read(table, version=1).selectExpr("id + 10 AS id")
        table.delete("id = 1", spark=session)
        with pytest.raises(PySparkException, match="Concurrent"):
            source.write(old, table, mode=mode, readVersion="1")
        assert rows(table.read(session)) == [(0,), (2,)]

    @pytest.mark.parametrize("mode", ["overwrite", "append"])
    def test_land_where_nothing_did(self, session, source, table, mode):
        old = source.read(table, version=1).selectExpr("id + 10 AS id")
        source.write(old, table, mode=mode, READVERSION="1")
        kept = [(0,), (1,), (2,)] if mode == "append" else []
        assert rows(table.read(session)) == [*kept, (10,), (11,), (12,)]
        (commit,) = table.history(limit=1)
        assert commit.is_blind_append is False

    def test_are_written_alone_by_the_option(self, session, source, table):
        with pytest.raises(PySparkException, match="readVersion is not for reading"):
            source.read(table, readVersion=1)
        with pytest.raises(PySparkException, match=r"VersionNotFound|does not exist"):
            source.write(session.range(1), table, readVersion="9")


def test_deltas_name_of_where_is_known(session, create, source):
    table = create("id bigint, p int", "p")
    table.append(session.sql("SELECT 1L id, 1 p UNION ALL SELECT 2L, 2"))
    df = session.sql("SELECT 3L id, 1 p")
    source.write(df, table, mode="overwrite", replaceWhere="p = 1")
    assert rows(table.read(session)) == [(2, 2), (3, 1)]
    with pytest.raises(PySparkException, match="where is not for appending"):
        source.write(df, table, replaceWhere="p = 1")
