"""The state of a version, read by its length."""

import asyncio
import threading

import msgspec
import pytest

from tests.builders.by_x import METADATA, add
from tests.service.commit.committing import create, land
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import decode, encode
from tidegate_service.core.instance.locked_table import LockedTable
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.observe import correlation
from tidegate_service.core.observe.correlation import Correlation
from tidegate_service.core.ports.index import TakesLong
from tidegate_service.core.ports.records import LONG_METADATA
from tidegate_service.core.sharing import offload

pytestmark = pytest.mark.anyio

WIDE, SHORT = 1, 2


def metadata(length: int) -> Metadata:
    return decode(
        encode(msgspec.structs.replace(METADATA, raw=b"", configuration={"a": "b" * length}))
    )


async def narrowed(index):
    """A table whose version 1 is wide, and whose head is not."""
    table = await create(index, add("a"))
    table = await land(index, table, metadata(LONG_METADATA))
    return await land(index, table, metadata(1))


async def test_no_more_is_read_than_asked_for(index):
    table = await narrowed(index)
    found = await index.state_at(table.id, WIDE)
    size = len(found.protocol.raw) + len(found.metadata.raw)
    assert found.metadata.configuration == {"a": "b" * LONG_METADATA}
    assert await index.state_at(table.id, WIDE, most_bytes=size) == found
    with pytest.raises(TakesLong):
        await index.state_at(table.id, WIDE, most_bytes=size - 1)
    assert await index.state_at(table.id, SHORT, most_bytes=LONG_METADATA) is not None
    assert await index.state_at(table.id, SHORT + 1, most_bytes=0) is None
    async with index.commit_section(table.id) as section:
        with pytest.raises(TakesLong):
            await section.state_at(WIDE, most_bytes=size - 1)
        # It goes on.
        assert await section.state_at(WIDE) == found


async def test_a_shared_group_reads_no_wide_version(index):
    """Its head says nothing of what the table was before."""
    table = await narrowed(index)
    assert table.metadata_bytes <= LONG_METADATA
    async with index.commit_section(table.id) as section:
        shared = LockedTable(section, WindowCache(), CommitLimits(), shared=True)
        with pytest.raises(TakesLong):
            await shared.state_at(WIDE)
        assert (await shared.state_at(SHORT)).metadata.configuration == {"a": "b"}
        alone = LockedTable(section, WindowCache(), CommitLimits())
        assert len((await alone.state_at(WIDE)).metadata.raw) > LONG_METADATA


@pytest.mark.parametrize("locked", [False, True], ids=["index", "section"])
async def test_a_wide_one_is_decoded_in_a_thread_of_its_caller(index, locked):
    table, may_end = await narrowed(index), threading.Event()
    correlation.enter(Correlation(id="request", share="ann"))
    busy = asyncio.create_task(offload.run(offload.HEAVY, may_end.wait, 30))
    await asyncio.sleep(0)
    try:
        if locked:
            async with index.commit_section(table.id) as section:
                await decoded_behind(section.state_at, may_end)
        else:
            await decoded_behind(lambda version: index.state_at(table.id, version), may_end)
    finally:
        may_end.set()
        await busy


async def decoded_behind(state_at, may_end: threading.Event) -> None:
    """See that a wide version waits for the caller's other work in threads, and no other does."""
    async with asyncio.timeout(20):
        assert len((await state_at(SHORT)).metadata.raw) < LONG_METADATA
        wide = asyncio.create_task(state_at(WIDE))
        done, _ = await asyncio.wait([wide], timeout=0.5)
        assert not done
        may_end.set()
        assert len((await wide).metadata.raw) > LONG_METADATA
