"""Logs of catalog-managed tables that the service cleans up itself, after a backup was made."""

from sqlalchemy.ext.asyncio import AsyncEngine

from tests.service.upkeep.aged import LogOf, age, let_it_be_tomorrow, rows_of
from tests.service.world import World
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.store.storage import Storage
from tidegate_service.core.upkeep.clean_up import CleanUp
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.index.upkeep.standing import PostgresUpkeep

A_DAY = {"delta.logRetentionDuration": "interval 1 day"}


async def cleaned_up(
    world: World, url: str, storage: Storage, table: TableRecord, *, to: int
) -> LogOf:
    """The table's log after it got a checkpoint of a version, its versions up to the one behind
    that became three days old, and the service cleaned it up."""
    engine: AsyncEngine = create_engine(url)
    try:
        index, log = world.context.index, LogOf(world, table)
        log.checkpoint(to, await rows_of(index, table, to))
        await age(world, engine, table, {range(to + 2): 3})
        # A service that ran on the database has looked already what there is to be deleted today.
        await let_it_be_tomorrow(engine)
        upkeep = PostgresUpkeep(engine)
        await Caretaker(index, upkeep, [CleanUp(index, upkeep, storage)], share=1).round()
    finally:
        await engine.dispose()
    assert log.versions[0] == to
    assert log.checkpoints == [to]
    return log
