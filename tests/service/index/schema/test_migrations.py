"""Migrations make exactly the schema that the code declares, and can be taken back."""

import re
import subprocess
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import create_engine

from tests.servers.postgres import cloned
from tidegate_service.core.errors import IndexUnavailable, ServiceError
from tidegate_service.index.embedded.cluster import programs
from tidegate_service.index.postgres import migrate
from tidegate_service.index.postgres.urls import driver_url
from tidegate_service.index.schema.access import metadata


def schema_of(url: str) -> str:
    """Everything that pg_dump says of a database, but for Alembic's own table."""
    dump = subprocess.run(
        [programs() / "pg_dump", "--schema-only", "--exclude-table=alembic_version", url],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    # Random tokens that guard the script against psql's meta-commands.
    return re.sub(r"^\\(un)?restrict .*$", "", dump, flags=re.MULTILINE)


@pytest.fixture
def declared_url(postgres_server):
    """A database with the tables as the code declares them, made without migrations."""
    with cloned(postgres_server.url, "template0") as url:
        engine = create_engine(driver_url(url))
        metadata.create_all(engine)
        engine.dispose()
        yield url


def test_migrations_make_the_declared_schema(database_url, declared_url):
    assert schema_of(database_url) == schema_of(declared_url)
    assert "CREATE TABLE public.commits" in schema_of(database_url)


def test_up_down_and_up_again(empty_database_url):
    nothing = schema_of(empty_database_url)
    migrate.upgrade(empty_database_url)
    everything = schema_of(empty_database_url)

    migrate.downgrade(empty_database_url, "base")
    assert schema_of(empty_database_url) == nothing
    assert migrate.current(empty_database_url) is None

    migrate.upgrade(empty_database_url)
    assert schema_of(empty_database_url) == everything
    assert everything != nothing


def test_pending_until_upgraded(empty_database_url):
    assert migrate.current(empty_database_url) is None
    assert migrate.pending(empty_database_url)

    migrate.upgrade(empty_database_url)

    assert migrate.current(empty_database_url) == migrate.head()
    assert not migrate.pending(empty_database_url)


def test_upgrading_twice_keeps_what_is_there(database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO tables VALUES (gen_random_uuid(), 'a.b.c', 'file:///x', true, 'active',"
            " NULL, -1, -1, -1, NULL, NULL, 0, 0, now(), 0)"
        )
    migrate.upgrade(database_url)
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT name FROM tables").fetchall() == [("a.b.c",)]


COMMIT_OF_0001 = """
    INSERT INTO commits VALUES (%(id)s, %(version)s, nullif(%(version)s - 1, -1), 5, NULL, NULL,
    'ab', NULL, true, NULL, 0, true, 0, 0, 0, 0, 1, 1, '{}', true, false, 'content')
"""
TABLE_OF_0001 = (
    "INSERT INTO tables VALUES (%(id)s, 'a.b.c', 'file:///x', false, 'active', NULL, 1, 1, 5, "
    "'p', 'm', 0, 0)"
)


def write_as_0001(url: str) -> dict[str, object]:
    """A table with two versions, by the statements of the first release."""
    of_table: dict[str, object] = {"id": uuid.uuid4()}
    with psycopg.connect(url) as connection:
        connection.execute(TABLE_OF_0001, of_table)
        for version in (0, 1):
            connection.execute(COMMIT_OF_0001, {**of_table, "version": version})
    return of_table


def test_a_database_of_the_first_release_is_upgraded_with_its_data(empty_database_url):
    migrate.upgrade(empty_database_url)
    migrate.downgrade(empty_database_url, "0001")
    written = write_as_0001(empty_database_url)
    migrate.upgrade(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        found = connection.execute(
            "SELECT version, previous_version, first_version FROM commits "
            "JOIN tables ON tables.id = table_id WHERE id = %(id)s ORDER BY version",
            written,
        ).fetchall()
    assert found == [(0, None, 0), (1, 0, 0)]


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        (None, None),
        ("version 3, written by another writer, cannot be read: torn", "log"),
        (
            "version 3 is published in the log and not in the index: the database was set back, by "
            "a restore or by a failover that lost commits; `rebuild` takes in what is published",
            "set-back",
        ),
    ],
)
def test_what_tables_are_quarantined_for_is_told_from_their_reasons(
    empty_database_url, reason, cause
):
    migrate.upgrade(empty_database_url)
    migrate.downgrade(empty_database_url, "0008")
    written = write_as_0001(empty_database_url)
    if reason is not None:
        with psycopg.connect(empty_database_url) as connection:
            connection.execute(
                "UPDATE tables SET state = 'quarantined', state_reason = %s", [reason]
            )
    migrate.upgrade(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        query = "SELECT quarantine_cause FROM tables WHERE id = %(id)s"
        assert connection.execute(query, written).fetchall() == [(cause,)]


def test_the_first_release_goes_on_working_on_this_schema(database_url):
    written = write_as_0001(database_url)
    with psycopg.connect(database_url) as connection:
        query = "SELECT first_version FROM tables WHERE id = %(id)s"
        assert connection.execute(query, written).fetchall() == [(0,)]


def test_a_table_that_starts_later_keeps_the_schema_from_going_back(empty_database_url):
    migrate.upgrade(empty_database_url)
    written = write_as_0001(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("DELETE FROM commits WHERE version = 1")
        connection.execute("UPDATE commits SET version = 1")
        connection.execute("UPDATE tables SET first_version = 1 WHERE id = %(id)s", written)
    before = schema_of(empty_database_url)
    with pytest.raises(ServiceError, match="commits_previous_version_check"):
        migrate.downgrade(empty_database_url, "0001")
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("SELECT version FROM commits").fetchall() == [(1,)]
    migrate.upgrade(empty_database_url)
    assert schema_of(empty_database_url) == before


def test_a_newer_schema_has_nothing_pending(database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    assert not migrate.pending(database_url)
    migrate.upgrade(database_url)
    assert migrate.current(database_url) == "9999"


def test_concurrent_upgrades_happen_once(empty_database_url):
    together = threading.Barrier(4)

    def upgrade() -> None:
        together.wait()
        migrate.upgrade(empty_database_url)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(upgrade) for _ in range(4)]:
            done.result()
    assert migrate.current(empty_database_url) == migrate.head()


def test_the_working_directory_does_not_matter(empty_database_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    migrate.upgrade(empty_database_url)
    assert not migrate.pending(empty_database_url)


def test_a_database_that_does_not_answer():
    with pytest.raises(IndexUnavailable):
        migrate.upgrade("postgresql://nobody:secret@127.0.0.1:1/none")


def test_a_url_of_another_database_does_not_show_its_password():
    with pytest.raises(ValueError, match="postgresql://") as refused:
        migrate.current("mysql://user:geheim@host/db")
    assert "geheim" not in str(refused.value)


def test_a_database_in_another_encoding_is_refused(postgres_server):
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1'")
    try:
        url = postgres_server.url.replace("/postgres?", "/latin?")
        with pytest.raises(IndexUnavailable, match="UTF8, found LATIN1"):
            migrate.upgrade(url)
    finally:
        with psycopg.connect(postgres_server.url, autocommit=True) as connection:
            connection.execute("DROP DATABASE latin WITH (FORCE)")
