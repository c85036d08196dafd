"""A broken index shows nothing of itself in an answer."""

import psycopg
import pytest

from tests.builders.flights import table_body


class TestAnswers:
    @pytest.mark.parametrize(
        "damage",
        [
            "ALTER TABLE tables RENAME TO gone",
            "ALTER TABLE tables RENAME COLUMN name TO gone",
            "ALTER TABLE tables ALTER COLUMN protocol SET NOT NULL",
            "ALTER TABLE audit DROP COLUMN deed",
            "REVOKE ALL ON tables FROM PUBLIC; ALTER TABLE commits ADD CHECK (version < 0)",
        ],
    )
    def test_a_broken_index_shows_nothing_of_itself(self, service, api, database_url, damage):
        with psycopg.connect(database_url) as connection:
            connection.execute(damage)
        answer = api.post("/tables", json=table_body())
        assert answer.status_code in (500, 503)
        for inside in (
            "SELECT",
            "INSERT",
            "psycopg",
            "sqlalchemy",
            "Traceback",
            'File "',
            ".py",
            "constraint",
            "SQLSTATE",
            "postgresql://",
            "/tmp",
        ):
            assert inside not in answer.text
        problem = answer.json()
        assert problem["instance"] == answer.headers["x-request-id"]
        assert ("error_id" in problem) == (answer.status_code == 500)
