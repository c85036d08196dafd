"""A table's index is made anew from a copy of its log. Meanwhile its row is free, and moves on."""

import asyncio
import errno
import os
from dataclasses import replace

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.committing import quarantine
from tests.service.log.test_hidden_log import left_behind
from tests.service.maintenance.pictures import picture
from tests.service.world import World, make_world
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import (
    IndexUnavailable,
    NotFound,
    StorageUnavailable,
)
from tidegate_service.core.instance.copy_limits import CopyLimits
from tidegate_service.core.log.copying import copy_file
from tidegate_service.core.log.copying.copied_log import CopiedLog
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


async def committed(world, count):
    table = await world.create()
    for number in range(count):
        await propose(world.context, table.id, proposal(add(f"{number}")))
    return table


def while_copied(store, deed, *, version):
    """Have the deed done when the copy reads this version for the first time."""
    done = []

    async def reading(asked):
        if asked == version and not done:
            done.append(asked)
            await deed()

    store.reading = reading
    return done


class TestRebuilds:
    async def test_what_is_committed_meanwhile_is_in_the_new_index(self, world, store):
        table = await committed(world, 3)

        async def deed():
            for number in range(4):
                await propose(world.context, table.id, proposal(add(f"meanwhile-{number}")))

        done = while_copied(store, deed, version=2)
        rebuilt = await rebuild_table(world.context, table.id)
        assert done
        assert (rebuilt.latest_version, rebuilt.num_files) == (7, 7)
        assert (await verify_table(world.context, table.id)).differences == ()

    async def test_so_is_what_is_committed_behind_the_copied_end(self, world, store):
        """The section reads it from the store."""
        table = await committed(world, 2)

        async def deed():
            await propose(world.context, table.id, proposal(add("meanwhile")))

        # The last version that is there.
        done = while_copied(store, deed, version=2)
        after = await rebuild_table(world.context, table.id)
        assert done
        assert (after.latest_version, after.num_files) == (3, 3)

    async def test_not_for_ever(self, world, monkeypatch):
        world = world.limited(copy_read_on_s=0.0)
        table = await committed(world, 1)
        before = await picture(world, table)
        copy = CopiedLog.copy
        numbers = iter(range(100))

        async def copied(log, *, through):
            await copy(log, through=through)
            await propose(world.context, table.id, proposal(add(f"more-{next(numbers)}")))

        with monkeypatch.context() as patched:
            patched.setattr(CopiedLog, "copy", copied)
            with pytest.raises(IndexUnavailable, match="committed to faster"):
                await rebuild_table(world.context, table.id)
        head = await get_table(world.context, table.id)
        assert head.epoch == table.epoch
        assert head.latest_version == 1 + next(numbers)
        assert (await picture(world, table))[1:3] != before[1:3]
        assert world.context.copies.taken == 0

    async def test_names_that_are_no_text_are_passed_over(self, world):
        table = await committed(world, 2)
        name = os.fsencode(world.log_folder(table)) + b"/\xff\xfe"
        with open(name, "wb"):
            pass
        assert (await rebuild_table(world.context, table.id)).latest_version == 2

    async def test_of_two_at_once_one_is_told_to_ask_again(self, world, store):
        table = await committed(world, 2)
        other = World(replace(world.context, running=type(world.context.running)()))

        async def deed():
            store.reading = lambda _: asyncio.sleep(0)
            await rebuild_table(other.context, table.id)

        while_copied(store, deed, version=1)
        with pytest.raises(IndexUnavailable, match="made anew meanwhile"):
            await rebuild_table(world.context, table.id)
        assert (await get_table(world.context, table.id)).epoch == table.epoch + 1

    async def test_a_quarantine_that_came_meanwhile_stays(self, world, index, store):
        """It may be of what the copy has not."""
        table = await committed(world, 2)
        while_copied(store, lambda: quarantine(index, table, "to see"), version=1)
        with pytest.raises(IndexUnavailable, match="was quarantined"):
            await rebuild_table(world.context, table.id)
        now = await get_table(world.context, table.id)
        assert (now.state, now.epoch) == (TableState.QUARANTINED, table.epoch)
        assert (await rebuild_table(world.context, table.id)).state is TableState.ACTIVE

    async def test_a_table_that_is_forgotten_meanwhile(self, world, store):
        table = await committed(world, 2)
        while_copied(store, lambda: forget_table(world.context, table.id), version=1)
        with pytest.raises(NotFound):
            await rebuild_table(world.context, table.id)


class TestReloads:
    """A commit finds that others cleaned the log up past the index."""

    async def test_of_two_commits_at_once_one_index_is_made(self, world):
        table, _ = await left_behind(world)
        landed = await asyncio.gather(
            *(propose(world.context, table.id, proposal(add(f"x=1/{n}"))) for n in range(3))
        )
        assert sorted(one.record.version for one in landed) == [4, 5, 6]
        assert (await get_table(world.context, table.id)).epoch == table.epoch + 1

    async def test_another_instance_makes_it_meanwhile(self, world, store):
        table, _ = await left_behind(world)
        other = make_world(
            world.context.index, world.context.storage, world.context.locations.warehouse
        )

        async def deed():
            await propose(other.context, table.id, proposal(add("x=1/theirs")))

        done = while_copied(store, deed, version=3)
        landed = await propose(world.context, table.id, proposal(add("x=1/ours")))
        assert done
        assert landed.record.version == 5
        assert (await get_table(world.context, table.id)).epoch == table.epoch + 1
        assert (await verify_table(world.context, table.id)).differences == ()

    async def test_it_takes_longer_than_a_request_may(self, world, store):
        """The copying goes on, and the next request finds the index made."""
        table, _ = await left_behind(world)
        goes_on = asyncio.Event()
        while_copied(store, goes_on.wait, version=3)
        hasty = replace(world.context, commit_deadline_s=0.2)
        body = proposal(add("x=1/ours"))
        with pytest.raises(IndexUnavailable, match="goes on from there"):
            await propose(hasty, table.id, body)
        goes_on.set()
        assert (await propose(world.context, table.id, body)).record.version == 4
        assert (await get_table(world.context, table.id)).epoch == table.epoch + 1


class TestTheDisk:
    @pytest.fixture
    def made_small(self, world):
        return World(replace(world.context, copies=CopyLimits(most_bytes=500)))

    async def test_a_copy_that_is_too_large_changes_nothing(self, made_small):
        table = await committed(made_small, 5)
        before = await picture(made_small, table)
        with pytest.raises(StorageUnavailable, match="bytes that copies of logs take"):
            await rebuild_table(made_small.context, table.id)
        assert await picture(made_small, table) == before
        assert made_small.context.copies.taken == 0

    async def test_nor_does_a_full_disk(self, world, monkeypatch):
        table = await committed(world, 2)
        before = await picture(world, table)

        def full(*_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patched:
            patched.setattr(copy_file.os, "pwrite", full)
            with pytest.raises(StorageUnavailable, match="No space left"):
                await rebuild_table(world.context, table.id)
        assert await picture(world, table) == before
        assert world.context.copies.taken == 0
