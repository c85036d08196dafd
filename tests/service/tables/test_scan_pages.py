"""Pages of a scan are bounded by their bytes, too: writers make what is in them as long as they
like."""

import pytest

from tests.builders.by_x import add
from tests.service.commit.committing import create, land
from tidegate_service.core.ports.files.scanned import Wanted
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.reading.scanning import PAGE_BYTES

pytestmark = pytest.mark.anyio

LONG = PAGE_BYTES * 2 // 5
"""Three of these are more than a page has."""


async def all_of_them(values):
    return [True] * len(values)


@pytest.fixture
def files():
    """Long ones between short ones, in three partitions."""
    return [
        add(
            f"f{n:02}",
            partitionValues={"day": str(n % 3)},
            tags={"x": "x" * LONG} if n % 2 else {},
        )
        for n in range(20)
    ]


@pytest.mark.parametrize("partitions", [None, all_of_them], ids=["all", "by partition"])
@pytest.mark.parametrize("with_statistics", [False, True])
@pytest.mark.parametrize("batch_size", [2, 2_000])
async def test_they_are_no_longer_and_none_is_left_out(
    engine, files, partitions, with_statistics, batch_size
):
    index = PostgresIndex(engine, files_per_batch=batch_size)
    table = await land(index, await create(index), *files)
    wanted = Wanted(partitions=partitions, with_statistics=with_statistics)
    pages = [page async for page in index.stored_files(table.id, table.latest_version, wanted)]
    for page in pages:
        assert sum(map(len, page.actions[:-1])) < PAGE_BYTES
    assert len(pages) > 3
    assert sorted(path for page in pages for path in page.paths) == [f"f{n:02}" for n in range(20)]


async def test_nor_is_a_page_of_partitions(engine):
    asked: list[list[str]] = []

    async def long_ones(values):
        asked.append(values)
        return [len(value) > LONG for value in values]

    files = [add(f"f{n:02}", partitionValues={"day": str(n)}) for n in range(20)]
    # Lengths are read without their values: these are compressed to next to nothing.
    files += [add(f"g{n:02}", partitionValues={"day": f"{n}" + "x" * LONG}) for n in range(20)]
    index = PostgresIndex(engine)
    table = await land(index, await create(index), *files)
    wanted = Wanted(partitions=long_ones)
    pages = [page async for page in index.stored_files(table.id, table.latest_version, wanted)]
    values = [value for page in asked for value in page]
    assert len(values) == len(set(values)) == 40
    assert all(sum(map(len, page[:-1])) < PAGE_BYTES for page in asked)
    assert len(asked) <= 20 / 2 + 1
    assert sorted(path for page in pages for path in page.paths) == [f"g{n:02}" for n in range(20)]
