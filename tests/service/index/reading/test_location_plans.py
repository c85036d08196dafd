"""What lies in a new table's way is found by indexes, however many tables there are."""

import json
import uuid

import pytest
from sqlalchemy import text
from sqlalchemy.dialects import postgresql

from tests.service.commit.committing import create, new_table
from tidegate_service.core.errors import TableExists
from tidegate_service.index.tables.locations import in_the_way

pytestmark = pytest.mark.anyio

MANY = 5_000
_MANY_TABLES = """
    INSERT INTO tables
    SELECT (jsonb_populate_record(base, jsonb_build_object(
        'id', gen_random_uuid(), 'name', 'main.many.t' || n, 'location', :folder || n
    ))).*
    FROM tables AS base, generate_series(1, :many) AS n
    WHERE base.name = :name
"""


@pytest.mark.parametrize("folder", ["file:///Lake/Many/T", "s3://lake/Many/T"])
async def test_of_many_tables(index, engine, folder):
    table = await create(index)
    async with engine.begin() as connection:
        many = {"folder": folder, "many": MANY, "name": table.name}
        await connection.execute(text(_MANY_TABLES), many)
        await connection.execute(text("ANALYZE tables"))
        query = in_the_way(new_table(location=f"{folder}17/inside")).compile(
            dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True}
        )
        explained = (await connection.execute(text(f"EXPLAIN (FORMAT JSON) {query}"))).scalar_one()
    plan = json.dumps(explained)
    assert "Seq Scan" not in plan, plan


@pytest.mark.parametrize(
    ("there", "new", "is_in_the_way"),
    [
        ("file:///lake/a", "file:///lake/A/b", True),
        ("file:///lake/A/b", "file:///lake/a", True),
        ("file:///lake/a", "file:///lake/a0", False),
        ("file:///lake/a-b", "file:///lake/a", False),
        ("file:///lake/aß/x", "file:///lake/aß", True),
        ("s3://lake/a/b", "s3://lake/a", True),
        ("s3://lake/A", "s3://lake/a/b", False),
        ("s3://lake/a\U0010ffff", "s3://lake/a", False),
    ],
)
async def test_what_is_in_the_way(index, there, new, is_in_the_way):
    # A lake of its own: others' tables stay.
    lake = f"lake/{uuid.uuid4()}/"
    there, new = (place.replace("lake/", lake, 1) for place in (there, new))
    await create(index, table=new_table(location=there))
    made = new_table(location=new)
    if is_in_the_way:
        with pytest.raises(TableExists):
            async with index.creation_section(made):
                pass
    else:
        async with index.creation_section(made) as section:
            assert section.table.latest_version == -1
