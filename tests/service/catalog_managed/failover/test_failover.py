"""A primary and its standby: what is believed of either, and what a failover may not take back."""

import asyncio
import logging
from dataclasses import replace
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.servers.failover import Failover, failover
from tests.service.catalog_managed.failover import hasty
from tests.service.catalog_managed.restoring import body
from tests.service.tables.delta_logs import DeltaLog
from tests.service.world import make_world
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import CommitStateUnknown, IndexUnavailable, NotFound
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres import migrate
from tidegate_service.index.postgres.engine import DurabilityError, check_durability, create_engine
from tidegate_service.index.postgres.identity import database_of
from tidegate_service.index.postgres.urls import driver_url
from tidegate_service.settings import Settings
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

ANSWER_S = 3.0
CANCEL_WAITING = """
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'
"""


@pytest.fixture
def servers():
    with failover() as servers:
        yield servers


@pytest.fixture
async def engine(servers: Failover, anyio_backend):
    engine = create_engine(servers.url)
    yield engine
    await engine.dispose()


async def named(engine) -> str:
    """The database that new connections of the engine are to."""
    await engine.dispose()
    async with engine.connect() as connection:
        return database_of(connection)


async def test_a_commit_that_the_standby_has_not_is_no_answer(servers, engine, tmp_path):
    """The primary is killed while a COMMIT waits for its standby. Restarted, it shows that commit
    to everybody; the standby has never heard of it, and takes over."""
    migrate.upgrade(servers.primary.url)
    index = PostgresIndex(engine, answer_timeout_s=ANSWER_S)
    made = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    world = replace(made, context=replace(made.context, commit_deadline_s=0.0))
    servers.wait_for_standby()
    table = await world.create(catalog_managed=True)
    assert (await propose(world.context, table.id, body("a"))).record.version == 1
    servers.cut_off()
    with pytest.raises(CommitStateUnknown):
        await propose(world.context, table.id, body("b"))
    servers.kill_primary()
    servers.primary.start()
    with psycopg.connect(servers.primary.url) as connection:
        shown = connection.execute("SELECT max(version) FROM commits").fetchone()
    assert shown == (2,), "the commit is not there to be read, so nothing is shown by this"

    impatient = hasty(world, engine)
    with pytest.raises(CommitStateUnknown):
        await propose(impatient.context, table.id, body("b"))
    with pytest.raises(IndexUnavailable):
        await impatient.context.index.transaction(table.id, "b")

    servers.kill_primary()
    servers.promote()
    assert await index.transaction(table.id, "b") is None
    again = await propose(world.context, table.id, body("a"))
    assert (again.record.version, again.replayed) == (1, True)


async def test_a_failover_that_has_lost_nothing_quarantines_nothing(servers, engine, tmp_path):
    """A version that only the old primary showed is none to miss, whoever has seen it."""
    migrate.upgrade(servers.primary.url)
    index = PostgresIndex(engine, answer_timeout_s=ANSWER_S)
    made = make_world(index, ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri())
    world = replace(made, context=replace(made.context, commit_deadline_s=0.0))
    servers.wait_for_standby()
    table, other = [await world.create(catalog_managed=True) for _ in range(2)]
    for one in (table, other):
        assert (await propose(world.context, one.id, body("a"))).record.version == 1
    servers.cut_off()
    with pytest.raises(CommitStateUnknown):
        await propose(world.context, table.id, body("b"))
    servers.kill_primary()
    servers.primary.start()
    # An instance that knows the table, and one that meets it; the first has its others looked at.
    fresh = replace(world, context=replace(world.context, heads=HeadChecks()))
    never = proposal(transaction_id="never", read_version=99)
    for each in (world, fresh):
        for asked in (body("c"), never):
            with pytest.raises((CommitStateUnknown, IndexUnavailable, NotFound)):
                await propose(hasty(each, engine).context, table.id, asked)

    servers.kill_primary()
    servers.promote()
    for version, each in enumerate((world, fresh), start=2):
        landed = await propose(each.context, table.id, body(f"d{version}"))
        assert landed.record.version == version
    head = await get_table(world.context, table.id)
    assert (head.state, head.latest_version) == (TableState.ACTIVE, 3)
    assert (await propose(world.context, other.id, body("d"))).record.version == 2


async def cut_short(admin, asking) -> None:
    """What is asked for waits for the standby, and has no answer when that wait is cancelled; its
    changes are there to be read from then on."""
    task = asyncio.create_task(asking)
    while not admin.execute(CANCEL_WAITING).fetchall():
        if task.done():
            pytest.fail(f"it did not wait, and was answered: {task.exception() or task.result()}")
        await asyncio.sleep(0.05)
    with pytest.raises(CommitStateUnknown):
        await task


async def test_nobody_is_refused_by_what_the_standby_has_not(servers, engine, tmp_path):
    """By a commit and a tombstone that the old primary alone has: whoever was told that it never
    lands because of them would land where the standby takes over."""
    migrate.upgrade(servers.primary.url)
    made = make_world(
        PostgresIndex(engine), ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri()
    )
    world = replace(made, context=replace(made.context, commit_deadline_s=0.0))
    conflicting = proposal(add("x=1/c"), transaction_id="c", read_version=0, whole_table=True)
    refused = (conflicting, proposal(add("x=1/other"), transaction_id="b"), body("closed"))
    servers.wait_for_standby()
    table = await world.create(catalog_managed=True)
    servers.cut_off()
    with psycopg.connect(servers.primary.url, autocommit=True) as admin:
        await cut_short(admin, propose(world.context, table.id, body("b")))
        await cut_short(admin, abort(world.context, table.id, "closed"))
        shown = admin.execute(
            "SELECT (SELECT max(version) FROM commits), (SELECT count(*) FROM aborted_transactions)"
        ).fetchone()
        assert shown == (1, 1), "neither is there to be read, so nothing is shown by this"
        for asked in refused:
            for ask in (propose, conflict_check):
                await cut_short(admin, ask(world.context, table.id, asked))
    servers.kill_primary()
    servers.promote()
    for version, asked in enumerate(refused, start=1):
        landed = await propose(world.context, table.id, asked)
        assert (landed.record.version, landed.replayed) == (version, False)


async def test_a_commit_that_was_cancelled_while_it_waited_is_no_answer(servers, engine, tmp_path):
    """Who cancels a COMMIT that waits for its standby ends the wait and nothing else: Postgres
    answers that it has committed, with a warning."""
    migrate.upgrade(servers.primary.url)
    made = make_world(
        PostgresIndex(engine), ObjectStorage(warehouse=tmp_path.as_uri()), tmp_path.as_uri()
    )
    world = replace(made, context=replace(made.context, commit_deadline_s=0.0))
    servers.wait_for_standby()
    table = await world.create(catalog_managed=True)
    servers.cut_off()
    proposing = asyncio.create_task(propose(world.context, table.id, body("b")))
    with psycopg.connect(servers.primary.url, autocommit=True) as admin:
        while not admin.execute(CANCEL_WAITING).fetchall():
            await asyncio.sleep(0.05)
        with pytest.raises(CommitStateUnknown):
            await proposing
        shown = admin.execute("SELECT max(version) FROM commits").fetchone()
    assert shown == (1,), "it was not committed, so nothing is shown by this"


async def creation(world, folder):
    await world.create(catalog_managed=True)


async def registration(world, folder):
    log = DeltaLog(folder / "main" / "test" / "found")
    log.first()
    await register_table(
        world.context, RegisterTable(name="main.test.found", location=log.location)
    )


@pytest.mark.parametrize("made", [creation, registration])
async def test_a_table_that_the_standby_has_not_is_no_answer(servers, engine, tmp_path, made):
    """Its COMMIT is cancelled while it waits for the standby, and the row is there to be read. The
    standby never heard of it, and takes over."""
    migrate.upgrade(servers.primary.url)
    world = make_world(
        PostgresIndex(engine, answer_timeout_s=ANSWER_S),
        ObjectStorage(warehouse=tmp_path.as_uri()),
        tmp_path.as_uri(),
    )
    servers.wait_for_standby()
    servers.cut_off()
    making = asyncio.create_task(made(world, tmp_path))
    with psycopg.connect(servers.primary.url, autocommit=True) as admin:
        while not admin.execute(CANCEL_WAITING).fetchall():
            await asyncio.sleep(0.05)
        with pytest.raises(CommitStateUnknown):
            await making
        shown = admin.execute("SELECT count(*) FROM tables").fetchone()
    assert shown == (1,), "it was not committed, so nothing is shown by this"


async def test_a_failover_and_a_restart_are_told(servers, engine):
    names = [await named(engine)]
    assert await named(engine) == names[0]
    servers.primary.stop()
    servers.primary.start()
    names.append(await named(engine))
    servers.kill_primary()
    servers.promote()
    names.append(await named(engine))
    assert len(set(names)) == 3
    assert [name.rpartition("/")[2] for name in names] == ["00000001", "00000001", "00000002"]


class TestDurability:
    def set_level(self, servers, level):
        with psycopg.connect(servers.primary.url, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE tidegate SET synchronous_commit = {level}")

    async def test_commits_have_to_wait_for_a_standby_that_is_there(self, servers, engine, caplog):
        caplog.set_level(logging.WARNING, "tidegate.index")
        await check_durability(engine)
        assert "none that commits wait for" in caplog.text
        caplog.clear()
        servers.wait_for_standby()
        await check_durability(engine)
        assert caplog.text == ""
        self.set_level(servers, "local")
        await engine.dispose()
        with pytest.raises(DurabilityError, match="synchronous_commit = local"):
            await check_durability(engine)
        self.set_level(servers, "remote_write")
        await engine.dispose()
        await check_durability(engine)
        assert "remote_write" in caplog.text
        caplog.clear()
        self.set_level(servers, "remote_apply")
        await engine.dispose()
        await check_durability(engine)
        assert caplog.text == ""
        servers.cut_off()
        servers.wait_until_alone()
        await check_durability(engine)
        assert "has none: commits wait until there is one" in caplog.text


async def test_a_role_that_may_not_ask_is_served_and_warned_of(database_url, caplog):
    name = urlsplit(database_url).path[1:]
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE curious LOGIN PASSWORD 'secret'")
        connection.execute(f"GRANT CONNECT ON DATABASE {name} TO curious")
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    url = urlsplit(database_url)
    engine = create_engine(url._replace(netloc="curious:secret@").geturl())
    try:
        told = [await named(engine) for _ in range(2)]
    finally:
        await engine.dispose()
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(f"REVOKE CONNECT ON DATABASE {name} FROM curious")
            connection.execute("DROP ROLE curious")
    assert told[0] == told[1]
    assert len(told[0].split("/")) == 4
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert "pg_control_system()" in warnings[0]


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (
            "postgresql://u:p%40@a:5432,b:5433/db?target_session_attrs=read-write",
            {"host": "a,b", "port": "5432,5433", "target_session_attrs": "read-write"},
        ),
        ("postgresql://a,b", {"host": "a,b", "port": "5432,5432"}),
        ("postgresql://[::1]:1,[::2]/x", {"host": "::1,::2", "port": "1,5432"}),
    ],
)
def test_several_hosts_in_a_url(url, options):
    _, found = driver_url(url).get_dialect()().create_connect_args(driver_url(url))
    assert {name: found[name] for name in options} == options


def test_several_hosts_in_the_settings(tmp_path):
    url = "postgresql://u:p@a:5432,b:5433/db?target_session_attrs=read-write"
    made = Settings(database_url=url, data_dir=tmp_path)
    assert made.masked_database_url() == "postgresql://u:***@a:5432,b:5433/db"
    with pytest.raises(ValueError, match="database_url"):
        Settings(database_url="postgresql://u:p@a:5432,b:x/db", data_dir=tmp_path)


@pytest.mark.parametrize("url", ["postgresql://a:x,b/db", "postgresql://a,[::1/db"])
def test_hosts_that_are_none(url):
    with pytest.raises(ValueError, match="expected a database URL"):
        driver_url(url)
