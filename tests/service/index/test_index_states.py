"""The state of a version, read by its length."""

import msgspec
import pytest

from tests.builders.by_x import METADATA, add
from tests.service.commit.committing import create, land
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import decode, encode
from tidegate_service.core.ports.index import TakesLong
from tidegate_service.core.ports.records import LONG_METADATA

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
