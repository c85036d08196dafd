"""Writes that land once by an application's version, and rewrites that change no data."""

import pytest
from pyspark.errors import PySparkException

from tidegate import InvalidRequest

LARGEST = 2**63 - 1


class TestApplicationVersions:
    @pytest.mark.parametrize(
        "version", [-1, "-1", "+1", "1_0", " 1", "1.0", "\u0663", "", True, LARGEST + 1, "9" * 5000]
    )
    def test_what_is_none_is_refused(self, spark, create, version):
        table = create("id bigint")
        for write in (table.append, table.overwrite):
            for given in ({"txn": ("a", version)}, {"txnAppId": "a", "txnVersion": version}):
                with pytest.raises(InvalidRequest, match=f"from 0 to {LARGEST} as option txnV"):
                    write(spark.range(1), **given)
        assert table.version == 0

    @pytest.mark.parametrize("version", [0, "000", "007", LARGEST])
    def test_the_others_land(self, spark, create, version):
        table = create("id bigint")
        assert table.append(spark.range(1), txn=("a", version)) is not None
        assert table.txn_version("a") == int(version)

    def test_an_application_has_an_id(self, spark, create):
        table = create("id bigint")
        for given in ({"txn": ("", 1)}, {"txnAppId": "", "txnVersion": 1}):
            with pytest.raises(InvalidRequest, match="id as txnAppId, found an empty one"):
                table.append(spark.range(1), **given)
        with pytest.raises(InvalidRequest, match="id as app_id, found an empty one"):
            table.sink(app_id="")
        assert table.version == 0

    @pytest.mark.parametrize(("app_id", "version"), [("a", "-1"), ("", "1")])
    def test_the_data_source_refuses_them_too(self, session, create, source, app_id, version):
        table = create("id bigint")
        with pytest.raises(PySparkException, match=r"as (option )?txn"):
            source.write(session.range(1), table, txnAppId=app_id, txnVersion=version)
        assert table.version == 0


class TestRewrites:
    def test_outside_of_a_transaction_there_are_none(self, spark, create):
        table = create("id bigint")
        table.append(spark.range(3))
        with pytest.raises(InvalidRequest, match=r"with t\.transaction\(\) as txn: t\.overwrite"):
            table.overwrite(table.read(spark), dataChange=False)
        assert table.version == 1

    def test_nor_by_the_data_source(self, session, create, source):
        table = create("id bigint")
        source.write(session.range(3), table)
        with pytest.raises(PySparkException, match=r"expected Table\.overwrite with transaction="):
            source.write(session.range(3), table, "overwrite", dataChange="false")
        assert table.version == 1


def test_nothing_over_nothing_commits_what_the_transaction_holds(spark, create):
    table = create("id bigint")
    with table.transaction() as txn:
        assert table.overwrite(spark.range(0), transaction=txn) is None
    with table.transaction() as txn:
        txn.set_transaction("etl", 4)
        assert table.overwrite(spark.range(0), transaction=txn) is not None
    assert (table.version, table.txn_version("etl")) == (1, 4)
