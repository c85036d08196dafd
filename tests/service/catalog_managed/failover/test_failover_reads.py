"""What readers are told of: no version that the synchronous standby has not."""

import asyncio
import json
from dataclasses import dataclass, replace

import psycopg
import pytest
from msgspec.structs import replace as changed
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add, metadata, remove
from tests.builders.proposals import proposal
from tests.servers.failover import Failover, failover
from tests.service.catalog_managed.failover import hasty
from tests.service.world import World, make_world
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import app_transaction
from tidegate_service.core.errors import CommitStateUnknown, IndexUnavailable
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.core.ports.outcomes import NothingToCommit
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep.upkeep import UpkeepRecord
from tidegate_service.core.tables.history import content, history
from tidegate_service.core.tables.lookup import domain, get_table, list_tables
from tidegate_service.core.tables.scan import ScanRequest, scan
from tidegate_service.core.upkeep.clean_up import CleanUp
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres import migrate
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.index.upkeep.standing import PostgresUpkeep
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

ANSWER_S = 3.0
GHOST = proposal(
    remove("x=1/base"),
    add("x=1/ghost"),
    Txn(app_id="stream", version=2),
    transaction_id="ghost",
    read_version=1,
    whole_table=True,
)


@dataclass
class Pair:
    """A primary with its standby, and an instance on whichever takes commits. `statements` are what
    it has sent so far."""

    servers: Failover
    world: World
    table: TableRecord
    engine: AsyncEngine
    statements: list[str]

    @property
    def hasty(self) -> World:
        return hasty(self.world, self.engine)

    async def show_ghost(self) -> None:
        """The primary shows a version that the standby, which is away, has never heard of."""
        self.servers.cut_off()
        with pytest.raises(CommitStateUnknown):
            await propose(self.world.context, self.table.id, GHOST)
        self.servers.kill_primary()
        self.servers.primary.start()
        with psycopg.connect(self.servers.primary.url) as connection:
            shown = connection.execute("SELECT max(version) FROM commits").fetchone()
        assert shown == (2,), "the commit is not there to be read, so nothing is shown by this"

    def take_over(self) -> None:
        self.servers.kill_primary()
        self.servers.promote()

    def waits(self) -> int:
        """How often the standby was waited for since it was last asked."""
        found = sum("pg_logical_emit_message" in statement for statement in self.statements)
        self.statements.clear()
        return found


@pytest.fixture
async def pair(tmp_path, anyio_backend):
    with failover() as servers:
        migrate.upgrade(servers.primary.url)
        engine = create_engine(servers.url)
        statements: list[str] = []

        @event.listens_for(engine.sync_engine, "before_cursor_execute")
        def note(connection, cursor, statement, *_):
            statements.append(statement)

        made = make_world(
            PostgresIndex(engine, answer_timeout_s=ANSWER_S),
            ObjectStorage(warehouse=tmp_path.as_uri()),
            tmp_path.as_uri(),
        )
        world = replace(made, context=replace(made.context, commit_deadline_s=0.0))
        servers.wait_for_standby()
        table = await world.create(catalog_managed=True)
        base = proposal(
            add("x=1/base"), Txn(app_id="stream", version=1), transaction_id="base", read_version=0
        )
        assert (await propose(world.context, table.id, base)).record.version == 1
        yield Pair(servers, world, table, engine, statements)
        await engine.dispose()


async def scanned(world: World, table: TableRecord, **asked: int) -> tuple[int, list[str]]:
    found = await scan(world.context, table.id, ScanRequest(**asked))
    lines = [line async for batch in found.files for line in batch]
    return found.version, sorted(json.loads(line)["add"]["path"] for line in lines)


ASKED = {
    "head": lambda world, table: get_table(world.context, table.id),
    "page": lambda world, table: list_tables(world.context, prefix="", cursor=None, limit=9),
    "scan": scanned,
    "scan of a version": lambda world, table: scanned(world, table, version=2),
    "scan of a time": lambda world, table: scanned(world, table, timestamp=2**45),
    "history": lambda world, table: history(
        world.context, table.id, from_version=None, to_version=None, limit=9
    ),
    "content": lambda world, table: content(world.context, table.id, 2),
    "application": lambda world, table: app_transaction(world.context, table.id, "stream"),
    "domain": lambda world, table: domain(world.context, table.id, "d"),
}


async def test_no_two_readers_see_different_bytes_of_a_version(pair):
    """Else the first one's transaction would take a version for the one that it has read."""
    await pair.show_ghost()
    pair.waits()
    world = pair.hasty
    asked = [ask(world, pair.table) for ask in ASKED.values()]
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert {name: type(one) for name, one in zip(ASKED, told, strict=True)} == dict.fromkeys(
        ASKED, IndexUnavailable
    )
    # Those who ask meanwhile wait together, on one connection.
    assert pair.waits() <= 2
    pair.take_over()
    other = proposal(remove("x=1/base"), add("x=1/other"), transaction_id="other", read_version=1)
    assert (await propose(pair.world.context, pair.table.id, other)).record.version == 2
    for ask in ASKED.values():
        await ask(pair.world, pair.table)
    assert await scanned(pair.world, pair.table) == (2, ["x=1/other"])
    told = await app_transaction(pair.world.context, pair.table.id, "stream")
    assert told is not None
    assert told.version == 1


async def test_what_is_known_to_be_there_is_told_while_the_standby_is_away(pair):
    """And is waited for once, by an instance that has not committed it."""
    other = World(replace(pair.world.context, heads=HeadChecks()))
    pair.waits()
    for _ in range(3):
        assert await scanned(pair.world, pair.table) == (1, ["x=1/base"])
    assert pair.waits() == 0
    for _ in range(3):
        await scanned(other, pair.table)
    assert pair.waits() == 1
    pair.servers.cut_off()
    for world in (pair.world, other):
        for ask in (scanned, *(ASKED[name] for name in ("head", "page", "history", "application"))):
            await ask(world, pair.table)
    assert pair.waits() == 0


async def test_nothing_to_commit_is_told_of_a_head_that_is_there(pair):
    nothing = proposal(skip_if_empty=True)
    told = await propose(pair.world.context, pair.table.id, nothing)
    assert isinstance(told, NothingToCommit)
    await pair.show_ghost()
    with pytest.raises(CommitStateUnknown):
        await propose(pair.hasty.context, pair.table.id, nothing)


async def test_no_log_is_cleaned_up_by_rules_that_the_standby_has_not(pair):
    """As those of a commit that shortens the retention."""
    shorter = changed(
        metadata(delta_logRetentionDuration="interval 1 day"), id=pair.table.metadata.id, raw=b""
    )
    rule = proposal(shorter, transaction_id="rule", read_version=1)
    pair.servers.cut_off()
    with pytest.raises(CommitStateUnknown):
        await propose(pair.world.context, pair.table.id, rule)
    pair.servers.kill_primary()
    pair.servers.primary.start()
    index = pair.hasty.context.index
    upkeep = PostgresUpkeep(pair.engine)
    job = CleanUp(index, upkeep, pair.world.context.storage)
    row = await index.table(pair.table.id)
    first = UpkeepRecord(version=-1, done_ms=None, failures=0, trouble=None)
    with pytest.raises(IndexUnavailable, match="synchronous standby"):
        await job.run(row, first)
