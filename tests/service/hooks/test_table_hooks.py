"""A hook that a table names is run for the versions at which it does, and for nothing else."""

import asyncio

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.hooks.hooks import KIND, NAME, Noting, caretaker_of
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.background.publisher import Publisher
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused
from tidegate_service.core.hooks.which_versions import WhereNamed
from tidegate_service.core.ports.index import Index
from tidegate_service.core.ports.outcomes import Committed, Outcome
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio

NAMED = {"tidegate.hooks": f"other, {NAME}"}


@pytest.fixture
def allowing(world: World) -> World:
    """The world of an operator who lets tables name two hooks."""
    return world.limited(table_hooks=frozenset({NAME, "other"}))


async def caring(hook: Noting, world: World, index: Index, upkeep: PostgresUpkeep) -> Caretaker:
    which = WhereNamed(NAME, index, upkeep)
    return await caretaker_of(hook, index, upkeep, world.context.storage, which=which)


async def commit(world: World, table: TableRecord) -> None:
    await propose(world.context, table.id, proposal(add(world.context.new_id())))


async def set_hooks(world: World, table: TableRecord, names: str | None) -> Outcome:
    head = await world.context.index.table(table.id)
    assert head is not None
    assert head.metadata is not None
    configuration = {**head.metadata.configuration, "tidegate.hooks": names or ""}
    changed = configured(head.metadata, configuration)
    asked = proposal(changed, read_version=head.latest_version, operation="SET TBLPROPERTIES")
    return await propose(world.context, table.id, asked)


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_it_is_run_for_the_versions_that_name_it(
    allowing: World, index: Index, upkeep: PostgresUpkeep, catalog_managed: bool
):
    hook = Noting()
    caretaker = await caring(hook, allowing, index, upkeep)
    table = await allowing.create(catalog_managed=catalog_managed)
    publisher = Publisher(index, allowing.context.storage)
    for names in ("", NAME, "other", f"{NAME},other"):
        assert isinstance(await set_hooks(allowing, table, names), Committed)
        await commit(allowing, table)
    if catalog_managed:
        assert await caretaker.round() == 0
        await publisher.round()
    # Versions 1, 3, 5 and 7 are those of the properties.
    assert await caretaker.round() == 1
    assert hook.versions(table.id) == [3, 4, 7, 8]
    await commit(allowing, table)
    await publisher.round()
    assert await caretaker.round() == 1
    assert hook.versions(table.id) == [3, 4, 7, 8, 9]


async def test_other_tables_cost_nothing(allowing: World, index: Index, upkeep: PostgresUpkeep):
    hook = Noting()
    caretaker = await caring(hook, allowing, index, upkeep)
    table, naming = await allowing.create(), await allowing.create(properties=NAMED)
    assert await caretaker.round() == 2
    for _ in range(2):
        await commit(allowing, table)
        assert await caretaker.round() == 0
    assert KIND not in await upkeep.standing(table.id)
    assert (await upkeep.standing(naming.id))[KIND].version == 0
    await set_hooks(allowing, table, NAME)
    await commit(allowing, table)
    assert await caretaker.round() == 1
    await set_hooks(allowing, table, None)
    assert await caretaker.round() == 1
    await commit(allowing, table)
    assert await caretaker.round() == 0
    assert hook.versions(table.id) == [3, 4]
    assert hook.versions(naming.id) == [0]


async def test_it_begins_when_it_is_allowed(allowing: World, index: Index, upkeep: PostgresUpkeep):
    table = await allowing.create(properties=NAMED)
    await commit(allowing, table)
    await asyncio.sleep(0.005)
    hook = Noting()
    caretaker = await caring(hook, allowing, index, upkeep)
    await commit(allowing, table)
    await caretaker.round()
    assert hook.versions(table.id) == [2]


async def test_a_slow_one_delays_no_commit(allowing: World, index: Index, upkeep: PostgresUpkeep):
    hook = Noting()
    hook.takes_s = 3600
    caretaker = await caring(hook, allowing, index, upkeep)
    table = await allowing.create(properties=NAMED)
    running = asyncio.create_task(caretaker.round())
    async with asyncio.timeout(10):
        while not hook.commits:
            await asyncio.sleep(0.01)
        for _ in range(3):
            await commit(allowing, table)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_one_that_becomes_everybodys_is_run_for_all(
    allowing: World, index: Index, upkeep: PostgresUpkeep
):
    hook = Noting()
    table = await allowing.create()
    await (await caring(hook, allowing, index, upkeep)).round()
    everybodys = await caretaker_of(hook, index, upkeep, allowing.context.storage)
    await upkeep.awaken(KIND)
    await commit(allowing, table)
    await everybodys.round()
    assert hook.versions(table.id) == [1]


async def test_only_allowed_names_are_taken(allowing: World, world: World):
    with pytest.raises(Refused, match=r"names \['mine'\]; .* may name are: noting, other") as no:
        await allowing.create(properties={"tidegate.hooks": f"{NAME},mine"})
    assert no.value.code is Code.INVALID_REQUEST
    with pytest.raises(Refused, match="may name are: none"):
        await world.create(properties={"TIDEGATE.Hooks": NAME})
    table = await allowing.create(properties=NAMED)
    refused = await set_hooks(allowing, table, f"{NAME},mine")
    assert isinstance(refused, Invalid)
    assert refused.code is Code.INVALID_ACTION
    # What the table named before, it may keep, or take out.
    assert isinstance(await set_hooks(world, table, f"other,{NAME}"), Committed)
    assert isinstance(await set_hooks(world, table, "other"), Committed)
    assert isinstance(await set_hooks(world, table, NAME), Invalid)


async def test_a_name_is_refused_that_can_be_none(allowing: World):
    for names in ("a b", "-", ",".join(f"n{number}" for number in range(101))):
        with pytest.raises(Refused, match="expected the names of at most 100 hooks"):
            await allowing.create(properties={"tidegate.hooks": names})


async def test_what_another_writer_left_there_is_no_name(
    allowing: World, index: Index, upkeep: PostgresUpkeep
):
    hook = Noting()
    caretaker = await caring(hook, allowing, index, upkeep)
    table = await allowing.create(properties=NAMED)
    assert table.metadata is not None
    odd = configured(table.metadata, {"tidegate.hooks": f"{NAME}, a b"})
    allowing.log_file(table, 1).write_bytes(odd.raw + b"\n")
    await commit(allowing, table)
    await caretaker.round()
    assert hook.versions(table.id) == [0]


def configured(metadata: Metadata, configuration: dict[str, str]) -> Metadata:
    changed: Metadata = with_fields(metadata, {"configuration": configuration})
    return changed
