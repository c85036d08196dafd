"""A database that was set back, and a log that lacks the version behind the last one it knows, but
not all that follow. No checkpoint covers the hole."""

import shutil
from dataclasses import replace

import pytest

from tests.service.catalog_managed.asking import calls, check_landed, log_of
from tests.service.catalog_managed.restoring import body, commit, publish
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tests.service.storage.watched_store import WatchedStorage
from tests.service.upkeep.aged import LogOf
from tests.service.world import World
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.ports.records import QuarantineCause, TableState
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


class At:
    """A table of the versions a to e, all published, and a backup of when there were fewer."""

    async def make(self, made, url, published="ab", waiting="") -> "At":
        self.now = made.instance(url)
        self.table = await self.now.create(catalog_managed=True)
        if published:
            await commit(self.now, self.table, *published)
            await publish(self.now, self.table)
        await commit(self.now, self.table, *waiting)
        self.old_url = await made.copy(url)
        await commit(self.now, self.table, *"abcde"[len(published + waiting) :])
        await publish(self.now, self.table)
        self.log = LogOf(self.now, self.table)
        self.then = made.instance(self.old_url)
        return self

    def take(self, version: int) -> bytes:
        """Returns what the log had."""
        file = self.now.log_file(self.table, version)
        content = file.read_bytes()
        file.unlink()
        return content


async def check_quarantined(at: At) -> None:
    head = await get_table(at.then.context, at.table.id)
    assert (head.state, head.quarantine_cause) == (
        TableState.QUARANTINED,
        QuarantineCause.SET_BACK,
    )


@calls("a commit", "forgetting it")
async def test_nothing_is_acknowledged_or_put_into_the_hole(made, database_url, call):
    at = await At().make(made, database_url)
    third = at.take(3)
    before = log_of(at.then, at.table)
    with pytest.raises(TableQuarantined, match=r"version 3 is missing.* version 5,.*set back"):
        await call(at.then, at.table)
    await check_quarantined(at)
    await publish(at.then, at.table)
    with pytest.raises(Refused, match="stays quarantined: version 3 is missing"):
        await release_table(at.then.context, at.table.id)
    with pytest.raises(Refused, match="version 3 is missing"):
        await rebuild(at.then.context, at.table.id)
    await check_quarantined(at)
    assert log_of(at.then, at.table) == before
    at.now.log_file(at.table, 3).write_bytes(third)
    done = await rebuild(at.then.context, at.table.id)
    assert (done.lost, done.unknown, done.table.latest_version) == ((), None, 5)
    await check_landed(at.then, at.table, {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5})


@pytest.mark.parametrize(
    "backup",
    [("", "", 0), ("", "", 1), ("", "ab", 0), ("", "ab", 1), ("ab", "c", 3), ("ab", "cd", 4)],
    ids=str,
)
@pytest.mark.parametrize("publishes_first", [False, True])
async def test_whatever_waits_in_the_index(made, database_url, backup, publishes_first):
    published, waiting, missing = backup
    at = await At().make(made, database_url, published, waiting)
    whole = log_of(at.then, at.table)
    at.take(missing)
    if publishes_first:
        # A version that waited may be put back with the bytes that it had.
        await publish(at.then, at.table)
    with pytest.raises(TableQuarantined, match="was set back"):
        await propose(at.then.context, at.table.id, body("new"))
    await check_quarantined(at)
    assert log_of(at.then, at.table).items() <= whole.items()


async def test_where_the_later_ones_are_moved_away_the_table_goes_on(made, database_url):
    at = await At().make(made, database_url)
    for version in (3, 4):
        at.take(version)
    with pytest.raises(TableQuarantined, match=r"version 3 is missing.* version 5,"):
        await propose(at.then.context, at.table.id, body("new"))
    at.take(5)
    assert (await rebuild(at.then.context, at.table.id)).table.latest_version == 2
    assert (await propose(at.then.context, at.table.id, body("new"))).record.version == 3


async def test_a_hole_further_behind_is_found_by_the_rebuild(made, database_url):
    at = await At().make(made, database_url)
    at.take(4)
    with pytest.raises(TableQuarantined, match="version 3 is published in the log"):
        await propose(at.then.context, at.table.id, body("new"))
    with pytest.raises(Refused, match=r"version 4 is missing.* version 5,"):
        await rebuild(at.then.context, at.table.id)
    # What lies behind the hole is given up.
    at.take(5)
    assert (await rebuild(at.then.context, at.table.id)).table.latest_version == 3


@pytest.mark.parametrize("whose", ["of another table", "a copy of version 2"])
async def test_what_is_none_of_the_tables_hides_nothing(made, database_url, whose):
    at = await At().make(made, database_url)
    at.take(3)
    other = await At().make(made, database_url) if whose == "of another table" else at
    shutil.copy(other.now.log_file(other.table, 2), at.now.log_file(at.table, 8))
    with pytest.raises(TableQuarantined, match=r"version 3 is missing.* version 5,.*set back"):
        await propose(at.then.context, at.table.id, body("new"))
    with pytest.raises(Refused, match="version 3 is missing"):
        await rebuild(at.then.context, at.table.id)


async def test_a_hole_before_what_the_index_holds_is_filled(made, database_url):
    at = await At().make(made, database_url, "ab", "cde")
    third = at.take(3)
    assert (await propose(at.then.context, at.table.id, body("new"))).record.version == 6
    await publish(at.then, at.table)
    assert at.now.log_file(at.table, 3).read_bytes() == third
    assert at.now.log_file(at.table, 6).exists()


async def test_a_rebuild_puts_nothing_into_a_hole_before_a_lost_version(made, database_url):
    """The index holds other versions than were published behind the hole."""
    at = await At().make(made, database_url, "ab", "c")
    gone = {version: at.take(version) for version in (3, 4, 5)}
    await commit(at.then, at.table, "x", "y")
    for version in (3, 5):
        at.now.log_file(at.table, version).write_bytes(gone[version])
    with pytest.raises(Refused, match=r"version 4 is missing.* version 5,"):
        await rebuild(at.then.context, at.table.id)
    await check_quarantined(at)
    at.now.log_file(at.table, 4).write_bytes(gone[4])
    done = await rebuild(at.then.context, at.table.id)
    assert [one.transaction_id for one in done.lost] == ["x", "y"]
    await check_landed(at.then, at.table, {"c": 3, "d": 4, "e": 5})


@pytest.mark.parametrize("whose", ["of others", "of another table", "a copy of version 2"])
async def test_what_is_none_of_the_tables_says_nothing(made, database_url, whose):
    at = await At().make(made, database_url, "abcde")
    file = at.now.log_file(at.table, 8)
    if whose == "of others":
        foreign_commit(at.now, at.table, 8, FOREIGN_ADD)
    elif whose == "of another table":
        other = await At().make(made, database_url)
        shutil.copy(other.now.log_file(other.table, 4), file)
    else:
        shutil.copy(at.now.log_file(at.table, 2), file)
    assert (await propose(at.then.context, at.table.id, body("new"))).record.version == 6
    await publish(at.then, at.table)
    assert at.now.log_file(at.table, 6).exists()
    head = await get_table(at.then.context, at.table.id)
    assert (head.state, head.published_version) == (TableState.ACTIVE, 6)


@pytest.mark.parametrize("call", ["publish", "propose"])
async def test_a_stray_file_behind_a_hole_holds_up_no_busy_table(made, database_url, call):
    """Another instance commits to it whenever its log is listed."""
    at = await At().make(made, database_url, "abcde")
    foreign_commit(at.now, at.table, 500, FOREIGN_ADD)
    other, looks = made.instance(at.old_url), []
    await propose(other.context, at.table.id, body("first"))
    store = WatchedStorage(at.then.context.storage)

    async def listing():
        looks.append(len(looks))
        assert len(looks) < 20, "it is looked at again and again"
        await propose(other.context, at.table.id, body(f"meanwhile-{len(looks)}"))

    store.listing = listing
    busy = World(replace(at.then.context, storage=store))
    if call == "publish":
        await publish(busy, at.table)
        assert (await get_table(busy.context, at.table.id)).published_version >= 6
    else:
        landed = await propose(busy.context, at.table.id, body("mine"))
        assert landed.record.version > 6
    assert looks
