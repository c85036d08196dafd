"""A real Postgres for tests: one server a session, a database of its own for every test.

`database_url` is a fresh clone of a template that holds the migrated schema and no rows;
`index` is a `PostgresIndex` on it. The server is the embedded one with its own settings, fsync on,
which the service insists on; its folder is where it costs nothing (`tests.memory`).
"""

import asyncio
import itertools
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.memory import DISK, folder_of_tests
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.index.postgres import migrate
from tidegate_service.index.postgres.engine import create_engine

Waiters = Callable[[int], Awaitable[None]]

TEMPLATE = "tidegate_template"
COPIED = "WAL_LOG" if folder_of_tests() == DISK else "FILE_COPY"
"""How a database is cloned. To copy files takes half the time, but syncs all that was written."""
_numbers = itertools.count(1)


def url_of(server_url: str, database: str) -> str:
    """The URL of another database of the same server."""
    head, _, parameters = server_url.partition("?")
    return f"{head.rpartition('/')[0]}/{database}?{parameters}"


@contextmanager
def cloned(server_url: str, template: str) -> Iterator[str]:
    """The URL of a new database like the template, dropped afterwards whoever is connected."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {COPIED}")
    try:
        yield url_of(server_url, name)
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedPostgres]:
    """The session's server."""
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-", dir=folder_of_tests()) as folder,
        EmbeddedPostgres(Path(folder)) as server,
    ):
        _let_in_quickly(server)
        yield server


def _let_in_quickly(server: EmbeddedPostgres) -> None:
    """Half of what it takes to connect is to hash the password 4,096 times; here it is once."""
    password = urlsplit(server.url).password
    assert password is not None
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SET scram_iterations = 1")
        changed = sql.SQL("ALTER ROLE CURRENT_USER PASSWORD {}").format(unquote(password))
        connection.execute(changed)


@pytest.fixture(scope="session")
def migrated_template(postgres_server: EmbeddedPostgres) -> str:
    """The name of a database at the head of the migrations, without rows."""
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {TEMPLATE}")
    migrate.upgrade(url_of(postgres_server.url, TEMPLATE))
    return TEMPLATE


@pytest.fixture
def database_url(postgres_server: EmbeddedPostgres, migrated_template: str) -> Iterator[str]:
    """A migrated database of this test's own."""
    with cloned(postgres_server.url, migrated_template) as url:
        yield url


@pytest.fixture
def empty_database_url(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """A database of this test's own with nothing in it."""
    with cloned(postgres_server.url, "template0") as url:
        yield url


@pytest.fixture
async def engine(database_url: str, anyio_backend: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(database_url)
    yield engine
    await engine.dispose()


@pytest.fixture
def index(engine: AsyncEngine) -> PostgresIndex:
    return PostgresIndex(engine)


@pytest.fixture
async def other_index(database_url: str, anyio_backend: str) -> AsyncIterator[PostgresIndex]:
    """Another instance on the same database: nothing in this process joins it to `index`."""
    engine = create_engine(database_url)
    yield PostgresIndex(engine)
    await engine.dispose()


@pytest.fixture
async def waiters(database_url: str, anyio_backend: str) -> AsyncIterator[Waiters]:
    """`await waiters(n)` returns once exactly `n` connections of this test's database wait for
    a lock, or to ask for it again. It looks again and again; nothing in Postgres tells of a
    wait."""
    connection = await psycopg.AsyncConnection.connect(database_url, autocommit=True)

    async def wait(count: int) -> None:
        async with asyncio.timeout(30):
            while True:
                found = await connection.execute(
                    "SELECT count(*) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND (wait_event_type = 'Lock' OR "
                    "(state = 'idle in transaction' AND query LIKE '%pg_try_advisory_xact_lock%' "
                    "AND state_change < clock_timestamp() - interval '10 ms'))"
                )
                if await found.fetchone() == (count,):
                    return

    yield wait
    await connection.close()
