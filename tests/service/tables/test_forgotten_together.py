"""A table that is registered again while what is kept of it is deleted for good."""

import asyncio

import psycopg
import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.catalog_managed.guarded import rows
from tests.service.catalog_managed.test_backlog import lock_waits
from tests.service.tables.test_forgotten import kept, register
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.maintenance.forget import forget_table

pytestmark = pytest.mark.anyio


async def test_a_deletion_that_has_begun_is_waited_for(world, database_url):
    """It locks the head, then takes the ids, as `delete_forgotten` does."""
    table = await world.create()
    body = proposal(add("x=1/once"))
    await propose(world.context, table.id, body)
    await forget_table(world.context, table.id)
    with psycopg.connect(database_url) as deletion:
        deletion.execute("SELECT 1 FROM forgotten_tables WHERE id = %s FOR UPDATE", [table.id])
        registration = asyncio.create_task(register(world, table))
        while not registration.done() and not lock_waits(database_url):
            await asyncio.sleep(0.01)
        for name in ("forgotten_commits", "forgotten_aborts"):
            deletion.execute(f"DELETE FROM {name} WHERE table_id = %s", [table.id])
        deletion.execute("DELETE FROM forgotten_tables WHERE id = %s", [table.id])
    again = await registration
    assert again.latest_version == 1
    # Its log has the id, too.
    assert (await propose(world.context, again.id, body)).replayed
    assert await kept(world) == ()
    assert rows(database_url, "SELECT count(*) FROM forgotten_commits") == [(0,)]
