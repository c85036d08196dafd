"""What is kept of a forgetting while it lasts, and who goes on with it."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.world import World
from tidegate_service.background.forgetter import go_on
from tidegate_service.core.access.roles import ANONYMOUS, Caller, Principal
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import NotFound, StorageUnavailable, TableQuarantined
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.tables.forgettings import PostgresForgettings

pytestmark = pytest.mark.anyio
ANNA = Caller(principal=Principal(name="anna", grants=()), request_id="r1")


@pytest.fixture
def forgettings(engine) -> PostgresForgettings:
    return PostgresForgettings(engine)


@pytest.fixture
def keeping(world: World, forgettings) -> World:
    """A world that keeps what is asked for."""
    return World(replace(world.context, forgettings=forgettings))


async def end_claims(engine) -> None:
    async with engine.begin() as connection:
        await connection.execute(
            text("UPDATE forgettings SET claimed_until = clock_timestamp() - interval '1 second'")
        )


async def kept(engine) -> list[str]:
    async with engine.begin() as connection:
        rows = await connection.execute(text("SELECT principal FROM forgettings"))
        return list(rows.scalars())


async def test_nothing_is_kept_of_a_table_that_is_forgotten(keeping, engine):
    table = await keeping.create()
    await forget_table(keeping.context, table.id)
    assert await kept(engine) == []


async def test_a_claim_keeps_others_away_until_it_ends(keeping, engine, forgettings):
    table = await keeping.create()
    await forgettings.keep(table.id, by=ANNA)
    assert await go_on(keeping.context) == 0
    await end_claims(engine)
    found = await forgettings.next()
    assert found is not None
    assert (found.table_id, found.by, found.failures) == (table.id, ANNA, 0)
    assert await forgettings.next() is None


async def test_a_lost_claim_says_nothing_any_more(keeping, engine, forgettings):
    table = await keeping.create()
    lost = await forgettings.keep(table.id, by=ANNA)
    await forgettings.keep(table.id, by=ANONYMOUS)
    await forgettings.drop(table.id, lost)
    await forgettings.put_off(table.id, lost, again_in_s=-1)
    assert await kept(engine) == ["anonymous"]
    assert await forgettings.next() is None


async def test_what_was_cut_off_goes_on_in_the_name_of_who_asked(keeping, engine, forgettings):
    table = await keeping.create(catalog_managed=True)
    await propose(keeping.context, table.id, proposal(add("a")))
    await forgettings.keep(table.id, by=ANNA)
    await end_claims(engine)
    assert await go_on(keeping.context) == 1
    with pytest.raises(NotFound):
        await get_table(keeping.context, table.id)
    assert await kept(engine) == []
    async with engine.begin() as connection:
        rows = await connection.execute(
            text("SELECT principal, request_id FROM audit WHERE deed = 'forget'")
        )
        assert [tuple(row) for row in rows] == [("anna", "r1")]


async def test_whoever_is_told_that_it_failed_has_nothing_go_on(keeping, engine, monkeypatch):
    table = await keeping.create()

    async def fail(*_: object, **__: object) -> bool:
        raise StorageUnavailable("the store is away")

    monkeypatch.setattr(type(keeping.context.index), "forget", fail)
    with pytest.raises(StorageUnavailable):
        await forget_table(keeping.context, table.id)
    assert await kept(engine) == []


async def test_what_fails_behind_everybodys_back_is_tried_again_later(
    keeping, engine, forgettings, monkeypatch
):
    table = await keeping.create()
    await forgettings.keep(table.id, by=ANNA)
    await end_claims(engine)

    async def fail(*_: object, **__: object) -> bool:
        raise StorageUnavailable("the store is away")

    with monkeypatch.context() as broken:
        broken.setattr(type(keeping.context.index), "forget", fail)
        assert await go_on(keeping.context) == 0
    assert await kept(engine) == ["anna"]
    assert await go_on(keeping.context) == 0
    await end_claims(engine)
    found = await forgettings.next()
    assert found is not None
    assert found.failures == 1
    await end_claims(engine)
    assert await go_on(keeping.context) == 1


async def test_it_is_given_up_where_the_table_is_quarantined(
    keeping, engine, forgettings, monkeypatch
):
    table = await keeping.create()
    await forgettings.keep(table.id, by=ANNA)
    await end_claims(engine)

    async def refuse(*_: object, **__: object) -> bool:
        raise TableQuarantined("its log is another table's")

    monkeypatch.setattr(type(keeping.context.index), "forget", refuse)
    assert await go_on(keeping.context) == 0
    assert await kept(engine) == []
