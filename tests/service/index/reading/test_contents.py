"""Large versions are read from the index in pieces, and held nowhere."""

import os
from contextlib import nullcontext
from uuid import UUID

import pytest
import zstandard
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import IndexUnavailable, StorageUnavailable
from tidegate_service.core.ports.index import TakesLong
from tidegate_service.core.sharing.pools import Pool
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.rows.frames import Frame, ZstdError
from tidegate_service.index.rows.records import compressed

MIB = 1024 * 1024
PIECE = 128 * 1024
BLOCK = 128 * 1024
"""Most that a block of zstd says."""
BY_THEMSELVES = {
    "zeros": bytes(40 * MIB),
    "noise": os.urandom(3 * MIB),
    "lines": b"".join(b'{"add":{"path":"month=5/%d"}}\n' % n for n in range(100_000)),
    "short": b"a",
    "nothing": b"",
}


def expanded(frame: Frame, stored: bytes, fed: int, most: int) -> list[bytes]:
    """All of it, made of pieces of `fed` bytes."""
    made = []
    for start in range(0, len(stored), fed):
        frame.feed(stored[start : start + fed])
        while text := frame.more(most):
            made.append(text)
    assert frame.is_over
    return made


@pytest.mark.parametrize("content", BY_THEMSELVES.values(), ids=BY_THEMSELVES)
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("fed", [17, 100_000])
def test_a_frame_is_expanded_a_few_blocks_at_a_time(content, checksum, fed):
    stored = zstandard.ZstdCompressor(level=1, write_checksum=checksum).compress(content)
    made = expanded(Frame(stored), stored, fed, BLOCK)
    assert b"".join(made) == content
    assert max(map(len, made), default=0) < 2 * BLOCK


def test_what_is_no_frame_is_told():
    with pytest.raises(ZstdError):
        Frame(b"no frame of zstd")
    broken = bytearray(compressed(os.urandom(100)))
    broken[-103] |= 6  # a block of a type that there is not
    with pytest.raises(ZstdError):
        expanded(Frame(broken), broken, len(broken), BLOCK)


@pytest.fixture
def index(engine: AsyncEngine) -> PostgresIndex:
    return PostgresIndex(engine, limits=IndexLimits(content_piece_bytes=PIECE))


@pytest.fixture
def threads():
    return Pool("pieces", 1).of("somebody")


async def large(world, *, catalog_managed: bool = True):
    """A table whose version 1 takes some megabytes however it is stored, and waits for publishing
    where it is catalog-managed."""
    table = await world.create(catalog_managed=catalog_managed)
    await publish_table(world.context.index, world.context.storage, table)
    tags = {"a": os.urandom(MIB).hex()}
    files = (add(f"{number}", tags=tags | {"b": os.urandom(MIB).hex()}) for number in range(5))
    await propose(world.context, table.id, proposal(*files, read_version=0))
    return await get_table(world.context, table.id)


async def take(pieces, taken: list[bytes]) -> None:
    """All that come, of which the last ones may never."""
    async for piece in pieces:
        taken.append(piece)


async def joined(pieces) -> bytes:
    taken: list[bytes] = []
    await take(pieces, taken)
    return b"".join(taken)


@pytest.mark.anyio
async def test_all_of_it_comes_in_order_and_none_is_held(world, threads):
    table = await large(world)
    found = await world.context.index.content(table.id, 1)
    turns = 0

    def turn():
        nonlocal turns
        turns += 1
        return nullcontext()

    content = await joined(found.pieces(turn, threads))
    assert len(content) == len(found) > 20 * MIB
    # Two characters of hex are a byte.
    assert turns > 9 * MIB // PIECE
    assert await publish_table(world.context.index, world.context.storage, table) == 1
    assert content == world.log_file(table, 1).read_bytes()


@pytest.mark.anyio
@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_who_needs_all_of_it_gets_it_by_pieces_too(world, catalog_managed):
    table = await large(world, catalog_managed=catalog_managed)
    index = world.context.index
    stored = await index.stored_content(table.id, 1)
    content = b"".join(stored.pieces())
    async with index.commit_section(table.id) as section:
        assert b"".join((await section.stored_content(1)).pieces()) == content
        held = await section.content(1)
        assert (held is not None) is catalog_managed
        with pytest.raises(TakesLong):
            await section.winners(0, 1, most_bytes=PIECE)
        (winner,) = await section.winners(0, 1)
        assert len(winner.adds) == 5


ANOTHER = "UPDATE commits SET content_sha256 = repeat('0', 64) WHERE version = 1"
SHORTER = "UPDATE commits SET content = substring(content FOR 1000000) WHERE version = 1"
NOISE = """
    UPDATE commits SET content = overlay(content PLACING '\\x00010203' FROM 1000000)
    WHERE version = 1
"""


@pytest.mark.anyio
@pytest.mark.parametrize("change", [ANOTHER, SHORTER, NOISE], ids=["digest", "length", "bytes"])
async def test_what_changes_meanwhile_is_never_ended(world, engine, threads, change):
    """As where the table is made anew. Whoever reads on would have parts of two versions."""
    table = await large(world)
    found = await world.context.index.kept_content(table.id, 1)
    pieces = found.pieces(nullcontext, threads)
    taken = [await anext(pieces)]
    async with engine.begin() as connection:
        await connection.exec_driver_sql(change)
    with pytest.raises(IndexUnavailable, match="not those any more"):
        await take(pieces, taken)
    assert sum(map(len, taken)) < len(found)


@pytest.mark.anyio
async def test_what_goes_meanwhile_is_never_ended(world, threads):
    table = await large(world, catalog_managed=False)
    found = await world.context.index.kept_content(table.id, 1)
    pieces = found.pieces(nullcontext, threads)
    await anext(pieces)
    await world.lose(table)
    with pytest.raises(IndexUnavailable, match="not those any more"):
        await joined(pieces)


@pytest.mark.anyio
@pytest.mark.parametrize("nobodys", [str(UUID(int=1)), "nul\0"])
async def test_an_id_that_is_none_s_has_no_content(world, nobodys):
    assert await world.context.index.content(nobodys, 0) is None
    assert await world.context.index.kept_content(nobodys, 0) is None
    assert await world.context.index.stored_content(nobodys, 0) is None


@pytest.mark.anyio
async def test_what_is_held_to_be_published_is_bounded(world, engine):
    """Two tables have a large version each, and there is room for one of them."""
    index = PostgresIndex(engine, limits=IndexLimits(published_bytes=15 * MIB))
    world = world.over(index)
    first, second = await large(world), await large(world)
    waiting = await index.unpublished_versions(first.id, limit=10)
    ((version, content),) = waiting.versions
    assert (version, len(content) > 20 * MIB) == (1, True)
    with pytest.raises(StorageUnavailable, match="large versions hold which are published"):
        await index.unpublished_versions(second.id, limit=10)
    with pytest.raises(StorageUnavailable):
        await publish_table(index, world.context.storage, second)
    del waiting, content
    for table in (second, first):
        assert await publish_table(index, world.context.storage, table) == 1
        assert world.log_file(table, 1).stat().st_size > 20 * MIB
