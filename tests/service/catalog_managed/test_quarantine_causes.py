"""What a catalog-managed table is quarantined for, whoever found it, and which way out that has."""

from dataclasses import replace

import pytest

from tests.service.catalog_managed.restoring import Backups, body, commit, publish
from tests.service.commit.committing import quarantine
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_service.core.catalog_managed.ratified_log import LostCommit
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.ports.records import QuarantineCause, TableRecord, TableState
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

SET_BACK = "the database was set back, by a restore or by a failover that lost commits"


async def parted(made: Backups, url: str) -> tuple[World, TableRecord]:
    """A database that has x as version 2, whose publisher did not come to it before another one
    had published b there."""
    world = made.instance(url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    await publish(world, table)
    old = await made.copy(url)
    await commit(world, table, "b")
    other = made.instance(old)
    await commit(other, table, "x")
    await publish(world, table)
    return other, table


def restarted(world: World) -> World:
    return World(replace(world.context, heads=HeadChecks()))


async def check_rebuilt(world: World, table: TableRecord) -> None:
    assert (await rebuild(world.context, table.id)).lost == (
        LostCommit(version=2, transaction_id="x"),
    )
    again = await propose(world.context, table.id, body("b"))
    assert (again.record.version, again.replayed) == (2, True)


async def test_a_publisher_finds_what_a_look_does(made, database_url):
    world, table = await parted(made, database_url)
    await publish(world, table)
    head = await get_table(world.context, table.id)
    assert head.quarantine_cause is QuarantineCause.SET_BACK
    assert f"another one than the index holds: {SET_BACK}; `rebuild`" in str(head.state_reason)
    # Whoever asks, and knows nothing of it but what the row says.
    for instance in (world, restarted(world)):
        with pytest.raises(Refused, match=r"stays quarantined: .* `rebuild`") as refused:
            await release_table(instance.context, table.id)
        assert refused.value.code is Code.BROKEN_LOG
        with pytest.raises(TableQuarantined, match="`rebuild`"):
            await forget_table(instance.context, table.id)
    await check_rebuilt(world, table)


async def test_a_release_says_what_a_look_does(made, database_url):
    """It was quarantined for something else first."""
    world, table = await parted(made, database_url)
    await quarantine(world.context.index, table, "something else")
    with pytest.raises(Refused, match=r"another one than the index holds: .* `rebuild`"):
        await release_table(restarted(world).context, table.id)
    head = await get_table(world.context, table.id)
    assert head.quarantine_cause is QuarantineCause.SET_BACK
    await check_rebuilt(world, table)


async def test_a_file_that_nobody_here_wrote_is_another_cause(made, database_url):
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await commit(world, table, "a")
    world.log_folder(table).mkdir(parents=True)
    world.log_file(table, 0).write_text("other bytes")
    await publish(world, table)
    head = await get_table(world.context, table.id)
    assert (head.state, head.quarantine_cause) == (TableState.QUARANTINED, QuarantineCause.LOG)
    assert "move it out of the log; then `rebuild`" in str(head.state_reason)
    world.log_file(table, 0).unlink()
    done = await rebuild(world.context, table.id)
    assert (done.lost, done.table.state, done.table.latest_version) == ((), TableState.ACTIVE, 1)


async def test_the_words_of_a_reason_say_nothing_of_the_cause(made, database_url):
    world = made.instance(database_url)
    table = await world.create(catalog_managed=True)
    await quarantine(world.context.index, table, f"a file's name says that {SET_BACK}")
    assert (await release_table(world.context, table.id)).state is TableState.ACTIVE
    await quarantine(world.context.index, table, "in other words", QuarantineCause.SET_BACK)
    with pytest.raises(Refused, match="stays quarantined: in other words"):
        await release_table(world.context, table.id)
    with pytest.raises(TableQuarantined, match="in other words"):
        await forget_table(world.context, table.id)
    assert (await rebuild(world.context, table.id)).table.quarantine_cause is None
