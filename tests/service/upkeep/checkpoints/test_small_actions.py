"""Application transactions and domains of a checkpoint, where they are many."""

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from tests.builders.proposals import proposal
from tests.service.upkeep.checkpointed import checkpointed, folder_of, names
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.checkpoints import SMALL_ACTION_LIMITS, SmallActionLimits
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits

pytestmark = pytest.mark.anyio

MOST = SMALL_ACTION_LIMITS.number
TXNS = text("""
    INSERT INTO app_transactions (table_id, app_id, version, action)
    SELECT CAST(:id AS uuid), 'a' || n, 0, convert_to(
        '{"txn":{"appId":"a' || n || '","version":' || n || '}}', 'UTF8')
    FROM generate_series(1, :many) AS n
""")


async def with_txns(world, engine, many):
    table = await world.create()
    async with engine.begin() as connection:
        await connection.execute(TXNS, {"id": table.id, "many": many})
    return table


async def test_pages_lack_none(world, engine):
    few = IndexLimits(small_actions_a_page=4, small_actions_page_bytes=100)
    world = world.over(PostgresIndex(engine, limits=few))
    table = await world.create()
    txns = [Txn(app_id=f"a{number:02}", version=number) for number in range(11)]
    await propose(world.context, table.id, proposal(*txns, read_version=0))
    await checkpointed(world, table)
    (name,) = names(table, "*.parquet")
    found = pq.read_table(folder_of(table) / "_delta_log" / name)["txn"].drop_null().to_pylist()
    assert [(one["appId"], one["version"]) for one in found] == [
        (txn.app_id, txn.version) for txn in txns
    ]


async def test_too_many_are_refused(world, engine):
    table = await with_txns(world, engine, MOST + 1)
    with pytest.raises(Refused, match="more than 100,000 application transactions"):
        await checkpointed(world, table)


async def test_too_long_ones_are_refused(world, engine):
    short = IndexLimits(small_actions=SmallActionLimits(size=100))
    world = world.over(PostgresIndex(engine, limits=short))
    table = await with_txns(world, engine, 5)
    with pytest.raises(Refused, match="100 bytes of them"):
        await checkpointed(world, table)
