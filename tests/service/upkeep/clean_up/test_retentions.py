"""By a retention that cannot be read, nothing is deleted and nothing forgotten."""

import pytest
from msgspec.structs import replace
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add, metadata, remove
from tests.builders.proposals import proposal
from tests.service.upkeep.aged import LogOf, commit, expired
from tests.service.upkeep.checkpointed import checkpointed, names
from tests.service.upkeep.checkpoints.test_checkpoints import rows
from tests.service.upkeep.clean_up.test_clean_up_current import foreign
from tests.service.world import World
from tidegate_protocol.log.actions import Txn
from tidegate_service.background.caretaker import Caretaker
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.observe.telemetry import UpkeepKind
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.upkeep.standing import PostgresUpkeep

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("text", ["interval +90 days", "interval 12 months", "P90D"])
async def test_no_log_is_cleaned_up(
    world: World, engine: AsyncEngine, caretaker: Caretaker, upkeep: PostgresUpkeep, text: str
):
    table = await expired(world, engine)
    await said(world, table, delta_logRetentionDuration=text)
    await caretaker.round()
    assert LogOf(world, table).versions == list(range(12))
    trouble = (await upkeep.standing(table.id))[UpkeepKind.CLEAN_UP].trouble
    assert "delta.logRetentionDuration is" in str(trouble)
    assert text in str(trouble)


async def test_checkpoints_keep_all(world: World):
    table = await world.create()
    await propose(
        world.context, table.id, proposal(add("a"), Txn(app_id="app", version=1, last_updated=1))
    )
    gone = replace(remove("a"), deletion_timestamp=1, raw=b"")
    await propose(world.context, table.id, proposal(gone, read_version=1, operation="DELETE"))
    await said(
        world,
        table,
        delta_deletedFileRetentionDuration="interval +90 days",
        delta_setTransactionRetentionDuration="P90D",
    )
    await commit(world, table, 1)
    await checkpointed(world, table)
    (name,) = names(table, "*.checkpoint.*")
    assert [row["path"] for row in rows(table, name, "remove")] == ["a"]
    assert [row["appId"] for row in rows(table, name, "txn")] == ["app"]


async def said(world: World, table, **properties: str) -> None:
    """Another writer sets properties, past the service, which reads that in."""
    changed = replace(metadata(**properties), id=table.metadata.id, raw=b"")

    head = await get_table(world.context, table.id)
    foreign(world, table, head.latest_version + 1, changed)
    await propose(world.context, table.id, proposal(add("next")))
