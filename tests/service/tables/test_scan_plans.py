"""What a page of a scan costs depends on the page, not on how long the table is."""

import json
from uuid import UUID

import pytest

from tests.builders.by_x import add
from tests.service.commit.committing import land
from tests.service.index.test_index_files import nodes
from tests.service.tables.scan_tables import create, table_metadata
from tidegate_service.index.postgres.connections import driver_of
from tidegate_service.index.reading.scanning import page_statement

pytestmark = pytest.mark.anyio

FILES, DAYS = 6_000, 20


@pytest.fixture(params=["analyzed", "not analyzed"])
async def table_id(request, index, engine):
    table = await create(index, table_metadata(mapped=False))
    files = [
        add(f"f{n:06}", partitionValues={"p": f"{n % DAYS:03}", "n": None}) for n in range(FILES)
    ]
    table = await land(index, table, *files)
    # Other tables' partitions are not in the way.
    other = await create(index, table_metadata(mapped=False))
    await land(index, other, *files[:2_000])
    if request.param == "analyzed":
        async with engine.connect() as connection:
            await (await driver_of(connection)).execute("ANALYZE files")
            await connection.commit()
    return UUID(table.id)


async def explain(engine, statement, values):
    """The plan's nodes that look at files."""
    async with engine.connect() as connection:
        cursor = await (await driver_of(connection)).execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {statement}", values
        )
        ((plan,),) = await cursor.fetchall()
    if not isinstance(plan, list):
        plan = json.loads(plan)
    every = list(nodes(plan[0]["Plan"]))
    assert not [node for node in every if node["Node Type"] == "Seq Scan"]
    return [node for node in every if node.get("Relation Name") == "files"]


def key(day: int) -> str:
    return f'{{"n":null,"p":"{day:03}"}}'


@pytest.mark.parametrize("with_statistics", [False, True])
async def test_a_page_of_partitions_reads_its_own_files_only(engine, table_id, with_statistics):
    values = {
        "table_id": table_id,
        "version": 1,
        "limit": 400,
        "partitions": [key(5), key(7), key(11)],
        "paths": ["f000100", "", ""],
        "dv_ids": ["", "", ""],
    }
    statement = page_statement("partitions", with_statistics=with_statistics)
    (scan,) = await explain(engine, statement, values)
    assert scan["Index Name"] == "files_partition_idx"
    # 295 of the first partition are left, the rest is the second's; the third is only begun.
    read = scan["Actual Rows"] * scan["Actual Loops"]
    assert read == pytest.approx(295 + 300, abs=3), scan
    assert scan.get("Rows Removed by Filter", 0) == 0
    assert "ROW(" in scan["Index Cond"]
    assert "partition = " in scan["Index Cond"]
