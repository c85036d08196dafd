"""A real Postgres for tests: one server a session, a database of its own for every test.

`database_url` is a fresh clone of a template that holds the migrated schema and no rows;
`index` is a `PostgresIndex` on it. The server is the embedded one with its own settings, fsync on,
which the service insists on. Its folder is in memory where there is room, so that fsync costs
nothing; what is to survive a crash is tried with servers of the tests' own, on the disk.
"""

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.embedded.server import EmbeddedPostgres
from tidegate_service.index.postgres import migrate
from tidegate_service.index.postgres.engine import create_engine

Waiters = Callable[[int], Awaitable[None]]

TEMPLATE = "tidegate_template"
ROOM_BYTES = 8 << 30
"""As much as a session's databases never are, their write-ahead log included."""
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
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield url_of(server_url, name)
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _parent() -> Path:
    memory = Path("/dev/shm")
    has_room = memory.is_dir() and shutil.disk_usage(memory).free >= ROOM_BYTES
    return memory if has_room else Path("/tmp")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedPostgres]:
    """The session's server. Its data directory is a short one: sockets have short paths."""
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-", dir=_parent()) as folder,
        EmbeddedPostgres(Path(folder)) as server,
    ):
        yield server


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
    a lock. It looks again and again; nothing in Postgres tells of a wait."""
    connection = await psycopg.AsyncConnection.connect(database_url, autocommit=True)

    async def wait(count: int) -> None:
        async with asyncio.timeout(30):
            while True:
                found = await connection.execute(
                    "SELECT count(*) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
                if await found.fetchone() == (count,):
                    return

    yield wait
    await connection.close()
