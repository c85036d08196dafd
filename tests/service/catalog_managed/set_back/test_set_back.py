"""A database that was set back: restored to an older state, or failed over with commits lost."""

import asyncio

import psycopg
import pytest

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.catalog_managed.restoring import Backups, body, commit, publish, quiet
from tests.service.maintenance.pictures import picture
from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.catalog_managed.ratified_log import LostCommit
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import (
    Refused,
    TableQuarantined,
)
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.rebuild import rebuild, rebuild_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.ports.records import Aborted, CommitRecord, TableState
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

TRAIL = "SELECT deed, version, transaction_id FROM audit WHERE deed IN ('rebuild', 'lose')"


async def is_quarantined(world, table) -> bool:
    return (await get_table(world.context, table.id)).state is TableState.QUARANTINED


class Restored:
    """A table of the versions a, b and c, and a database as it was when there were a and b alone.
    Everything is published; `now` is an instance that knows all, `then` one of the restored."""

    def __init__(self, made: Backups, url: str) -> None:
        self.made, self.url = made, url

    async def make(self, *, catalog_managed: bool = True, published: bool = True) -> "Restored":
        self.now = self.made.instance(self.url)
        self.table = await self.now.create(catalog_managed=catalog_managed)
        await commit(self.now, self.table, "a", "b")
        if catalog_managed and published:
            await publish(self.now, self.table)
        self.old_url = await self.made.copy(self.url)
        await commit(self.now, self.table, "c", "d")
        if catalog_managed:
            await publish(self.now, self.table)
        self.then = self.made.instance(self.old_url)
        return self


@pytest.fixture
async def restored(made, database_url) -> Restored:
    return await Restored(made, database_url).make()


@pytest.mark.parametrize(
    "call",
    [
        lambda world, table: propose(world.context, table.id, body("c")),
        lambda world, table: propose(world.context, table.id, body("new")),
        lambda world, table: conflict_check(world.context, table.id, body("new")),
        lambda world, table: abort(world.context, table.id, "c"),
    ],
    ids=["a retry", "a commit", "a check", "an abort"],
)
async def test_nothing_is_answered_for_that_the_log_says_otherwise(restored, call):
    with pytest.raises(TableQuarantined, match=r"version 3 is published .* `rebuild`"):
        await call(restored.then, restored.table)
    head = await get_table(restored.then.context, restored.table.id)
    assert (head.state, head.latest_version) == (TableState.QUARANTINED, 2)
    assert await restored.then.context.index.transaction(head.id, "c") is None
    # What the restored index knows did land.
    again = await propose(restored.then.context, restored.table.id, body("b"))
    assert (again.record.version, again.replayed) == (2, True)
    with pytest.raises(TableQuarantined):
        await abort(restored.then.context, restored.table.id, "c")
    with pytest.raises(Refused, match=r"stays quarantined: version 3 is published .* `rebuild`"):
        await release_table(restored.then.context, restored.table.id)


@pytest.mark.parametrize("first", ["a commit", "nothing"])
async def test_a_rebuild_takes_in_what_was_published(restored, first):
    """Ids, bytes and dates; also where it is the first that is done."""
    then, table = restored.then, restored.table
    expected = await picture(restored.now, await get_table(restored.now.context, table.id))
    if first == "a commit":
        with pytest.raises(TableQuarantined):
            await propose(then.context, table.id, body("c"))
    done = await rebuild(then.context, table.id)
    assert done.lost == ()
    assert (done.table.state, done.table.published_version) == (TableState.ACTIVE, 4)
    assert await picture(then, done.table) == expected
    for number, name in enumerate("abcd", start=1):
        again = await propose(then.context, table.id, body(name))
        assert (again.record.version, again.replayed) == (number, True)
    with pytest.raises(Refused, match="another body"):
        await propose(then.context, table.id, proposal(add("z"), transaction_id="c"))
    landed = await propose(then.context, table.id, body("new"))
    assert landed.record.version == 5
    await publish(then, table)
    assert (await verify_table(then.context, table.id)).differences == ()


async def test_before_anything_was_published(made, database_url):
    restored = await Restored(made, database_url).make(published=False)
    then, table = restored.then, restored.table
    with pytest.raises(TableQuarantined, match="version 3 is published"):
        await propose(then.context, table.id, body("new"))
    expected = await picture(restored.now, await get_table(restored.now.context, table.id))
    assert (await rebuild(then.context, table.id)).lost == ()
    head = await get_table(then.context, table.id)
    assert await picture(then, head) == expected


async def test_what_a_publisher_put_and_did_not_mark_is_no_reason(made, database_url):
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    content = {v: await world.context.index.content(table.id, v) for v in range(2)}
    world.log_folder(table).mkdir(parents=True)
    for version, found in content.items():
        world.log_file(table, version).write_bytes(found)
    fresh = made.instance(database_url)
    landed = await propose(fresh.context, table.id, body("b"))
    assert isinstance(landed, Committed)
    await publish(fresh, table)
    assert (await get_table(fresh.context, table.id)).published_version == 2


async def test_a_log_that_parted_from_the_index(restored):
    """An instance of the restored database took a commit, and the publisher of the one that was
    lost went on: what is published is the table's, the other commit is lost and told."""
    made, then, table = restored.made, restored.then, restored.table
    await rebuild_table(then.context, table.id)
    lagging = await made.copy(restored.old_url)
    await commit(then, table, "e", "f", "g")
    other = made.instance(lagging)
    # Nothing of e, f and g is to be seen yet: it is told by an instance that saw them, at best.
    await commit(other, table, "x", "f", "y", "z")
    await publish(then, table)
    with pytest.raises(TableQuarantined, match=r"version 5 .* another one than the index holds"):
        await propose(made.instance(lagging).context, table.id, body("new"))
    expected = await picture(then, await get_table(then.context, table.id))
    done = await rebuild(other.context, table.id)
    assert done.lost == (
        LostCommit(version=5, transaction_id="x"),
        LostCommit(version=7, transaction_id="y"),
        LostCommit(version=8, transaction_id="z"),
    )
    assert await picture(other, done.table) == expected
    with psycopg.connect(lagging) as connection:
        trail = connection.execute(f"{TRAIL} ORDER BY id").fetchall()
    assert trail[-4:] == [
        ("rebuild", 7, None),
        ("lose", 5, "x"),
        ("lose", 7, "y"),
        ("lose", 8, "z"),
    ]
    index = other.context.index
    for name in "xyz":
        assert isinstance(await index.transaction(table.id, name), Aborted)
        with pytest.raises(Refused) as refused:
            await propose(other.context, table.id, body(name))
        assert refused.value.code is Code.TRANSACTION_ABORTED
    landed = await index.transaction(table.id, "f")
    assert isinstance(landed, CommitRecord)
    assert landed.version == 6
    assert (await propose(other.context, table.id, body("new"))).record.version == 8


async def test_a_database_that_is_set_back_while_nobody_is_told(restored, database_url):
    """As where it was restored into the running server: a quiet time is told by the head's age."""
    made, table = restored.made, restored.table
    await rebuild_table(restored.then.context, table.id)
    then = made.instance(restored.old_url)
    await commit(then, table, "e")
    await publish(then, table)
    # Somebody publishes what this database does not have.
    elsewhere = made.instance(await made.copy(restored.old_url))
    await commit(elsewhere, table, "f")
    await publish(elsewhere, table)
    quiet(restored.old_url, table)
    then.context.heads.known(table.id).checked_ms -= 60_000
    with pytest.raises(TableQuarantined, match="version 6 is published"):
        await propose(then.context, table.id, body("new"))


async def test_commits_that_an_instance_saw_are_missed_by_it(made, database_url):
    """Nothing of them is published, so nothing but an instance that lived on can know."""
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    old = await made.copy(database_url)
    await commit(world, table, "b", "c")
    lived_on = made.taken_over(world, old)
    with pytest.raises(TableQuarantined, match=r"versions 2 to 3 were committed and are not"):
        await propose(lived_on.context, table.id, body("new"))
    assert (await rebuild(lived_on.context, table.id)).lost == ()
    assert (await propose(lived_on.context, table.id, body("b"))).record.version == 2


async def test_one_table_that_is_met_has_the_others_looked_at(made, database_url):
    """Nobody commits to them, and nobody but this instance knows what they lost."""
    world = made.instance(database_url)
    tables = [await world.create(catalog_managed=True) for _ in range(3)]
    old = await made.copy(database_url)
    for table in tables[:2]:
        await commit(world, table, "a")
    await commit(world, tables[2], "a")
    lived_on = made.taken_over(world, old)
    with pytest.raises(TableQuarantined):
        await propose(lived_on.context, tables[2].id, body("b"))
    async with asyncio.timeout(30):
        while not all([await is_quarantined(lived_on, table) for table in tables]):
            await asyncio.sleep(0)


async def test_commits_that_others_took_the_places_of_are_missed(made, database_url):
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    old = await made.copy(database_url)
    await commit(world, table, "b", "c")
    await commit(made.instance(old), table, "x", "y", "z")
    lived_on = made.taken_over(world, old)
    with pytest.raises(TableQuarantined, match="version 3 is not the one that was committed"):
        await propose(lived_on.context, table.id, body("new"))


async def test_a_failover_that_lost_nothing_is_none_to_stop_at(made, database_url):
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a", "b")
    lived_on = made.taken_over(world, await made.copy(database_url))
    assert (await propose(lived_on.context, table.id, body("c"))).record.version == 3


@pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
async def test_winners_in_memory_are_those_of_one_database(made, database_url, catalog_managed):
    """A window that ends before the head is believed; one of a database that lost some of it, and
    took others, would let a transaction pass over those."""
    world = made.instance(database_url)
    table = await world.create(catalog_managed=catalog_managed)
    await propose(world.context, table.id, proposal(add("f"), add("g"), transaction_id="a"))
    old = await made.copy(database_url)
    await commit(world, table, "b", "c")
    if not catalog_managed:
        for version in (2, 3):
            world.log_file(table, version).unlink()
    other = made.instance(old)
    gone = proposal(remove("f"), read_version=1, files=frozenset({"f"}))
    await propose(other.context, table.id, gone)
    await commit(other, table, "x", "y")
    lived_on = made.taken_over(world, old)
    # What stops the instance otherwise.
    lived_on.context.heads.forget(table.id)
    late = proposal(remove("f"), read_version=1, files=frozenset({"f"}))
    told = await propose(lived_on.context, table.id, late)
    assert isinstance(told, Conflict), told
    assert told.winner.version == 2


class TestPlain:
    """The log is the table, and the index a copy that is brought up to it."""

    async def test_ids_dates_and_fences_come_back(self, made, database_url):
        restored = await Restored(made, database_url).make(catalog_managed=False)
        now, then, table = restored.now, restored.then, restored.table
        await abort(now.context, table.id, "stopped")
        expected = await picture(now, await get_table(now.context, table.id))
        again = await propose(then.context, table.id, body("d"))
        assert (again.record.version, again.replayed) == (4, True)
        # Which reads the log to its end.
        await conflict_check(then.context, table.id, body("other"))
        assert await picture(then, await get_table(then.context, table.id)) == expected
        with pytest.raises(Refused) as refused:
            await propose(then.context, table.id, body("stopped"))
        assert refused.value.code is Code.TRANSACTION_ABORTED
        assert (await propose(then.context, table.id, body("new"))).record.version == 6

    async def test_a_commit_is_first(self, made, database_url):
        restored = await Restored(made, database_url).make(catalog_managed=False)
        then, table = restored.then, restored.table
        assert (await propose(then.context, table.id, body("new"))).record.version == 5
        assert (await verify_table(then.context, table.id)).differences == ()
