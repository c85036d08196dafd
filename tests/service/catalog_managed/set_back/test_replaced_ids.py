"""Ids of commits in whose versions the log has others by now."""

import json

import psycopg
import pytest

from tests.service.catalog_managed.guarded import rows
from tests.service.catalog_managed.restoring import body, commit, publish, quiet
from tests.service.catalog_managed.stock_commits import WITHOUT_ID, again, staged, stock_set_back
from tests.service.faults import Fault
from tidegate_protocol.base.problems import Code
from tidegate_service.core.catalog_managed.ratified_log import LostCommit
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort, status
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["short", "long"])
async def parted(made, database_url, request):
    """A catalog-managed table of whose versions behind 2 a primary that was lost had `e`, `f` and
    `g`, which its publisher put, and the standby others: `f` among them, whose writer asked again,
    within the log or behind its end. The standby's instance, rebuilt, the table, and the URL."""
    then = made.instance(database_url)
    table = await then.create(catalog_managed=True)
    await commit(then, table, "a", "b")
    await publish(then, table)
    lagging = await made.copy(database_url)
    await commit(then, table, "e", "f", "g")
    others = {"short": "xy", "long": "xyzw"}[request.param]
    world = made.instance(lagging)
    await commit(world, table, *others, "f")
    await publish(then, table)
    with pytest.raises(TableQuarantined):
        await commit(made.instance(lagging), table, "new")
    told = await rebuild(world.context, table.id)
    assert told.lost == tuple(
        LostCommit(version=version, transaction_id=name) for version, name in enumerate(others, 3)
    )
    return world, table, lagging


async def landed_as_published(world, table) -> None:
    for version, name in enumerate("efg", 3):
        again = await propose(world.context, table.id, body(name))
        assert (again.record.version, again.replayed) == (version, True)
        assert (await world.context.index.commit(table.id, version)).transaction_id == name
    head = await get_table(world.context, table.id)
    assert head.latest_version == 5
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_an_id_is_of_the_version_that_the_log_has_it_at(parted):
    world, table, _ = parted
    await landed_as_published(world, table)
    assert (await rebuild(world.context, table.id)).lost == ()
    await landed_as_published(world, table)


@pytest.mark.parametrize("kept_as", [4, 7], ids=["the log's", "one that an index of before had"])
async def test_it_is_so_behind_forgetting(parted, kept_as):
    world, table, url = parted
    await forget_table(world.context, table.id)
    with psycopg.connect(url) as connection:
        connection.execute(
            "UPDATE forgotten_commits SET version = %s WHERE transaction_id = 'f'", [kept_as]
        )
    again, _ = await register_table(
        world.context,
        RegisterTable(name=table.name, location=table.location, catalog_managed=True),
    )
    known = await status(world.context, again.id, "f")
    assert known.landed.record.version == 4
    await landed_as_published(world, again)


async def version_once_registered(world, table, url, statement) -> int:
    """The version of `stock-f` after the table was forgotten, a statement was executed on what is
    kept of the table, and the table was registered."""
    await forget_table(world.context, table.id)
    with psycopg.connect(url) as connection:
        connection.execute(statement)
    asked = RegisterTable(name=table.name, location=table.location, catalog_managed=True)
    back, _ = await register_table(world.context, asked)
    return (await world.context.index.transaction(back.id, "stock-f")).version


async def test_the_id_of_a_stock_clients_work_is_where_the_log_has_it(made, database_url):
    """A primary that was lost published `stock-f` as version 4, and the standby had ratified the
    same work, staged again, as version 5."""
    at = await stock_set_back(made, database_url)
    # Nothing is published of what both ratify.
    made.storage.faults.extend([Fault.REFUSED] * 20)
    for world, names in ((at.now, "e"), (at.then, "xy")):
        await commit(world, at.table, *names)
        head = await get_table(world.context, at.table.id)
        version, moment = head.latest_version + 1, head.latest_timestamp + 1
        said = staged(world, at.table, version, "stock-f", at=moment)
        assert (await again(world, at.table, said)).latest_version == version
    made.storage.faults.clear()
    await publish(at.now, at.table)
    then, table = made.instance(at.old_url), at.table
    for lost in ("xy", ""):
        assert [one.transaction_id for one in (await rebuild(then.context, table.id)).lost] == [
            *lost
        ]
        known = await then.context.index.transaction(table.id, "stock-f")
        assert known.version == 4
    # As an index of before had the id.
    elsewhere = "UPDATE forgotten_commits SET version = 7 WHERE transaction_id = 'stock-f'"
    assert await version_once_registered(then, table, at.old_url, elsewhere) == 4


async def test_an_abort_gives_way_to_what_a_stock_client_committed(made, database_url):
    """The standby aborted an id that the primary had ratified, and has published since."""
    at = await stock_set_back(made, database_url)
    made.storage.faults.extend([Fault.REFUSED] * 20)
    head = await get_table(at.now.context, at.table.id)
    said = staged(at.now, at.table, 3, "stock-f", at=head.latest_timestamp + 1)
    await again(at.now, at.table, said)
    await abort(at.then.context, at.table.id, "stock-f")
    made.storage.faults.clear()
    await publish(at.now, at.table)
    then, table = made.instance(at.old_url), at.table
    assert (await rebuild(then.context, table.id)).lost == ()
    assert (await then.context.index.transaction(table.id, "stock-f")).version == 3
    # A database of before had the abort when the table was forgotten.
    aborted = (
        "INSERT INTO forgotten_aborts"
        " SELECT table_id, transaction_id, now(), 2 FROM forgotten_commits"
        " WHERE transaction_id = 'stock-f' ON CONFLICT DO NOTHING"
    )
    assert await version_once_registered(then, table, at.old_url, aborted) == 3


async def test_a_stock_clients_work_that_both_ratified_is_not_lost(made, database_url):
    """In the same file, as the same version; no id says that it landed."""
    at = await stock_set_back(made, database_url)
    made.storage.faults.extend([Fault.REFUSED] * 20)
    await commit(at.now, at.table, "e")
    await commit(at.then, at.table, "x")
    moment = (await get_table(at.then.context, at.table.id)).latest_timestamp + 1000
    said = staged(at.now, at.table, 4, WITHOUT_ID, at=moment)
    for world in (at.now, at.then):
        assert (await again(world, at.table, said)).latest_version == 4
    made.storage.faults.clear()
    await publish(at.now, at.table)
    then = made.instance(at.old_url)
    done = await rebuild(then.context, at.table.id)
    assert [one.transaction_id for one in done.lost] == ["x"]
    assert (await again(then, at.table, said)).latest_version == 4


@pytest.fixture
async def rewritten(made, database_url):
    """A plain table of three versions, the last two of which others have replaced: one of them
    under the id of ours, which it only claims. Its instance, and the table."""
    world = made.instance(database_url)
    table = await world.create()
    await commit(world, table, "a", "b", "c")
    claim = {"commitInfo": {"timestamp": 1, "operation": "WRITE", "txnId": "b"}}
    for version, extra in ((2, []), (3, [claim])):
        actions = world.actions_of(table, version)
        (change,) = (action for action in actions if "add" in action)
        change["add"]["path"] = f"x=1/theirs{version}"
        lines = "".join(json.dumps(action) + "\n" for action in (*extra, change))
        world.log_file(table, version).write_text(lines)
    quiet(database_url, table)
    return made.instance(database_url), table


LOST = tuple(
    LostCommit(version=version, transaction_id=name) for version, name in ((2, "b"), (3, "c"))
)
TRAIL = "SELECT version, transaction_id FROM audit WHERE deed = 'lose' ORDER BY version"


async def only_the_first_landed(world, table, database_url) -> None:
    for name in "bc":
        with pytest.raises(Refused) as refused:
            await propose(world.context, table.id, body(name))
        assert refused.value.code is Code.TRANSACTION_ABORTED
    assert rows(database_url, TRAIL) == [(2, "b"), (3, "c")]
    again = await propose(world.context, table.id, body("a"))
    assert (again.record.version, again.replayed) == (1, True)
    assert (await propose(world.context, table.id, body("new"))).record.version == 4
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_what_others_replaced_is_not_answered_for_once_rebuilt(rewritten, database_url):
    world, table = rewritten
    with pytest.raises(TableQuarantined):
        await propose(world.context, table.id, body("new"))
    assert (await rebuild(world.context, table.id)).lost == LOST
    await only_the_first_landed(world, table, database_url)
    assert (await rebuild(world.context, table.id)).lost == ()


async def test_nor_once_it_is_forgotten_and_registered(rewritten, database_url, caplog):
    world, table = rewritten
    await forget_table(world.context, table.id)
    again, _ = await register_table(
        world.context, RegisterTable(name=table.name, location=table.location)
    )
    (told,) = (one for one in caplog.records if one.getMessage().startswith("commits are lost"))
    assert (told.versions, told.transaction_ids) == ([2, 3], ["b", "c"])
    await only_the_first_landed(world, again, database_url)
