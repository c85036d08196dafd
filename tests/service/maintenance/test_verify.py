"""Comparing a table with its log: what is the same says so, and each kind of damage is found."""

from collections import deque
from dataclasses import replace

import psycopg
import pytest
from deltalake import DeltaTable

from tests.builders.by_x import add, remove
from tests.builders.proposals import proposal
from tests.service.faults import FaultyLog, FaultyStorage
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tidegate_protocol.log.actions import Txn
from tidegate_service.core.catalog_managed.publish import publish_table
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import NotFound, Refused, Unavailable
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.maintenance.verify import DifferenceKind, verify_table
from tidegate_service.core.ports.outcomes import Committed
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


async def busy_table(world, *, catalog_managed=False):
    """A table with adds, removes, a re-add, an application transaction."""
    table = await world.create(catalog_managed=catalog_managed)
    landings = (
        [add("a"), add("b"), Txn(app_id="stream", version=1)],
        [remove("a")],
        [add("a", size=11), add("c")],
        [Txn(app_id="stream", version=2)],
    )
    for version, actions in enumerate(landings):
        body = proposal(*actions, read_version=version)
        assert isinstance(await propose(world.context, table.id, body), Committed)
    return await get_table(world.context, table.id)


def found(verification):
    return [(one.version, one.kind) for one in verification.differences]


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_a_sound_table_is_consistent(world, catalog_managed):
    table = await busy_table(world, catalog_managed=catalog_managed)
    seen = await verify_table(world.context, table.id)
    assert seen.differences == ()
    assert (seen.from_version, seen.through_version, seen.next_version) == (0, 4, None)
    assert (seen.cleaned_up, seen.not_ingested) == (0, 0)
    await publish_table(world.context.index, world.context.storage, table)
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_it_goes_on_page_by_page(world):
    table = await busy_table(world)
    first = await verify_table(world.context, table.id, limit=2)
    assert (first.through_version, first.next_version) == (1, 2)
    rest = await verify_table(world.context, table.id, from_version=2, limit=100)
    assert (rest.from_version, rest.through_version, rest.next_version) == (2, 4, None)


async def test_what_the_index_does_not_hold_cannot_be_compared(world):
    table = await busy_table(world)
    with pytest.raises(Refused, match=r"from_version 5 .* expected 0 to 4"):
        await verify_table(world.context, table.id, from_version=5)
    with pytest.raises(NotFound):
        await verify_table(world.context, "main.test.nothing")


async def test_a_file_that_was_changed_is_found(world):
    table = await busy_table(world)
    file = world.log_file(table, 2)
    file.write_bytes(file.read_bytes() + b"\n")
    seen = await verify_table(world.context, table.id)
    assert found(seen) == [(2, DifferenceKind.STORAGE)]
    assert "expected SHA-256" in seen.differences[0].detail


async def test_a_file_that_is_gone_is_found(world):
    table = await busy_table(world)
    world.log_file(table, 4).unlink()
    seen = await verify_table(world.context, table.id)
    assert found(seen) == [(4, DifferenceKind.STORAGE)]


async def test_a_gap_in_the_log_is_found(world):
    table = await busy_table(world)
    world.log_file(table, 2).unlink()
    seen = await verify_table(world.context, table.id)
    assert (None, DifferenceKind.STORAGE) in found(seen)
    assert "version 2 is missing" in seen.differences[0].detail


async def test_foreign_versions_that_no_commit_has_met_are_counted(world):
    table = await busy_table(world)
    foreign_commit(world, table, 5, FOREIGN_ADD)
    seen = await verify_table(world.context, table.id)
    assert (seen.differences, seen.not_ingested) == ((), 1)
    managed = await busy_table(world, catalog_managed=True)
    await publish_table(world.context.index, world.context.storage, managed)
    foreign_commit(world, managed, 5, FOREIGN_ADD)
    seen = await verify_table(world.context, managed.id)
    assert found(seen) == [(None, DifferenceKind.STORAGE)]


async def test_another_file_in_the_way_of_publishing_is_found(world):
    table = await busy_table(world, catalog_managed=True)
    world.log_folder(table).mkdir(parents=True)
    foreign_commit(world, table, 0, FOREIGN_ADD)
    seen = await verify_table(world.context, table.id)
    assert found(seen) == [(0, DifferenceKind.STORAGE)]


DAMAGE = [
    ("UPDATE files SET removed_version = 4 WHERE removed_version = 2", [2, 3, 4]),
    ("UPDATE files SET removed_version = 2 WHERE path = 'b'", [2, None]),
    ("DELETE FROM files WHERE path = 'c'", [3, 3, None]),
    ("UPDATE files SET action = '\\x7b7d' WHERE path = 'b'", [1]),
    ("UPDATE files SET stats = '{}' WHERE path = 'b'", [1]),
    ("UPDATE files SET partition_values = '{\"x\":\"2\"}' WHERE path = 'b'", [1]),
    ("UPDATE files SET partition = '' WHERE path = 'b'", [1]),
    ("UPDATE files SET added_version = 3 WHERE path = 'b'", [1, 1, 3]),
    ("UPDATE files SET path = 'd' WHERE path = 'b'", [1]),
    ("UPDATE app_transactions SET version = 1", [1, 4]),
    ("DELETE FROM app_transactions", [1, 4]),
    ("UPDATE tables SET num_files = 9", [None]),
    ("UPDATE tables SET metadata = metadata || ' '", [None]),
    ("UPDATE metadata_versions SET metadata = metadata || ' '", [0, None]),
    ("UPDATE commits SET content_sha256 = 'x' WHERE version = 3", [3, 3]),
    ("UPDATE commits SET content = (SELECT content FROM commits WHERE version = 1)"
     " WHERE version = 3", [3]),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "versions"), DAMAGE)
async def test_a_row_that_was_changed_is_found(world, database_url, damage, versions):
    table = await busy_table(world)
    with psycopg.connect(database_url) as connection:
        connection.execute(damage)
    seen = await verify_table(world.context, table.id)
    assert [one.version for one in seen.differences] == versions


class CommittedMeanwhile(FaultyStorage):
    """A store that is listed right after somebody else committed and published."""

    def __init__(self, world, table):
        super().__init__(world.context.storage)
        self._between = (world, table)

    def log(self, location, *, who=None):
        return _LogInBetween(super().log(location, who=who), *self._between)


class _LogInBetween(FaultyLog):
    def __init__(self, log, world, table):
        super().__init__(log, deque(), [])
        self._world, self._table = world, table

    async def entries(self, *, behind=None):
        await propose(self._world.context, self._table.id, proposal(add("meanwhile")))
        head = await get_table(self._world.context, self._table.id)
        await publish_table(self._world.context.index, self._world.context.storage, head)
        async for batch in super().entries(behind=behind):
            yield batch


@pytest.mark.parametrize("catalog_managed", [False, True])
async def test_a_commit_that_lands_meanwhile_is_no_difference(world, catalog_managed):
    table = await busy_table(world, catalog_managed=catalog_managed)
    await publish_table(world.context.index, world.context.storage, table)
    storage = CommittedMeanwhile(world, table)
    seen = await verify_table(replace(world.context, storage=storage), table.id)
    assert (seen.differences, seen.not_ingested) == ((), 0)
    assert seen.through_version == 4


class RebuiltMeanwhile(FaultyStorage):
    """A store whose log is cleaned up, and the index made from it anew, once it was listed."""

    def __init__(self, world, table):
        super().__init__(world.context.storage)
        self._between = (world, table)

    def log(self, location, *, who=None):
        return _LogThatShrinks(super().log(location, who=who), *self._between)


class _LogThatShrinks(_LogInBetween):
    async def entries(self, *, behind=None):
        async for batch in FaultyLog.entries(self, behind=behind):
            yield batch
        DeltaTable(self._table.location).create_checkpoint()
        for version in range(3):
            self._world.log_file(self._table, version).unlink()
        await rebuild_table(self._world.context, self._table.id)


async def test_a_table_that_is_rebuilt_meanwhile_is_to_be_asked_for_again(world):
    table = await busy_table(world)
    storage = RebuiltMeanwhile(world, table)
    with pytest.raises(Unavailable, match="made anew"):
        await verify_table(replace(world.context, storage=storage), table.id)
    assert (await verify_table(world.context, table.id)).differences == ()


async def test_many_differences_are_counted(world):
    world = world.limited(told_differences=2)
    table = await busy_table(world)
    for version in range(1, 5):
        world.log_file(table, version).write_bytes(b"other bytes")
    found = (await verify_table(world.context, table.id)).differences
    assert [each.version for each in found] == [1, 2, None]
    assert found[-1].detail.startswith("2 differences of versions 0 and later")
