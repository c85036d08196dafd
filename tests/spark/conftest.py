"""One Spark session for all tests, and tables of the real service for those that need one."""

import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from demo.jars import JarsUnavailable, hadoop_aws
from demo.s3_server import S3Server
from demo.spark import ARCHIVE
from tests.maven import jars
from tests.servers.postgres import cloned
from tests.service.serving import running
from tests.spark.s3 import configure, settings_of
from tests.spark.tables import folder_of
from tidegate import Lake, Table, connect
from tidegate.spark import register
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.settings import Settings

CreateTable = Callable[..., Table]
CopyTable = Callable[[Callable[[], Table]], Table]
LOOKED_UP = ("PythonUtils", "SerDeUtil", "functions", "org.apache.spark.sql.functions", "py4j")
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """A local session that gives a failed task one more attempt; its time zone is UTC.

    It has the jars for S3 where a test of this run asks for them and they can be had.
    """
    folder = tmp_path_factory.mktemp("spark")
    class_path = _class_path(request.session.items)
    # The archive is of Spark's own jars alone.
    archive = f' "-XX:SharedArchiveFile={ARCHIVE}"' if ARCHIVE.exists() and not class_path else ""
    # Spark's workers are to have the same packages as the tests.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2,2]")
        .appName("tidegate-tests")
        .config("spark.driver.memory", "1g")
        # For jobs as short as these, the better compiler and collector cost more than they give.
        # What the compiler makes would be let go and made again in the room that it has usually.
        .config(
            "spark.driver.extraJavaOptions",
            "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=160m -XX:+UseSerialGC" + archive,
        )
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraClassPath", class_path)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        # Or else each call of a column asks the JVM again and again for the line that made it.
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        # Interop tests, the demo and the benches run compiled plans.
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    # PySpark looks classes up at each call of a column, and the JVM the short names in all of
    # Spark's jars: a tenth of what a command takes.
    classes = vars(session._jvm)
    classes |= {name: getattr(session._jvm, name) for name in LOOKED_UP}
    yield session
    session.stop()


def _class_path(tests: Sequence[pytest.Item]) -> str:
    if not any("s3_session" in getattr(test, "fixturenames", ()) for test in tests):
        return ""
    try:
        return os.pathsep.join(map(str, hadoop_aws()))
    except JarsUnavailable:
        # The tests that need them say so.
        return ""


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session for a test that changes its settings: they are put back afterwards.

    A further session would not do, because Spark looks for Python data sources in the first.
    """
    settings = spark._jsparkSession.conf()
    before = settings.getAllAsJava()
    yield spark
    # To fetch them takes as long as a query, and few tests change any.
    if settings.getAllAsJava().equals(before):
        return
    for name in spark.conf.getAll.keys() - set(before):
        spark.conf.unset(name)
    for name, value in dict(before).items():
        if spark.conf.get(name) != value:
            spark.conf.set(name, value)


@pytest.fixture
def table_folder(tmp_path: Path) -> Path:
    """A folder for a table's data files, with characters that URLs and patterns make much of."""
    folder = tmp_path / "a table [of] 100%"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def lake(
    postgres_server: EmbeddedPostgres,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lake]:
    """A client of one running service for all tests; each test has tables of its own."""
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(database_url=url, data_dir=tmp_path_factory.mktemp("lake"), port=0)
        with running(settings) as service, connect(service.url) as lake:
            yield lake


@pytest.fixture
def create(lake: Lake) -> CreateTable:
    """Create a table with the columns of a DDL text, under a name that nobody else has."""

    def create_table(ddl: str, *partition_by: str, **properties: str) -> Table:
        return lake.create_table(
            f"main.test.t{next(_numbers)}",
            schema=StructType.fromDDL(ddl),
            partition_by=partition_by,
            properties=properties,
        )

    return create_table


@pytest.fixture(scope="session")
def tables_to_copy() -> dict[str, Table]:
    """The tables that were made to be copied, by what made them."""
    return {}


@pytest.fixture
def copied(lake: Lake, tables_to_copy: dict[str, Table]) -> CopyTable:
    """Register a copy of the table that a function makes. Spark writes it for the first test alone.

    A copy has the files and the history of the table that was made, and its `metaData.id`.
    """

    def copy(make: Callable[[], Table]) -> Table:
        maker = f"{make.__module__}.{make.__qualname__}"
        if (made := tables_to_copy.get(maker)) is None:
            made = tables_to_copy[maker] = make()
        number = next(_numbers)
        location = f"{made.location}-{number}"
        folder = location.removeprefix("file://")
        shutil.copytree(folder_of(made), folder, ignore=_beside_commits)
        return lake.register_table(f"main.test.t{number}", location)

    return copy


def _beside_commits(folder: str, names: list[str]) -> list[str]:
    """What is in a log but commits: the service writes it by itself, maybe while it is copied."""
    is_log = Path(folder).name == "_delta_log"
    return [
        name
        for name in names
        if name.startswith(".tidegate-") or (is_log and not name.endswith(".json"))
    ]


class Source:
    """`format("tidegate")` of a session, with the service's address filled in."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self._spark = spark
        self._url = url

    def write(self, df: DataFrame, table: Table, mode: str = "append", **options: str) -> None:
        writer = df.write.format("tidegate").mode(mode).options(url=self._url, **options)
        writer.save(table.name)

    def read(self, table: Table, **options: str | int) -> DataFrame:
        reader = self._spark.read.format("tidegate").options(url=self._url, **options)
        return reader.load(table.name)


@pytest.fixture
def source(session: SparkSession, lake: Lake) -> Source:
    register(session)
    return Source(session, lake.url)


@pytest.fixture
def s3_session(session: SparkSession, s3_server: S3Server) -> SparkSession:
    """The session with the server's address and credentials; skips where it lacks the jars."""
    jars("hadoop-aws")
    configure(session, settings_of(s3_server))
    return session


@pytest.fixture
def s3_source(s3_session: SparkSession, s3_lake: Lake) -> Source:
    """`format("tidegate")` of the session on S3."""
    register(s3_session)
    return Source(s3_session, s3_lake.url)


@pytest.fixture(scope="session")
def s3_lake(
    postgres_server: EmbeddedPostgres,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
    s3_server: S3Server,
) -> Iterator[Lake]:
    """A client of one service whose warehouse is in the server's bucket."""
    with cloned(postgres_server.url, migrated_template) as url:
        settings = Settings(
            database_url=url,
            data_dir=tmp_path_factory.mktemp("lake"),
            port=0,
            warehouse=s3_server.new_prefix(),
            allowed_locations=(f"s3://{s3_server.bucket}",),
            storage_options=s3_server.storage_options,
        )
        with running(settings) as service, connect(service.url) as lake:
            yield lake
