"""A log is read into the index within a time that goes by what is in it."""

import itertools
from dataclasses import replace

import pytest

from tests.builders.by_x import PROTOCOL, add, metadata
from tests.service.log.foreign.foreign import foreign_commit
from tests.service.tables.delta_logs import DeltaLog, folded, lines_of
from tests.service.world import World, make_world
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.errors import IndexUnavailable
from tidegate_service.core.limits import CommitLimits
from tidegate_service.core.log.loading.reading_time import ReadingTime
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import CheckpointLimits, StorageLimits

pytestmark = pytest.mark.anyio

HISTORY = ((PROTOCOL, metadata(), add("a"), add("b")), (add("c"),), (add("d"),), (add("e"),))
ROWS = lines_of(tuple(folded(HISTORY))[2])


def test_it_grows_with_what_is_read():
    clock = itertools.count().__next__
    time = ReadingTime(CommitLimits(log_s=3, log_s_a_million=1, actions_a_version=500_000), clock)
    time.actions()
    time.actions(400_000)
    time.version(100_000)
    # The fourth second of four.
    time.actions()
    with pytest.raises(IndexUnavailable, match=r"after 5 s: .* of which 1,000,000 were read"):
        time.actions()


@pytest.fixture
def log(tmp_path):
    made = DeltaLog(tmp_path / "table")
    for version, actions in enumerate(HISTORY):
        made.commit(version, *actions)
    return made


@pytest.fixture
def hasty(index, tmp_path) -> World:
    """A world in which a second goes by at each look at the clock, and a log has two."""
    by_rows = StorageLimits(checkpoints=CheckpointLimits(rows=1))
    world = make_world(index, ObjectStorage(tmp_path.as_uri(), limits=by_rows), tmp_path.as_uri())
    return ticking(world).limited(log_s=2, log_s_a_million=0)


def ticking(world: World) -> World:
    return World(replace(world.context, monotonic_s=itertools.count(start=1.0).__next__))


async def register(world: World, log: DeltaLog):
    table, _ = await register_table(
        world.context, RegisterTable(name="main.test.late", location=log.location)
    )
    return table


def only_commits(log: DeltaLog) -> None:
    pass


def from_a_checkpoint(log: DeltaLog) -> None:
    log.checkpoint(2, ROWS)
    log.path(0).unlink()


def only_older_commits(log: DeltaLog) -> None:
    log.checkpoint(3, lines_of(tuple(folded(HISTORY))[3]))
    log.path(0).unlink()


@pytest.mark.parametrize("shape", [only_commits, from_a_checkpoint, only_older_commits])
async def test_one_that_takes_longer_is_given_up(hasty, log, shape):
    shape(log)
    with pytest.raises(IndexUnavailable, match="nothing is kept of it"):
        await register(hasty, log)
    assert await hasty.context.index.table("main.test.late") is None
    patient = hasty.limited(log_s=1000)
    assert (await register(patient, log)).num_files == 5


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_an_index_that_cannot_be_made_anew_in_time_stays(world, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    if not catalog_managed:
        foreign_commit(world, table, 1)
    await publish_table(world.context.index, world.context.storage, table)
    before = await get_table(world.context, table.id)
    hasty = ticking(world).limited(log_s=0.5, log_s_a_million=0)
    with pytest.raises(IndexUnavailable, match="was given up after"):
        await rebuild_table(hasty.context, table.id)
    after = await get_table(world.context, table.id)
    assert after == before
    assert after.state is TableState.ACTIVE
