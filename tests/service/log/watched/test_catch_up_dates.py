"""When versions are dated that were read in portions, however many there were."""

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.far_ahead import FAR, PORTION, times, written_past
from tests.service.log.foreign.foreign import date_file
from tests.service.storage.watched_store import WatchedStorage
from tidegate_service.core.commit.propose import conflict_check, propose
from tidegate_service.core.errors import StorageUnavailable
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

NEVER = 10**9


@pytest.fixture
def world(watched):
    return watched.limited(portion_versions=PORTION)


class TestDates:
    """Files of others are younger here than our own commit behind them, which keeps its date."""

    async def lost(self, world, *, foreign):
        """A table whose log has versions without times, one of ours behind them and others behind
        that, of all of which an index has never heard; what was told of ours."""
        table = await world.create()
        written_past(world, table, 1, foreign, timestamp=None)
        body = proposal(add("x=1/mine"))
        landed = await propose(world.context, table.id, body)
        assert landed.record.version == foreign + 1
        written_past(world, table, foreign + 2, foreign + 2 + PORTION, timestamp=None)
        files = [world.log_file(table, version) for version in range(1, foreign + 3 + PORTION)]
        contents = [file.read_bytes() for file in files]
        await world.lose(table)
        for file in files:
            file.unlink()
        # By the same request, which takes up the version 0 that is there.
        behind = await world.create(name=table.name)
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)
        return behind, body, landed

    @pytest.mark.parametrize("portion", [PORTION, NEVER], ids=["in portions", "at once"])
    async def test_ours_keeps_its_time_however_the_log_is_read(self, world, portion):
        behind, body, landed = await self.lost(world, foreign=FAR)
        world = world.limited(portion_versions=portion)
        # Ours is not found under the lock: it lies far behind.
        await conflict_check(world.context, behind.id, proposal(add("x=1/other")))
        found = await propose(world.context, behind.id, body)
        assert (found.replayed, found.record.timestamp) == (True, landed.record.timestamp)
        dates = await times(world, behind)
        assert dates == sorted(set(dates))
        assert dates[0] == behind.latest_timestamp

    async def test_and_where_the_reading_broke_off_in_between(self, world, store):
        behind, body, landed = await self.lost(world, foreign=FAR)

        async def down(version):
            if version == FAR + 1:
                raise StorageUnavailable("a moment's outage")

        store.reading = down
        with pytest.raises(StorageUnavailable):
            await conflict_check(world.context, behind.id, proposal(add("x=1/other")))
        head = (await get_table(world.context, behind.id)).latest_version
        assert 0 < head <= FAR
        store.reading = WatchedStorage(None).reading
        await conflict_check(world.context, behind.id, proposal(add("x=1/other")))
        found = await propose(world.context, behind.id, body)
        assert (found.replayed, found.record.timestamp) == (True, landed.record.timestamp)
        dates = await times(world, behind)
        assert dates == sorted(set(dates))

    async def test_a_forged_mark_moves_nothing_that_was_answered(self, world, store):
        table = await world.create()
        first = await propose(world.context, table.id, proposal(add("x=1/ours")))
        content = world.log_file(table, 1).read_text()
        written_past(world, table, 2, FAR, timestamp=None)
        carried = str(first.record.timestamp)
        assert carried in content
        forged = content.replace(carried, str(first.record.timestamp - 5)).replace("ours", "y")
        forged = forged.replace(first.record.transaction_id, "forged")
        world.log_file(table, FAR).write_text(forged)
        await conflict_check(world.context, table.id, proposal(add("x=1/other")))
        dates = await times(world, table)
        assert dates[1] == first.record.timestamp
        assert dates == sorted(set(dates))


class TestWrittenMeanwhile:
    """Versions that others put into a log after it was listed have the dates of their files."""

    @pytest.fixture
    async def table(self, world):
        table = await world.create()
        await propose(world.context, table.id, proposal(add("x=1/ours")))
        return await get_table(world.context, table.id)

    def late(self, world, store, table, taken_in):
        """The date of version 2, which comes when version 1 is read for the first time."""
        late_ms = table.latest_timestamp + 3_600_000
        done = []

        async def reading(version):
            if version == 1 and not done:
                done.append(version)
                written_past(world, table, 2, 2)
                date_file(world, table, 2, late_ms)
                if taken_in:
                    await conflict_check(world.context, table.id, proposal(add("x=1/other")))

        store.reading = reading
        return late_ms

    @pytest.mark.parametrize("read_on_s", [0.0, 60.0], ids=["copied again", "read on"])
    async def test_while_an_index_is_made_anew(self, world, store, table, read_on_s):
        late_ms = self.late(world, store, table, taken_in=True)
        await rebuild(world.limited(copy_read_on_s=read_on_s).context, table.id)
        assert (await times(world, table))[1:] == [table.latest_timestamp, late_ms]

    async def test_while_it_is_registered(self, world, store, table):
        await world.lose(table)
        late_ms = self.late(world, store, table, taken_in=False)
        asked = RegisterTable(name=table.name, location=table.location)
        registered, _ = await register_table(world.context, asked)
        assert (await times(world, registered))[1:] == [table.latest_timestamp, late_ms]
