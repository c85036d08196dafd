"""A store that tells of what it is asked, under each test of this room."""

from pathlib import Path

import pytest

from tests.service.log.watched.reading import read
from tests.service.storage.watched_store import WatchedStorage
from tests.service.world import World, make_world
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.storage import ObjectStorage


@pytest.fixture
def store(tmp_path: Path) -> WatchedStorage:
    return WatchedStorage(ObjectStorage(warehouse=tmp_path.as_uri()))


@pytest.fixture
def watched(index: PostgresIndex, store: WatchedStorage, tmp_path: Path) -> World:
    """One instance's world over it."""
    return make_world(index, store, tmp_path.as_uri())


@pytest.fixture
def world(watched: World) -> World:
    return watched


@pytest.fixture
async def table(world: World, store: WatchedStorage) -> TableRecord:
    """A table that was read before, so that its log need not be checked."""
    table = await world.create()
    await read(world.context, table)
    store.looks.clear()
    return table
