"""Pages of tables by name have those that lie in the caller's scopes."""

import random
from collections.abc import Sequence

import pytest

from tests.service.commit.committing import create, new_table
from tidegate_service.core.access.roles import Grant, Role
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads

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
