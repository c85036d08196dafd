"""Pages of tables by name: those of a narrow scope cost what they have, whatever others have."""

import json
import random
from collections.abc import Sequence

import pytest
from sqlalchemy import text
from sqlalchemy.dialects import postgresql

from tests.service.commit.committing import create, new_table
from tidegate_service.core.access.roles import Grant, Role
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.index.reading.listed import page_of, spans_of

pytestmark = pytest.mark.anyio

NAMES = [
    "main.air.a",
    "main.air.b",
    "Main.Air-x.a",
    "main.air_x.a",
    "main.air.ab",
    "main.air.a-b",
    "main.air0.a",
    "main.sea.a",
    "main-2.air.a",
    "main2.air.a",
    "other.air.a",
    "other.AIR.b",
]
SCOPES = [
    "main",
    "main.air",
    "main.air.a",
    "main.air-x",
    "main.sea.a",
    "other",
    "none",
    "other.air",
    "main.air.none",
]
PREFIXES = ["", "m", "main.", "main.air", "Main.AIR.", "main.air.a", "other.", "n", "z", "é"]
CURSORS = [
    None,
    "",
    "main.air.a",
    "MAIN.air.b",
    "main.air/",
    "main.air0.a",
    "other.air.a",
    "z",
    "é",
]


async def listed(index, **asked) -> list[str]:
    found = await index.tables(limit=100, known=ReplicatedHeads(), **asked)
    return [table.name for table in found]


def expected(scopes: Sequence[str], prefix: str, after: str | None) -> list[str]:
    grants = [Grant(Role.READER, scope) for scope in scopes]
    return sorted(
        (
            name
            for name in NAMES
            if any(grant.covers(name) for grant in grants)
            and name.lower().startswith(prefix.lower())
            and (after is None or name.lower() > after.lower())
        ),
        key=str.lower,
    )


async def test_they_are_those_that_lie_in_the_scopes(index):
    for name in NAMES:
        await create(index, table=new_table(name=name))
    drawn = random.Random(5)
    several = [drawn.sample(SCOPES, drawn.randint(2, 4)) for _ in range(20)]
    for scopes in ([], *([scope] for scope in SCOPES), SCOPES, *several):
        for _ in range(8):
            prefix, after = drawn.choice(PREFIXES), drawn.choice(CURSORS)
            found = await listed(index, prefix=prefix, after=after, within=scopes)
            assert found == expected(scopes, prefix, after), (scopes, prefix, after)
        page = await index.tables(
            prefix="", after=None, within=scopes, limit=2, known=ReplicatedHeads()
        )
        assert [table.name for table in page] == expected(scopes, "", None)[:2]


def test_what_lies_in_another_scope_is_looked_up_once():
    within = ["main.air", "main", "main.air.a", "main-2.x"]
    assert spans_of(within, prefix="", after=None) == [
        ("main", "main!"),
        ("main.", "main/"),
        ("main-2.x", "main-2.x!"),
        ("main-2.x.", "main-2.x/"),
    ]
    assert spans_of(within, prefix="MAIN.sea", after="main.sea.k") == [("main.sea.k", "main/")]
    assert spans_of(within, prefix="other", after=None) == []


MANY = 5_000
_MANY_TABLES = """
    INSERT INTO tables
    SELECT (jsonb_populate_record(base, jsonb_build_object(
        'id', gen_random_uuid(), 'name', 'main.many.t' || n, 'location', base.location || n
    ))).*
    FROM tables AS base, generate_series(1, :many) AS n
    WHERE base.name = :name
"""


@pytest.mark.parametrize(
    ("within", "prefix", "most"),
    [
        (["main.other", "main.z.none"], "", 0),
        (["main.other", "main.z.none"], "main.", 0),
        (["main"], "main.other.", 0),
        (None, "main.other.", 0),
        # One more than a page, of what lies there.
        (["main.many", "main.other"], "", 200),
    ],
)
async def test_nothing_of_others_is_gone_through(index, engine, within, prefix, most):
    own = await create(index, table=new_table(name="main.other.a"))
    table = await create(index, table=new_table(name="main.many.t"))
    async with engine.begin() as connection:
        await connection.execute(text(_MANY_TABLES), {"many": MANY, "name": table.name})
        await connection.execute(text("ANALYZE tables"))
        page = page_of(prefix=prefix, after=None, limit=100, within=within, most_bytes=1 << 20)
        query = page.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True})
        explained = await connection.execute(
            text(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {query}".replace(":", r"\:"))
        )
    (plan,) = explained.scalar_one()
    assert "Seq Scan" not in json.dumps(plan)
    assert gone_through(plan["Plan"]) <= most + 2
    assert own.name in await listed(index, prefix=prefix, after=None, within=["main.other"])


def gone_through(node: dict) -> int:
    """The rows of tables that a plan has looked at."""
    mine = 0
    if node.get("Relation Name") == "tables":
        looked_at = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        mine = round(looked_at * node["Actual Loops"])
    return mine + sum(map(gone_through, node.get("Plans", [])))
