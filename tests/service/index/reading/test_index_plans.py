"""The statements of commits are planned now and then: not each time, and never for good."""

import json
import time

import psycopg
import pytest
from sqlalchemy import text

from tests.builders.by_x import add
from tests.service.commit.committing import append, create
from tidegate_service.index.postgres import pipeline
from tidegate_service.index.postgres.parameters import texts, uuids
from tidegate_service.index.postgres.pipeline import Query, Statement, run
from tidegate_service.index.reading.used_ids import USED_IDS

pytestmark = pytest.mark.anyio

_PLANS = text("""
    SELECT sum(generic_plans)::int AS kept, sum(custom_plans)::int AS made
    FROM pg_prepared_statements WHERE name LIKE 'tidegate_%'
""")
_MANY_COMMITS = """
    INSERT INTO commits
    SELECT (jsonb_populate_record(base, jsonb_build_object(
        'version', n, 'previous_version', n - 1, 'transaction_id', 'id' || n,
        'content', '\\x00', 'content_sha256', ''
    ))).*
    FROM commits AS base, generate_series(1, 5000) AS n
    WHERE base.version = 0
"""


async def test_a_commit_makes_no_plans_of_its_own(index):
    table = await create(index)
    plans = []
    for n in range(3):
        async with index.commit_group({table.id: [f"id{n}"]}, wait=True) as group:
            section = group.sections[table.id]
            await append(section, add(f"f{n}"))
            await section.flush()
            async with section._unit.statements() as connection:
                plans += (await connection.execute(_PLANS)).all()
            await group.save()
    first, *_, last = plans
    assert last.kept >= first.kept + 10
    # Those of the table's creation.
    assert last.made == first.made


async def test_what_else_is_asked_under_the_lock_is_planned_by_itself(index):
    table = await create(index)
    async with (
        index.commit_group({table.id: ["id"]}, wait=True) as group,
        group.sections[table.id]._unit.statements() as connection,
    ):
        assert (await connection.execute(text("SHOW plan_cache_mode"))).scalar() == "auto"


@pytest.mark.parametrize("plans_live", [0.0, 3600.0])
async def test_no_plan_outlives_an_empty_table(index, database_url, plans_live):
    """In an empty table any index will do, and one of them is read from end to end later on."""
    async with await psycopg.AsyncConnection.connect(
        database_url, options="-c enable_seqscan=off -c enable_bitmapscan=off"
    ) as driver:
        await run(driver, [Query(USED_IDS, uuids([]), texts([]))])
        pipeline._SESSIONS[driver].planned_until = time.monotonic() + plans_live
        await driver.commit()
        table = await create(index)
        await driver.execute(_MANY_COMMITS)
        await driver.commit()
        explain = Statement(
            "EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) "
            f"EXECUTE {USED_IDS.name.decode()} ('{{{table.id}}}', '{{none}}')"
        )
        ((explained,),) = (await run(driver, [Query(explain)]))[0]
    is_read_through = "Rows Removed by Filter" in json.dumps(json.loads(explained))
    assert is_read_through == (plans_live > 0)
