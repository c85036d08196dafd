"""Ids of commits in whose versions the log has others by now."""

import json

import psycopg
import pytest

from tests.service.catalog_managed.guarded import rows
from tests.service.catalog_managed.restoring import body, commit, publish, quiet
from tidegate_protocol.base.problems import Code
from tidegate_service.core.catalog_managed.ratified_log import LostCommit
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import status
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
