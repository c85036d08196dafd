"""A log is cut by what its table says now, not by what the index knew of it before."""

import json

import pytest
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add, metadata
from tests.builders.proposals import proposal
from tests.service.tables.delta_logs import line
from tests.service.upkeep.aged import LogOf, age, commit, expired, let_it_be_tomorrow, rows_of
from tests.service.upkeep.conftest import Caring
from tests.service.world import World
from tidegate_protocol.log.actions import DomainMetadata, Metadata, Txn
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.limits import UpkeepLimits
from tidegate_service.core.observe.faults import CleanUpStep, Side
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio


def foreign(world: World, table, version: int, *actions) -> None:
    """A commit past the service."""
    lines = "\n".join(json.dumps(line(action)) for action in actions)
    world.log_file(table, version).write_text(f"{lines}\n")


def kept_for_ever(table) -> Metadata:
    return replace(metadata(delta_enableExpiredLogCleanup="false"), id=table.metadata.id, raw=b"")


async def trouble(upkeep: PostgresUpkeep, table) -> str:
    return str((await upkeep.standing(table.id))[UpkeepKind.CLEAN_UP].trouble)


async def test_a_change_that_was_not_read_in_yet_counts(
    world: World, engine: AsyncEngine, caretaker: Caretaker, upkeep: PostgresUpkeep
):
    table = await expired(world, engine)
    foreign(world, table, 10, add("foreign"))
    foreign(world, table, 11, kept_for_ever(table))
    await caretaker.round()
    assert LogOf(world, table).versions == list(range(12))
    assert "version 11 in the log, which may change the table" in await trouble(upkeep, table)


async def test_commits_that_change_nothing_hinder_nothing(
    world: World, engine: AsyncEngine, caring: Caring, upkeep: PostgresUpkeep
):
    table = await expired(world, engine)
    for version in (10, 11):
        foreign(world, table, version, add(f"foreign{version}"))
    await caring(limits=UpkeepLimits(unread_versions=2)).round()
    assert "more than 2 versions behind 9" in await trouble(upkeep, table)
    assert LogOf(world, table).versions[0] == 0
    await let_it_be_tomorrow(engine)
    await caring(limits=UpkeepLimits(unread_versions=3)).round()
    assert await trouble(upkeep, table) == "None"
    assert LogOf(world, table).versions[0] == 5


LOST = ["protocol", "metaData", "txn", "domainMetadata"]


@pytest.mark.parametrize("lost", [*LOST, "nothing"])
async def test_a_checkpoint_that_lacks_anything_stands_for_nothing(
    world: World, engine: AsyncEngine, caretaker: Caretaker, upkeep: PostgresUpkeep, lost: str
):
    table = await world.create(properties={"delta.feature.domainMetadata": "supported"})
    small = [
        Txn(app_id="app", version=1),
        DomainMetadata(domain="own", configuration="{}", removed=False),
    ]
    await propose(world.context, table.id, proposal(add("a"), *small, read_version=0))
    await commit(world, table, 5)
    log = LogOf(world, table)
    rows = [*await rows_of(world.context.index, table, 5), *map(line, small)]
    for row in rows:
        if lost == "protocol" and lost in row:
            row[lost]["writerFeatures"] = [*row[lost]["writerFeatures"], "changeDataFeed"]
        elif lost == "metaData" and lost in row:
            row[lost]["configuration"] = {"delta.appendOnly": "true"}
    log.checkpoint(5, [row for row in rows if lost not in row or lost in LOST[:2]])
    await age(world, engine, table, {range(7): 40})
    await caretaker.round()
    if lost == "nothing":
        assert log.versions == [5, 6]
        return
    assert log.versions == list(range(7))
    assert lost in await trouble(upkeep, table)


@pytest.mark.parametrize("retention", ["interval 1 day", None])
async def test_transactions_may_lack_where_the_table_drops_them(
    world: World, engine: AsyncEngine, caretaker: Caretaker, retention: str | None
):
    name = "delta.setTransactionRetentionDuration"
    table = await world.create(properties={} if retention is None else {name: retention})
    await propose(world.context, table.id, proposal(add("a"), Txn(app_id="app", version=1)))
    await commit(world, table, 5)
    log = LogOf(world, table)
    log.checkpoint(5, await rows_of(world.context.index, table, 5))
    await age(world, engine, table, {range(7): 40})
    await caretaker.round()
    assert log.versions[0] == (0 if retention is None else 5)


class Meanwhile:
    """Commits a change behind a step."""

    def __init__(self, world: World, table, at: CleanUpStep) -> None:
        self._world = world
        self._table = table
        self._at = at

    async def reached(self, step, side) -> None:
        if (step, side) == (self._at, Side.AFTER):
            foreign(self._world, self._table, 10, kept_for_ever(self._table))


@pytest.mark.parametrize("at", [CleanUpStep.L1_CHECK, CleanUpStep.L2_RECORD])
async def test_so_does_one_that_comes_meanwhile(
    world: World, engine: AsyncEngine, caring: Caring, at: CleanUpStep
):
    table = await expired(world, engine)
    await caring(faults=Meanwhile(world, table, at)).round()
    assert LogOf(world, table).versions == list(range(11))
    assert (await get_table(world.context, table.id)).latest_version == 9
