"""Of a table's application transactions no more are read than may be told."""

from uuid import UUID

import psycopg
import pytest
from sqlalchemy import text

from tests.builders.by_x import add
from tests.service.commit.committing import create
from tidegate_service.core.errors import Refused
from tidegate_service.core.ports.checkpoints import SmallActionLimits
from tidegate_service.index.checkpoints.snapshots import snapshot_head
from tidegate_service.index.limits import CountingLimits, IndexLimits
from tidegate_service.index.postgres.engine import create_engine
from tidegate_service.index.reading.counting import counted

pytestmark = pytest.mark.anyio

_MANY = """
    INSERT INTO app_transactions
    SELECT %s, n::text, 0, '{"txn":{"appId":"a","version":1}}' FROM generate_series(1, 3000) AS n
"""
_READ = text("""
    SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0) FROM pg_stat_xact_user_tables
    WHERE relname = 'app_transactions'
""")


@pytest.fixture
async def connection(database_url):
    """Of its own: what a session's transactions before have read counts with this one's."""
    engine = create_engine(database_url)
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


async def many(index, database_url) -> UUID:
    table = await create(index, add("a"))
    async with await psycopg.AsyncConnection.connect(database_url) as other:
        await other.execute(_MANY, [table.id])
        await other.execute("ANALYZE app_transactions")
    return UUID(table.id)


async def test_a_table_is_counted(index, database_url, connection):
    table_id = await many(index, database_url)
    found = await counted(connection, table_id, None, CountingLimits(small_actions=10))
    assert found is not None
    assert found.txns is None
    assert (await connection.execute(_READ)).scalar_one() <= 50


async def test_a_checkpoint_is_refused(index, database_url, connection):
    table_id = await many(index, database_url)
    few = IndexLimits(small_actions=SmallActionLimits(number=10))
    with pytest.raises(Refused, match="more than 10 application transactions"):
        await snapshot_head(connection, table_id, None, few)
    assert (await connection.execute(_READ)).scalar_one() <= 50
