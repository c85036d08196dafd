"""What is told of a second attempt is true of the first one, too.

A COMMIT without an answer is looked into under the lock. What stands in the way of that, or what
the second attempt comes to by itself, says nothing of the first one. Here somebody waits for the
row that the first attempt holds, and gets it before the second one does.
"""

import asyncio
import json

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.groups.grouping import instance
from tests.service.commit.groups.test_group_commits_lost import COMMIT, severed
from tests.service.process.severing import Cut
from tidegate_protocol.base.problems import Code
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.errors import CommitStateUnknown, Unavailable
from tidegate_service.core.observe.faults import Side
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.tables.create import CreateTable, create_table
from tidegate_service.core.tables.lookup import get_table

__all__ = ["severed"]

pytestmark = pytest.mark.anyio

LOST = pytest.mark.parametrize(
    ("catalog_managed", "cut"),
    [
        (False, Cut.BEFORE_IT_ARRIVES),
        (False, Cut.BEFORE_THE_ANSWER),
        (True, Cut.BEFORE_IT_ARRIVES),
    ],
)


class Once:
    """Fault points where something is done when the table's commit has its bytes, once. A later
    attempt asks for the row when those that waited for the row have ended: Postgres gives a row
    whose holder has just gone to whoever asks first, and not to whoever waits."""

    def __init__(self, table, deed, waiting):
        self._steps = table.kind.steps
        self._deed = deed
        self._waiting = waiting

    async def reached(self, step, side):
        if (step, side) == (self._steps.compose, Side.AFTER) and self._deed is not None:
            deed, self._deed = self._deed, None
            await deed()
        elif (step, side) == (self._steps.lock, Side.BEFORE) and self._waiting:
            await asyncio.wait(self._waiting)


@pytest.fixture
async def overtaken(world, severed, waiters):
    """`await overtaken(table, body, cut, by, ...)`: what the proposal is told whose COMMIT is lost
    while `by`, a coroutine, waits for the row."""
    cut_index, between = severed

    async def propose(table, body, cut, by, **fields):
        waiting = []
        # So that whoever forgets it waits for the row alone.
        await publish_table(world.context.index, world.context.storage, table)

        async def begin():
            waiting.append(asyncio.create_task(by))
            await waiters(1)
            between.watch(COMMIT, cut)

        one = instance(world, index=cut_index, faults=Once(table, begin, waiting), **fields)
        try:
            return await one.propose(table, body)
        finally:
            await asyncio.gather(*waiting)
            # Its connection is given back before the engine is closed.
            assert await one.context.running.drain(timeout_s=20)

    return propose


async def forget(world, table):
    """In one section: between the look at a catalog-managed table's log and this, others may get
    the row."""
    assert await world.context.index.forget(table.id, by=world.context.caller)


@LOST
async def test_that_the_table_is_gone_says_nothing(world, overtaken, catalog_managed, cut):
    table = await world.create(catalog_managed=catalog_managed)
    body = proposal(add("a"))
    with pytest.raises(CommitStateUnknown) as unknown:
        await overtaken(table, body, cut, forget(world, table))
    assert unknown.value.transaction_id == body.transaction_id
    if not catalog_managed:
        info = world.actions_of(table, 1)[0]["commitInfo"]
        assert info["txnId"] == body.transaction_id


@LOST
async def test_it_does_not_go_on_to_another_table_of_the_name(
    world, overtaken, catalog_managed, cut
):
    table = await world.create(catalog_managed=catalog_managed)
    made = []

    async def made_again():
        await forget(world, table)
        new = CreateTable(
            name=table.name,
            schema=json.loads(table.metadata.schema_string),
            partition_columns=("x",),
            location=f"{table.location}-again",
        )
        made.append(await create_table(world.context, new))

    with pytest.raises(CommitStateUnknown):
        await overtaken(table, proposal(add("a")), cut, made_again())
    assert (await get_table(world.context, made[0].id)).latest_version == 0


async def test_a_full_backlog_is_told_of_what_has_not_landed(world, overtaken):
    """It is looked at behind the id, under the lock that the first attempt had."""
    table = await world.create(catalog_managed=True)
    others = instance(world).propose(table, proposal(add("b")))
    body = proposal(add("a"))
    with pytest.raises(Unavailable) as refused:
        await overtaken(table, body, Cut.BEFORE_IT_ARRIVES, others, max_unpublished_versions=1)
    assert refused.value.code is Code.BACKPRESSURE
    assert "1 versions" in refused.value.detail
    assert await world.context.index.transaction(table.id, body.transaction_id) is None


async def test_a_full_backlog_does_not_hide_what_has_landed(world, overtaken):
    table = await world.create(catalog_managed=True)
    others = instance(world).propose(table, proposal(add("b")))
    body = proposal(add("a"))
    told = await overtaken(table, body, Cut.BEFORE_THE_ANSWER, others, max_unpublished_versions=1)
    assert isinstance(told, Committed)
    assert (told.record.version, told.replayed) == (1, True)
