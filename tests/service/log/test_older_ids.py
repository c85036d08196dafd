"""Ids of commits that lie in a log before the checkpoint that an index is made from."""

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.catalog_managed.restoring import body, commit
from tests.service.log.test_hidden_log import ROWS
from tidegate_protocol.base.problems import Code
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import Refused
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


async def registered(world):
    """A table that an index meets for the first time, whose log has lost version 0; version 1
    and the fence behind it come before its only checkpoint."""
    table = await world.create()
    once = proposal(add("x=1/once"))
    landed = await propose(world.context, table.id, once)
    await abort(world.context, table.id, "closed")
    await propose(world.context, table.id, proposal(add("x=1/more")))
    DeltaTable(table.location).create_checkpoint()
    world.log_file(table, 0).unlink()
    await world.lose(table)
    request = RegisterTable(name=table.name, location=table.location)
    again, _ = await register_table(world.context, request)
    assert (again.first_version, again.latest_version) == (3, 3)
    return again, once, landed.record


@pytest.mark.parametrize("rebuilds", [0, 2], ids=["registered", "made anew twice"])
async def test_what_landed_there_does_not_land_again(world, rebuilds):
    table, once, first = await registered(world)
    for _ in range(rebuilds):
        await rebuild_table(world.context, table.id)
    again = await propose(world.context, table.id, once)
    assert again.replayed
    assert (again.record.version, again.record.timestamp) == (1, first.timestamp)
    assert again.record.operation == first.operation
    assert again.record.metrics.bytes_added == first.metrics.bytes_added


async def test_what_landed_before_a_hole_does_not_land_again(made, database_url):
    """The index has never heard of it, and a clean-up that was cut short has left its file."""
    before = made.instance(database_url)
    table = await before.create()
    await commit(before, table, "first")
    restored = await made.copy(database_url)
    await commit(before, table, "once")
    for _ in range(4):
        write_deltalake(table.location, ROWS, mode="append")
    DeltaTable(table.location).create_checkpoint()
    for version in (1, 3):
        before.log_file(table, version).unlink()
    again = await propose(made.instance(restored).context, table.id, body("once"))
    assert (again.record.version, again.replayed) == (2, True)


async def test_what_was_aborted_there_does_not_land(world):
    table, _, _ = await registered(world)
    with pytest.raises(Refused) as refused:
        await propose(world.context, table.id, proposal(add("x=1/a"), transaction_id="closed"))
    assert refused.value.code is Code.TRANSACTION_ABORTED


async def test_what_cannot_be_read_there_is_passed_over(world):
    table, once, _ = await registered(world)
    world.log_file(table, 2).write_bytes(b"{")
    await rebuild_table(world.context, table.id)
    assert (await propose(world.context, table.id, once)).replayed
