"""Reads whose callers leave: their connections stay, and none goes on for long."""

import asyncio

import psycopg
import pytest
from sqlalchemy import text

from tidegate_service.index.postgres.connections import Connections

pytestmark = pytest.mark.anyio

PATIENCE_S = 60.0
WAIT = text("SELECT pg_backend_pid(), pg_advisory_xact_lock(1)")


@pytest.fixture
def read_on_s() -> float:
    return PATIENCE_S


@pytest.fixture
def connections(engine, read_on_s):
    return Connections(engine, answer_timeout_s=PATIENCE_S, read_on_s=read_on_s)


@pytest.fixture
def held(database_url):
    """A lock that reads wait for, until this is closed."""
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        yield connection


async def pid(connections) -> int:
    async def query(connection):
        return (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()

    return await connections.read(query)


async def left(connections) -> None:
    """A read that waits for the lock has been left by its caller."""
    begun = asyncio.Event()

    async def query(connection):
        begun.set()
        await connection.execute(WAIT)

    caller = asyncio.create_task(connections.read(query))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert connections.pool_use().in_use == 1


async def given_back(connections) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while connections.pool_use().in_use:
            await asyncio.sleep(0)


async def test_the_connection_is_used_again(connections, held):
    before = await pid(connections)
    await left(connections)
    held.close()
    await given_back(connections)
    assert await pid(connections) == before


@pytest.mark.parametrize("read_on_s", [0.01])
async def test_one_that_does_not_end_is_cut_off(connections, held):
    await left(connections)
    await given_back(connections)
