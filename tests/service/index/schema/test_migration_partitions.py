"""Rows from before files had partitions as keys get them, and the release before goes on."""

import json
import uuid

import psycopg
import pytest

from tests.service.tables.scan_tables import VALUES
from tidegate_service.index.postgres import migrate
from tidegate_service.index.rows.partitions import partition_key

FILE_OF_0006 = """
    INSERT INTO files (table_id, path, dv_id, added_version, size, partition_values, action)
    VALUES (%s, %s, '', 0, 1, %s, 'x')
"""


def table_of_0006(connection: psycopg.Connection, *partition_columns: str) -> uuid.UUID:
    """A table at version 0, by the statements of the release before."""
    table_id = uuid.uuid4()
    metadata = json.dumps({"metaData": {"partitionColumns": partition_columns}}).encode()
    connection.execute(
        "INSERT INTO tables VALUES (%s, %s, %s, true, 'active', NULL, 0, 0, 0, 'p', 'm', 0, 0)",
        (table_id, str(table_id), str(table_id)),
    )
    connection.execute(
        "INSERT INTO commits VALUES (%s, 0, NULL, 5, NULL, NULL, 'ab', NULL, true, NULL, 0, true, "
        "0, 0, 0, 0, 1, 1, '{}', true, false, 'content')",
        (table_id,),
    )
    connection.execute(
        "INSERT INTO metadata_versions VALUES (%s, 0, 'p', %s)", (table_id, metadata)
    )
    return table_id


@pytest.fixture
def old_url(empty_database_url):
    migrate.upgrade(empty_database_url)
    migrate.downgrade(empty_database_url, "0006")
    return empty_database_url


def keys_of(url: str, table_id: uuid.UUID) -> dict[str, str | None]:
    with psycopg.connect(url) as connection:
        return dict(
            connection.execute(
                "SELECT path, partition FROM files WHERE table_id = %s", (table_id,)
            ).fetchall()
        )


@pytest.mark.parametrize("as_string", [False, True], ids=["JSON", "JSON in a JSON string"])
def test_rows_of_partitioned_tables_are_filled_in(old_url, as_string):
    """The release before has the driver encode what is JSON already."""
    values = {f"{n:02}": {"p": value} for n, value in enumerate(VALUES)}
    with psycopg.connect(old_url) as connection:
        table_id = table_of_0006(connection, "p")
        for path, of_file in values.items():
            text = json.dumps(of_file, ensure_ascii=False, separators=(",", ":"))
            stored = json.dumps(text) if as_string else text
            connection.execute(FILE_OF_0006, (table_id, path, stored))
        connection.execute(FILE_OF_0006, (table_id, "none", '"{}"' if as_string else "{}"))
    migrate.upgrade(old_url)
    keys = keys_of(old_url, table_id)
    # What stands alone in an index over partitions, and is judged like any partition.
    assert keys.pop("none") == "{}"
    assert keys == {path: partition_key(of_file) for path, of_file in values.items()}


def test_more_rows_than_a_page(old_url):
    with psycopg.connect(old_url) as connection:
        table_id = table_of_0006(connection, "p")
        with connection.cursor() as cursor:
            rows = [(table_id, f"f{n // 3}{'x' * (n % 3)}", '{"p":"1"}') for n in range(11_000)]
            cursor.executemany(FILE_OF_0006, rows)
    migrate.upgrade(old_url)
    keys = keys_of(old_url, table_id)
    assert (len(keys), set(keys.values())) == (11_000, {'{"p":"1"}'})


def test_what_the_release_before_writes_is_unknown(database_url):
    with psycopg.connect(database_url) as connection:
        table_id = table_of_0006(connection, "p")
        connection.execute(FILE_OF_0006, (table_id, "a", '{"p":"1"}'))
        connection.execute(FILE_OF_0006, (table_id, "b", "{}"))
    assert keys_of(database_url, table_id) == {"a": None, "b": None}


def test_a_run_that_was_cut_off_is_done_again(old_url):
    with psycopg.connect(old_url) as connection:
        table_id = table_of_0006(connection, "p")
        connection.execute(FILE_OF_0006, (table_id, "a", '{"p":"1"}'))
    migrate.upgrade(old_url)
    migrate.downgrade(old_url, "0007")
    with psycopg.connect(old_url) as connection:
        connection.execute("UPDATE files SET partition = ''")
        connection.execute("UPDATE alembic_version SET version_num = '0006'")
    migrate.upgrade(old_url)
    assert keys_of(old_url, table_id) == {"a": '{"p":"1"}'}
