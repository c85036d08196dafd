"""Servers that do not say which one they are."""

import logging

import psycopg
import pytest

from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.index.postgres.identity import database_of

pytestmark = pytest.mark.anyio

REFUSING = """
    CREATE FUNCTION refusing() RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'not from here' USING ERRCODE = '{code}'; END $$
"""


@pytest.mark.parametrize("code", ["42501", "0A000", "42883"])
async def test_one_that_does_not_say_it_is_connected_to(
    database_url, monkeypatch, caplog, anyio_backend, code
):
    """It may not, cannot, or lacks the function: what is left is told, with a warning."""
    if code != "42883":
        with psycopg.connect(database_url) as connection:
            connection.execute(REFUSING.format(code=code))
    monkeypatch.setattr("tidegate_service.index.postgres.identity._SYSTEM", "refusing()")
    engine = create_engine(database_url)
    names = []
    with caplog.at_level(logging.WARNING, logger="tidegate.index"):
        for _ in range(2):
            async with engine.connect() as connection:
                names.append(database_of(connection))
            await engine.dispose()
    assert names[0] == names[1] != ""
    told = [one for one in caplog.records if "does not say which server" in one.getMessage()]
    assert len(told) == 1
