"""Tables on S3: Spark's own reader and writer, and the Python workers', on a real server.

The jars for s3a:// come from Maven Central; without them, these tests are skipped.
"""

import itertools
import warnings

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from tests.spark.s3 import UNCACHED, configure
from tests.spark.streams.queries import Stream
from tests.spark.tables import rows
from tidegate import ConflictError
from tidegate.spark import StorageError, register

_numbers = itertools.count(1)


@pytest.fixture
def create(s3_lake, s3_session):
    """Create a table with the columns of a DDL text, under a name that nobody else has."""

    def create_table(ddl, *partition_by, **options):
        name = f"main.s3.t{next(_numbers)}"
        schema = StructType.fromDDL(ddl)
        return s3_lake.create_table(name, schema=schema, partition_by=partition_by, **options)

    return create_table


@pytest.fixture
def bucket(s3_server):
    """The server as Arrow sees it, past Spark and the service."""
    return pafs.S3FileSystem(
        access_key=s3_server.access_key,
        secret_key=s3_server.secret_key,
        region=s3_server.region,
        endpoint_override=s3_server.endpoint,
    )


@pytest.fixture
def objects(bucket):
    """Every object in a table's location but the log's: paths relative to it."""

    def list_objects(table):
        root = table.location.removeprefix("s3://")
        selector = pafs.FileSelector(root, recursive=True, allow_not_found=True)
        found = bucket.get_file_info(selector)
        paths = {
            info.path.removeprefix(f"{root}/") for info in found if info.type is pafs.FileType.File
        }
        return {path for path in paths if not path.startswith("_delta_log/")}

    return list_objects


@pytest.fixture
def by_deltalake(s3_server):
    """The rows that deltalake finds by the log alone, and the files that it names."""

    def read(table):
        log = DeltaTable(table.location, storage_options=s3_server.storage_options)
        return log.to_pyarrow_table().to_pylist(), set(log.get_add_actions()["path"].to_pylist())

    return read


def copies(session):
    """How many files Hadoop has copied on the server, which is how it renames them."""
    path = session._jvm.org.apache.hadoop.fs.Path("s3a://tidegate/")
    system = path.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    return system.getStorageStatistics().getLong("files_copied") or 0


FLIGHTS = "SELECT * FROM VALUES (1, 5, 'a'), (2, 5, 'b'), (3, 6, null) AS t(id, month, `name`)"


class TestRoundTrip:
    def test_rows_come_back(self, s3_session, create, objects, by_deltalake):
        table = create("id int, month int, `name` string", "month")
        receipt = table.append(s3_session.sql(FLIGHTS))
        assert receipt.version == 1
        assert rows(table.read(s3_session)) == [(1, 5, "a"), (2, 5, "b"), (3, 6, None)]
        assert rows(table.read(s3_session, where="month = 6")) == [(3, 6, None)]
        alone, files = by_deltalake(table)
        assert sorted(row["id"] for row in alone) == [1, 2, 3]
        assert objects(table) == files

    def test_values_that_folders_escape_come_back(self, s3_session, create, by_deltalake):
        table = create("id int, p string, t timestamp", "p", "t")
        df = s3_session.sql(
            "SELECT 1 id, 'a b/ä%?#[x]' p, TIMESTAMP'2024-03-10 02:30:00.25' t UNION ALL "
            "SELECT 2, null, null UNION ALL SELECT 3, '+&=:', TIMESTAMP'1900-01-01 00:00:00'"
        )
        table.append(df)
        assert rows(table.read(s3_session)) == rows(df)
        alone, _ = by_deltalake(table)
        assert {row["id"]: row["p"] for row in alone} == {1: "a b/ä%?#[x]", 2: None, 3: "+&=:"}

    def test_nothing_is_copied(self, s3_session, create):
        table = create("id bigint, p bigint", "p")
        before = copies(s3_session)
        table.append(s3_session.range(1000).selectExpr("id", "id % 4 p").repartition(3))
        assert copies(s3_session) == before
        assert table.read(s3_session).count() == 1000

    def test_a_frame_that_is_written_again_is_computed_again(self, s3_session, create):
        table = create("id bigint, at timestamp")
        beat = s3_session.range(1).selectExpr("id", "current_timestamp() at")
        before = beat.collect()[0]["at"]
        for _ in range(2):
            table.append(beat)
        found = [row["at"] for row in table.read(s3_session).collect()]
        assert len({before, *found}) == 3

    def test_a_table_that_others_made_is_registered_and_written(
        self, s3_session, s3_lake, s3_server, by_deltalake
    ):
        location = s3_server.new_prefix()
        theirs = pa.table({"id": pa.array([1, 2], pa.int32()), "p": ["a", "b ä"]})
        options = s3_server.storage_options
        write_deltalake(location, theirs, partition_by=["p"], storage_options=options)
        table = s3_lake.register_table(f"main.s3.t{next(_numbers)}", location)
        receipt = table.append(s3_session.sql("SELECT 3 id, 'c' p"))
        assert receipt.version == 1
        write_deltalake(location, theirs.slice(0, 1), mode="append", storage_options=options)
        table.overwrite(s3_session.sql("SELECT 4 id, 'b ä' p"), replace_where="p = 'b ä'")
        assert rows(table.read(s3_session)) == [(1, "a"), (1, "a"), (3, "c"), (4, "b ä")]
        alone, _ = by_deltalake(table)
        assert sorted(row["id"] for row in alone) == [1, 1, 3, 4]


class TestFailures:
    def test_a_repeated_task_leaves_one_copy_of_its_rows(
        self, s3_session, create, objects, by_deltalake
    ):
        table = create("id bigint")
        df = s3_session.range(0, 1000, 1, 2).mapInArrow(
            lambda batches: failing(batches, attempts=1), "id bigint"
        )
        table.append(df)
        alone, files = by_deltalake(table)
        assert sorted(row["id"] for row in alone) == list(range(1000))
        assert objects(table) == files

    def test_a_job_that_fails_for_good_leaves_nothing(self, s3_session, create, objects):
        table = create("id bigint")
        df = s3_session.range(0, 1000, 1, 2).mapInArrow(
            lambda batches: failing(batches, attempts=9), "id bigint"
        )
        with pytest.raises(PySparkException, match="the task fails after its rows"):
            table.append(df)
        assert objects(table) == set()
        assert table.version == 0

    def test_the_files_of_a_lost_transaction_are_deleted(self, s3_session, create, objects):
        table = create("id int, p int", "p")
        table.append(s3_session.sql("SELECT 1 id, 1 p"))
        landed = objects(table)
        rival = s3_session.sql("SELECT 2 id, 1 p")
        transaction = table.transaction()
        table.append(rival)
        with pytest.raises(ConflictError):
            table.overwrite(rival, replace_where="p = 1", transaction=transaction)
        left = objects(table)
        assert landed < left
        assert len(left) == 2

    def test_without_the_sink_files_are_moved_and_the_caller_is_told(
        self, s3_session, create, objects, by_deltalake
    ):
        table = create("id bigint, p bigint", "p")
        s3_session.conf.set(
            "spark.sql.streaming.commitProtocolClass",
            "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol",
        )
        with pytest.warns(UserWarning, match="copied twice"):
            table.append(s3_session.range(100).selectExpr("id", "id % 2 p"))
        alone, files = by_deltalake(table)
        assert sorted(row["id"] for row in alone) == list(range(100))
        assert objects(table) == files

    def test_with_it_nobody_is_warned(self, s3_session, create):
        table = create("id bigint")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            table.append(s3_session.range(1))


def failing(batches, *, attempts, partition=1):
    """Pass rows on, then fail in the first attempts of the task of a partition."""
    yield from batches
    task = TaskContext.get()
    if task.partitionId() == partition and task.attemptNumber() < attempts:
        raise RuntimeError("the task fails after its rows")


class TestDataSource:
    def test_rows_come_back(self, s3_session, s3_source, create, objects, by_deltalake):
        table = create("id int, month int, `name` string", "month")
        s3_source.write(s3_session.sql(FLIGHTS), table)
        s3_source.write(s3_session.sql("SELECT 4 id, 7 month, 'z' `name`"), table, "overwrite")
        assert rows(s3_source.read(table)) == [(4, 7, "z")]
        assert rows(table.read(s3_session)) == [(4, 7, "z")]
        alone, files = by_deltalake(table)
        assert [row["id"] for row in alone] == [4]
        assert files < objects(table)

    def test_a_job_that_fails_leaves_nothing(self, s3_session, s3_source, create, objects):
        table = create("id bigint")
        # One task: what another one is still sending when the job is given up is left to VACUUM.
        df = s3_session.range(0, 100, 1, 1).mapInArrow(
            lambda batches: failing(batches, attempts=9, partition=0), "id bigint"
        )
        with pytest.raises(PySparkException, match="the task fails after its rows"):
            s3_source.write(df, table)
        assert objects(table) == set()

    def test_settings_are_those_of_the_last_registration(self, s3_session, s3_source, create):
        table = create("id bigint")
        configure(s3_session, {"fs.s3a.secret.key": "wrong"})
        s3_source.write(s3_session.range(1), table)
        register(s3_session)
        with pytest.raises(PySparkException, match="is not allowed to use it"):
            s3_source.write(s3_session.range(1), table)


class TestRefusals:
    def test_a_wrong_secret_is_a_matter_of_credentials(self, s3_session, create):
        table = create("id bigint")
        configure(s3_session, {**UNCACHED, "fs.s3a.secret.key": "wrong"})
        with pytest.raises(StorageError, match="is not allowed to use it") as refused:
            table.append(s3_session.range(1))
        assert "may list, read and write" in str(refused.value)
        assert "wrong" not in str(refused.value)
        with pytest.raises(StorageError, match="is not allowed to use it"):
            table.read(s3_session)
        assert refused.value.definite
        assert table.version == 0

    def test_no_credentials_are_missed(self, s3_session, create):
        table = create("id bigint")
        provider = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
        configure(s3_session, {**UNCACHED, "fs.s3a.aws.credentials.provider": provider})
        with pytest.raises(StorageError, match="has no credentials for it") as refused:
            table.append(s3_session.range(1))
        assert "spark.hadoop.fs.s3a.access.key" in str(refused.value)

    def test_an_endpoint_that_does_not_answer_is_named(self, s3_session, create):
        table = create("id bigint")
        configure(
            s3_session,
            {
                **UNCACHED,
                "fs.s3a.endpoint": "http://127.0.0.1:9",
                "fs.s3a.attempts.maximum": "1",
                "fs.s3a.retry.limit": "1",
            },
        )
        with pytest.raises(StorageError, match="cannot reach it"):
            table.append(s3_session.range(1))


@pytest.fixture
def stream(s3_session, tmp_path):
    return Stream(s3_session, tmp_path, "id bigint, month int")


@pytest.fixture(params=["format", "sink"])
def into(request, s3_lake, s3_source):
    """Either road of a stream into a table."""

    def road(table):
        if request.param == "sink":
            return lambda writer: writer.foreachBatch(table.sink())
        return lambda writer: writer.format("tidegate").options(url=s3_lake.url, path=table.name)

    return road


def test_batches_of_streams_land_once(create, stream, into, objects, by_deltalake):
    """In a batch of a stream, too, files are written by the sink that Spark's own streams use."""
    table = create("id bigint, month int", "month")
    stream.feed('{"id":1,"month":5}', '{"id":2,"month":6}')
    stream.run(into(table))
    stream.forget_end_of_last_batch()
    stream.feed('{"id":3,"month":5}')
    stream.run(into(table))
    found, files = by_deltalake(table)
    assert sorted(row["id"] for row in found) == [1, 2, 3]
    assert table.version == 2
    assert objects(table) == files


def test_a_transaction_writes_files_there(s3_session, create, objects, by_deltalake):
    table = create("id bigint")
    with table.transaction() as txn:
        with pytest.raises(PySparkException, match="no good"):
            txn.write_files(
                s3_session.range(3).selectExpr("if(id = 2, raise_error('no good'), id) AS id")
            )
        assert objects(table) == set()
        txn.add(txn.write_files(s3_session.range(6).coalesce(1), maxRecordsPerFile=4))
        txn.commit("WRITE")
    found, files = by_deltalake(table)
    assert sorted(row["id"] for row in found) == list(range(6))
    assert len(files) == 2
    assert objects(table) == files


def test_a_table_is_rearranged_there(s3_session, create, objects, by_deltalake):
    table = create("id int, month int, `name` string", "month")
    for _ in range(2):
        table.append(s3_session.sql(FLIGHTS))
    before = objects(table)
    table.optimize(spark=s3_session)
    found, files = by_deltalake(table)
    assert sorted(row["id"] for row in found) == [1, 1, 2, 2, 3, 3]
    assert len(files) == 2, "bins of both partitions were written at once"
    assert objects(table) == before | files
