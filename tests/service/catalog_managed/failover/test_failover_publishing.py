"""What a publisher puts into a log: nothing that the synchronous standby has not."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.servers.failover import Failover, failover
from tests.service.catalog_managed.failover import hasty
from tests.service.catalog_managed.restoring import body
from tests.service.world import World, make_world
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import CommitStateUnknown, IndexUnavailable
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres import migrate
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.index.publishing import unpublished
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

ANSWER_S = 3.0
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@dataclass
class Pair:
    """A primary that waits for its standby, and an instance with a catalog-managed table, of which
    nothing was published."""

    servers: Failover
    world: World
    publisher: Publisher
    table: TableRecord
    engine: AsyncEngine

    @property
    def index(self) -> PostgresIndex:
        return self.world.context.index

    @property
    def log(self) -> Path:
        return Path(urlsplit(self.table.location).path) / "_delta_log"

    def files(self) -> list[str]:
        return sorted(file.name for file in self.log.glob("*"))

    async def commit_alone(self, transaction_id: str) -> None:
        """The primary has the commit, and shows it; the standby, which is cut off, has not."""
        self.servers.cut_off()
        with pytest.raises(CommitStateUnknown):
            await propose(self.world.context, self.table.id, body(transaction_id))
        self.servers.kill_primary()
        self.servers.primary.start()
        (lagging,) = await self.index.unpublished(limit=9)
        known = await self.index.commit(self.table.id, lagging.latest_version)
        assert known.transaction_id == transaction_id, "it is not there to be read"

    def take_over(self) -> None:
        self.servers.kill_primary()
        self.servers.promote()


@pytest.fixture
async def pair(tmp_path, anyio_backend):
    with failover() as servers:
        migrate.upgrade(servers.primary.url)
        engine = create_engine(servers.url)
        storage = ObjectStorage(warehouse=tmp_path.as_uri())
        index = PostgresIndex(engine, answer_timeout_s=ANSWER_S)
        made = make_world(index, storage, tmp_path.as_uri())
        world = replace(made, context=replace(made.context, commit_deadline_s=0.0))
        servers.wait_for_standby()
        table = await world.create(catalog_managed=True)
        yield Pair(servers, world, Publisher(index, storage), table, engine)
        await engine.dispose()


def is_locked(admin, table) -> bool:
    # Rolled back: a lock is a write, too, whose COMMIT would wait.
    query = "SELECT 1 FROM tables WHERE id = %s FOR UPDATE SKIP LOCKED"
    with admin.transaction(force_rollback=True):
        return admin.execute(query, (table.id,)).fetchone() is None


async def test_nothing_is_published_that_the_standby_has_not(pair, caplog):
    """A file of it would take the place of what is committed where the standby takes over: a PUT
    that comes late, behind what was acknowledged by then."""
    await propose(pair.world.context, pair.table.id, body("a"))
    assert await pair.publisher.round() == 2
    published = pair.files()
    await pair.commit_alone("b")

    round_ = asyncio.create_task(pair.publisher.round())
    with psycopg.connect(pair.servers.primary.url, autocommit=True) as admin:
        while not admin.execute(WAITING).fetchall():
            assert not round_.done(), "it did not wait"
            await asyncio.sleep(0.05)
        assert not is_locked(admin, pair.table)
        assert await round_ == 0
        assert "synchronous standby" in caplog.records[-1].reason
        assert await pair.publisher.round() == 0
        # The server is asked to end what was given up, and does so soon.
        async with asyncio.timeout(20):
            while admin.execute(WAITING).fetchall():
                await asyncio.sleep(0.05)
    assert pair.files() == published

    pair.take_over()
    other = await propose(pair.world.context, pair.table.id, body("other"))
    assert other.record.version == 2
    assert await pair.publisher.round() == 1
    assert b"other" in (pair.log / commit_name(2)).read_bytes()


async def test_a_large_version_waits_by_itself(pair, monkeypatch):
    """Its bytes are read after the rest, by when they may be others."""
    assert await pair.publisher.round() == 1
    few = PostgresIndex(pair.engine, answer_timeout_s=ANSWER_S, limits=IndexLimits(waiting_bytes=1))
    publisher = Publisher(few, pair.world.context.storage)
    await propose(pair.world.context, pair.table.id, body("a"))
    assert await publisher.round() == 1

    real = unpublished.unpublished_versions

    async def then_alone(*args, **kwargs):
        found = await real(*args, **kwargs)
        pair.servers.cut_off()
        return found

    await propose(pair.world.context, pair.table.id, body("b"))
    monkeypatch.setattr(unpublished, "unpublished_versions", then_alone)
    assert await publisher.round() == 0
    assert pair.files()[-1] == commit_name(1)


@pytest.mark.parametrize("ask", [forget_table, rebuild_table])
async def test_no_other_way_into_the_log_is_shorter(pair, ask):
    """Also where published files are gone, which both of them put back."""
    await propose(pair.world.context, pair.table.id, body("a"))
    assert await pair.publisher.round() == 2
    await pair.commit_alone("b")
    (pair.log / commit_name(0)).unlink()
    with pytest.raises((CommitStateUnknown, IndexUnavailable)):
        await ask(hasty(pair.world, pair.engine).context, pair.table.id)
    assert pair.files() == [commit_name(0), commit_name(1)]
    pair.take_over()
    other = await propose(pair.world.context, pair.table.id, body("other"))
    assert other.record.version == 2


async def test_publishing_goes_on_when_the_standby_is_back(pair):
    pair.servers.cut_off()
    context = hasty(pair.world, pair.engine).context
    assert await Publisher(context.index, context.storage).round() == 0
    assert pair.files() == []
    pair.servers.let_in()
    for _ in range(20):
        if await pair.publisher.round():
            break
    assert pair.files() == [commit_name(0)]
