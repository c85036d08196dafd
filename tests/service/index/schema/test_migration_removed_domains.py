"""Which domains were removed before the upgrade is not known, and said so."""

import psycopg
import pytest

from tests.service.index.schema.test_migrations import write_as_0001
from tidegate_service.index.postgres import migrate

STATE = "INSERT INTO metadata_versions VALUES (%(id)s, 0, %(protocol)s, 'm')"
ROWS = "SELECT version, removed_version FROM removed_domains"
LATEST = "SELECT latest_version FROM tables"


@pytest.mark.parametrize(("feature", "is_unknown"), [("domainMetadata", True), ("x", False)])
def test_tables_that_may_have_had_domains(empty_database_url, feature, is_unknown):
    migrate.upgrade(empty_database_url)
    migrate.downgrade(empty_database_url, "0018")
    written = write_as_0001(empty_database_url)
    protocol = f'{{"protocol":{{"writerFeatures":["{feature}"]}}}}'.encode()
    with psycopg.connect(empty_database_url) as connection:
        connection.execute(STATE, {**written, "protocol": protocol})
    migrate.upgrade(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        (latest,) = connection.execute(LATEST).fetchone()
        expected = [(latest, latest)] if is_unknown else []
        assert connection.execute(ROWS).fetchall() == expected
