"""The files of a version are read in batches that are bounded by their bytes, too."""

import pytest

from tests.builders.by_x import add
from tests.service.commit.committing import create
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits

pytestmark = pytest.mark.anyio


async def test_a_batch_is_bounded_by_its_bytes(engine):
    index = PostgresIndex(engine, limits=IndexLimits(file_page_bytes=2_000))
    table = await create(index, *(add(name, stats="x" * 900) for name in "abcdefg"))
    of_reader = [[a.path for a in batch] async for batch in index.files(table.id, 0)]
    async with index.commit_section(table.id) as section:
        of_section = [[a.path for a in batch] async for batch in section.live_files(0)]
    assert of_reader == of_section == [["a", "b"], ["c", "d"], ["e", "f"], ["g"]]
