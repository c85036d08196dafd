"""By which ids of its metadata a forgotten table is known again: all that it ever had, whatever of
its log the index had when it was forgotten."""

import pytest
from msgspec.structs import replace

from tests.builders.by_x import METADATA, PROTOCOL
from tests.service.commit.committing import create, land, new_table, ratified
from tidegate_service.core.access.roles import OPERATOR

pytestmark = pytest.mark.anyio

FIRST, SECOND = METADATA, replace(METADATA, raw=b"", id="00000000-0000-0000-0000-000000000002")
OTHER = replace(METADATA, raw=b"", id="00000000-0000-0000-0000-000000000003")


async def later_alone(section, version):
    """The section's table begins at a checkpoint, of metadata with its second id."""

    async def batches():
        yield [PROTOCOL, SECOND]

    await section.load_base(ratified(version), batches())


async def known_by(index, table):
    """The ids by which it is found where a table is registered at its place."""
    async with index.creation_section(new_table(location=table.location)) as section:
        return [one.id for one in (FIRST, SECOND, OTHER) if await section.forgotten({one.id})]


async def rebuilt(index):
    """A table whose index was made anew from a checkpoint behind what replaced it."""
    table = await create(index)
    table = await land(index, table, SECOND)
    async with index.commit_section(table.id) as section:
        await section.reset()
        await later_alone(section, 1)
        await section.restore_ids()
        await section.save()
    return section.table


async def test_of_versions_that_a_rebuild_left_behind(index):
    table = await rebuilt(index)
    assert table.first_version == 1
    assert await index.forget(table.id, by=OPERATOR)
    assert await known_by(index, table) == [FIRST.id, SECOND.id]


async def test_however_often_it_is_registered_without_them(index):
    table = await rebuilt(index)
    for _ in range(2):
        assert await index.forget(table.id, by=OPERATOR)
        async with index.creation_section(new_table(location=table.location)) as section:
            await later_alone(section, 1)
            assert await section.metadata_ids() == {SECOND.id}
            (kept,) = await section.forgotten({SECOND.id})
            await section.recall(kept)
            await section.save()
        table = section.table
    assert await index.forget(table.id, by=OPERATOR)
    assert await known_by(index, table) == [FIRST.id, SECOND.id]


async def test_what_was_not_saved_is_not_kept(index):
    table = await create(index)
    async with index.commit_section(table.id) as section:
        await section.reset()
        await later_alone(section, 0)
        await section.restore_ids()
    assert await index.forget(table.id, by=OPERATOR)
    assert await known_by(index, table) == [FIRST.id]
