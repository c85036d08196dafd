"""A session of stock Delta Spark on a table in an object store, with keys of its own: the service
gives none out."""

from collections.abc import Iterator

import pytest

from demo.s3_server import S3Server
from tests.interop.processes.foreign_spark import ForeignSpark
from tests.interop.stock_clients.catalog_session import catalog_session, connector
from tests.maven import jars
from tests.servers.postgres import cloned
from tests.service.serving import running
from tests.spark.s3 import settings_of
from tidegate import Lake, connect
from tidegate_service.settings import Settings

NAME = "main.stock.remote"


@pytest.fixture(scope="module")
def s3_lake(
    postgres_server, migrated_template, s3_server: S3Server, tmp_path_factory
) -> Iterator[Lake]:
    """A client of a service whose warehouse is in the server's bucket."""
    # Without it, nothing is started.
    connector()
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(
            database_url=url,
            data_dir=tmp_path_factory.mktemp("lake"),
            port=0,
            warehouse=s3_server.new_prefix(),
            storage_options=s3_server.storage_options,
        )
        with running(settings) as service, connect(service.url) as lake:
            yield lake


@pytest.fixture(scope="module")
def session(s3_lake: Lake, s3_server: S3Server, tmp_path_factory) -> Iterator[ForeignSpark]:
    hadoop = {f"spark.hadoop.{name}": value for name, value in settings_of(s3_server).items()}
    hadoop["spark.hadoop.fs.s3.impl"] = "org.apache.hadoop.fs.s3a.S3AFileSystem"
    folder = tmp_path_factory.mktemp("stock")
    with catalog_session(folder, s3_lake.url, hadoop, jars=tuple(jars("hadoop-aws"))) as session:
        yield session


def test_rows_are_written_changed_and_read_by_both(session, s3_lake):
    session.run(
        f"CREATE TABLE {NAME} (id BIGINT, x INT) USING delta "
        "TBLPROPERTIES ('delta.feature.catalogManaged' = 'supported')"
    )
    session.run(f"INSERT INTO {NAME} VALUES (1, 1), (2, 2)")
    session.run(f"UPDATE {NAME} SET x = 20 WHERE id = 2")
    session.run(f"DELETE FROM {NAME} WHERE id = 1")
    assert session.run(f"SELECT * FROM {NAME}") == [(2, 20)]
    table = s3_lake.table(NAME)
    with table.transaction() as txn:
        txn.remove(txn.filter_files())
        txn.commit("DELETE")
    assert session.run(f"SELECT * FROM {NAME}") == []
    session.run(f"INSERT INTO {NAME} VALUES (3, 3)")
    assert session.run(f"SELECT * FROM {NAME}") == [(3, 3)]
    assert [commit.operation for commit in table.history()][::-1] == [
        *("CREATE TABLE", "WRITE", "UPDATE", "DELETE", "DELETE", "WRITE")
    ]
    assert table.location.startswith("s3://")
