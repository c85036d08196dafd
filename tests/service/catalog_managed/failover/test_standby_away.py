"""While the synchronous standby is away, commits that are given up leave so many sessions at the
server, and no more."""

import asyncio
import time
from dataclasses import replace

import psycopg
import pytest

from tests.servers.failover import failover
from tests.service.catalog_managed.restoring import body
from tests.service.world import make_world
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import CommitStateUnknown, IndexUnavailable
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres import migrate
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

ANSWER_S = 2.0
MOST = 2
PATIENCE_S = 60.0
LEFT = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


async def test_commits_are_refused_once_so_many_wait(tmp_path):
    with failover() as servers:
        migrate.upgrade(servers.primary.url)
        engine = create_engine(servers.url)
        index = PostgresIndex(
            engine, answer_timeout_s=ANSWER_S, limits=IndexLimits(unanswered=MOST)
        )
        made = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
        world = replace(made, context=replace(made.context, commit_deadline_s=0.0))
        servers.wait_for_standby()
        tables = [await world.create(catalog_managed=True) for _ in range(MOST + 2)]
        servers.cut_off()

        for table in tables[:MOST]:
            with pytest.raises(CommitStateUnknown):
                await propose(world.context, table.id, body("a"))
        for table in tables[MOST:]:
            with pytest.raises(IndexUnavailable, match="synchronous standby"):
                async with asyncio.timeout(ANSWER_S):
                    await propose(world.context, table.id, body("b"))
        with psycopg.connect(servers.primary.url) as connection:
            assert connection.execute(LEFT).fetchone() == (MOST,)

        servers.let_in()
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                outcome = await propose(world.context, tables[-1].id, body("c"))
                break
            except (IndexUnavailable, CommitStateUnknown):
                assert time.monotonic() < until
        assert outcome.record.version in (1, 2)
        await engine.dispose()
