"""Which version there was at a time."""

import pytest

from tests.service.commit.committing import create, land

pytestmark = pytest.mark.anyio


async def test_the_version_at_a_time(index):
    table = await create(index)
    for _ in range(2):
        table = await land(index, table)
    assert await index.version_at(table.id, 999) is None
    assert [await index.version_at(table.id, t) for t in (1_000, 1_001, 1_999)] == [0, 1, 2]
