"""What versions left behind stays when they go, and the release before finds its own again."""

import psycopg
import pytest
from psycopg import errors

from tests.service.index.schema.test_migrations import write_as_0001
from tidegate_service.index.postgres import migrate

LEFT = {
    "app_transactions": "INSERT INTO app_transactions VALUES (%(id)s, 'app', 0, 'txn')",
    "domain_metadata": "INSERT INTO domain_metadata VALUES (%(id)s, 'd', 0, 'domain')",
    "metadata_versions": "INSERT INTO metadata_versions VALUES (%(id)s, 0, 'p', 'm')",
}
CUT = (
    "UPDATE tables SET first_version = 1",
    "INSERT INTO past_commits VALUES (%(id)s, 0, 5, 'an id', NULL, 'ab', NULL, true, NULL, 0, "
    "false, 0, 0, 0, 0, 1, 1, '{}')",
)


@pytest.fixture
def of_0013(empty_database_url):
    """A table of the release before, with something left by its version 0."""
    migrate.upgrade(empty_database_url)
    migrate.downgrade(empty_database_url, "0013")
    written = write_as_0001(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        for statement in LEFT.values():
            connection.execute(statement, written)
    return empty_database_url, written


def drop_first(url: str) -> None:
    with psycopg.connect(url) as connection:
        # In the order in which a cut does it, by one statement.
        connection.execute(
            "WITH gone AS (DELETE FROM commits WHERE version = 0 RETURNING 1) "
            "UPDATE commits SET previous_version = NULL "
            "WHERE version = 1 AND (SELECT count(*) FROM gone) > 0"
        )


def versions(url: str) -> dict[str, list[int]]:
    with psycopg.connect(url) as connection:
        return {
            name: [row[0] for row in connection.execute(f"SELECT version FROM {name}")]
            for name in LEFT
        }


def test_versions_may_go_once_it_is_upgraded(of_0013):
    url, _ = of_0013
    with pytest.raises(errors.ForeignKeyViolation):
        drop_first(url)
    migrate.upgrade(url)
    drop_first(url)
    assert versions(url) == {name: [0] for name in LEFT}


def test_the_release_before_finds_versions_and_details_again(of_0013):
    url, written = of_0013
    migrate.upgrade(url)
    drop_first(url)
    with psycopg.connect(url) as connection:
        for statement in CUT:
            connection.execute(statement, written)
    migrate.downgrade(url, "0013")
    assert versions(url) == {name: [1] for name in LEFT}
    with psycopg.connect(url) as connection:
        (details,) = connection.execute("SELECT details FROM past_commits").fetchone()
    assert details["operation_parameters"] == {}
    migrate.upgrade(url)


def test_what_is_left_goes_with_its_table_alone(of_0013):
    url, _ = of_0013
    migrate.upgrade(url)
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM commits")
        with pytest.raises(errors.ForeignKeyViolation):
            connection.execute("DELETE FROM tables")
