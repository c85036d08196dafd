"""What a refusal on a catalog-managed table costs: a COMMIT, unless what it is based on has had one
of this instance's behind it. Why it is needed is shown by `test_failover.py`."""

from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Conflict, Invalid
from tidegate_service.core.commit.group import run_group
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.commit.queue.commit_queue import CommitQueue
from tidegate_service.core.commit.transaction_ids import abort
from tidegate_service.core.errors import Refused
from tidegate_service.core.instance.head_checks import HeadChecks
from tidegate_service.index.locking.groups import PostgresCommitGroup

pytestmark = pytest.mark.anyio


@pytest.fixture
def saves(monkeypatch):
    """The tables of each group whose COMMIT was sent."""
    sent = []
    save = PostgresCommitGroup.save

    async def noted(group):
        sent.append(sorted(section.table.name for section in group.sections.values()))
        await save(group)

    monkeypatch.setattr(PostgresCommitGroup, "save", noted)
    return sent


def another(world: World) -> World:
    own = {"heads": HeadChecks(), "commit": CommitQueue(run_group).commit}
    return World(replace(world.context, **own))


async def conflicting(world, table):
    stale = proposal(add("x=1/late"), read_version=0, whole_table=True)
    assert isinstance(await propose(world.context, table.id, stale), Conflict)


async def test_a_conflict_with_another_instance_s_commit_is_settled_once(world, saves):
    table = await world.create(catalog_managed=True)
    await propose(world.context, table.id, proposal(add("x=1/a")))
    saves.clear()
    for _ in range(2):
        await conflicting(world, table)
    assert saves == [], "its own COMMIT was answered"
    other = another(world)
    for _ in range(3):
        await conflicting(other, table)
    assert saves == [], "there is no standby that could lack the head, as its first look has seen"
    await propose(world.context, table.id, proposal(add("x=1/b")))
    for _ in range(3):
        await conflicting(other, table)
    assert saves == [[table.name]] * 2, "that of the commit, and one for all of the refusals"


async def test_what_is_invalid_by_the_table_is_settled_too(world, saves):
    table = await world.create(catalog_managed=True)
    other = another(world)
    by_itself = proposal(add("x=1/a", size=0), read_version=0)
    by_the_table = proposal(add("a", partitionValues={}), read_version=0)
    for body, expected in ((by_itself, []), (by_the_table, [[table.name]])):
        for _ in range(2):
            assert isinstance(await propose(other.context, table.id, body), Invalid)
        assert saves == expected
        # The other instance has not seen this head yet.
        await propose(world.context, table.id, proposal(add("x=1/b")))
        saves.clear()


async def test_an_id_is_asked_for_each_time(world, saves):
    """Its row says nothing of when it was written."""
    table = await world.create(catalog_managed=True)
    await propose(world.context, table.id, proposal(add("x=1/a"), transaction_id="a"))
    await abort(world.context, table.id, "closed")
    saves.clear()
    for name, code in (("a", Code.TRANSACTION_ID_REUSED), ("closed", Code.TRANSACTION_ABORTED)):
        body = proposal(add("x=1/other"), transaction_id=name)
        with pytest.raises(Refused) as refused:
            await propose(world.context, table.id, body)
        assert refused.value.code is code
    assert saves == [[table.name]] * 2
