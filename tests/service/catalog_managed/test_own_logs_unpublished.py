"""Rows that a restore brought back from before the first version of their tables was published,
where another table is at the place since."""

import shutil

import psycopg
import pytest

from tests.servers.postgres import url_of
from tests.service.catalog_managed.asking import CALLS, is_closed, log_of
from tests.service.catalog_managed.restoring import (
    Backups,
    body,
    commit,
    given_up,
    publish,
)
from tests.service.maintenance.pictures import checkpointed
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


async def another_since(
    made: Backups, url: str, *, catalog_managed: bool = True, cleaned_up: bool = False
) -> tuple[World, TableRecord]:
    """An instance of a database as it was when its table had the versions 0 to 2, none of them
    published; another one, with the versions 0 to 4, is at its place since."""
    now = made.instance(url)
    table = await now.create(catalog_managed=True)
    await commit(now, table, *"ab")
    old = await made.copy(url)
    await forget_table(now.context, table.id)
    shutil.rmtree(now.log_folder(table).parent)
    other = await now.create(name=table.name, catalog_managed=catalog_managed)
    await commit(now, other, *"klmn")
    if catalog_managed:
        await publish(now, other)
    if cleaned_up:
        checkpointed(now, other, 4)
        for gone in range(4):
            now.log_file(other, gone).unlink()
    return made.instance(old), table


LOGS = {
    "catalog-managed": {},
    "plain": {"catalog_managed": False},
    "cleaned up": {"catalog_managed": False, "cleaned_up": True},
}
OTHERS = pytest.mark.parametrize("other", LOGS.values(), ids=LOGS)
ASKED = [
    *((call, other) for call in ("a commit", "forgetting it") for other in LOGS),
    ("a check", "catalog-managed"),
    ("an abort", "catalog-managed"),
]


@pytest.mark.parametrize(("call", "other"), ASKED)
async def test_nothing_is_acknowledged_or_put_there(made, database_url, call, other):
    then, table = await another_since(made, database_url, **LOGS[other])
    before = log_of(then, table)
    with pytest.raises(
        TableQuarantined, match=r"nothing of the table was published.* move nothing"
    ):
        await CALLS[call](then, table)
    assert await is_closed(then, table)
    with pytest.raises(Refused, match="stays quarantined: nothing of the table was published"):
        await release_table(then.context, table.name)
    await publish(then, table)
    assert log_of(then, table) == before


@OTHERS
async def test_a_publisher_puts_nothing_there(made, database_url, other):
    then, table = await another_since(made, database_url, **other)
    before = log_of(then, table)
    await publish(then, table)
    assert await is_closed(then, table)
    assert log_of(then, table) == before


@OTHERS
async def test_a_rebuild_does_not_take_the_other_tables_log_in(made, database_url, other):
    """Also where it is the first thing that is done, as the runbook has it."""
    then, table = await another_since(made, database_url, **other)
    with pytest.raises(Refused, match="move nothing there") as refused:
        await rebuild(then.context, table.name)
    assert refused.value.code is Code.BROKEN_LOG
    assert await is_closed(then, table)
    assert (await get_table(then.context, table.id)).latest_version == 2
    again = await propose(then.context, table.id, body("b"))
    assert (again.record.version, again.replayed) == (2, True)


async def test_the_runbook_leads_out(made, database_url):
    """The row is given up for the table that is there."""
    then, table = await another_since(made, database_url)
    with pytest.raises(Refused):
        await rebuild(then.context, table.name)
    listing, giving_up = given_up(table)
    with psycopg.connect(url_of(made.server_url, made.names[-1])) as connection:
        assert [row[1] for row in connection.execute(listing)][1:] == ["a", "b"]
        assert connection.execute(giving_up).rowcount == 1
    await forget_table(then.context, table.name)
    asked = RegisterTable(
        name=table.name, location=table.location, catalog_managed=True, by_marks=True
    )
    other, _ = await register_table(then.context, asked)
    for version, name in enumerate("klmn", start=1):
        landed = await propose(then.context, other.id, body(name))
        assert (landed.record.version, landed.replayed) == (version, True)
    assert (await propose(then.context, other.id, body("o"))).record.version == 5


async def test_its_own_log_is_taken_in(made, database_url):
    """Published by the primary that was lost, with more than the backup has."""
    now = made.instance(database_url)
    table = await now.create(catalog_managed=True)
    await commit(now, table, "a")
    old = await made.copy(database_url)
    await commit(now, table, "b")
    await publish(now, table)
    then = made.instance(old)
    with pytest.raises(TableQuarantined, match=r"version 2 is published .* was set back"):
        await propose(then.context, table.id, body("new"))
    assert (await rebuild(then.context, table.id)).lost == ()
    again = await propose(then.context, table.id, body("b"))
    assert (again.record.version, again.replayed) == (2, True)
