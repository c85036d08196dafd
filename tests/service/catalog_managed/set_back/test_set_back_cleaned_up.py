"""A database that was set back behind a log which the service has cleaned up since."""

import shutil
from typing import NamedTuple

import psycopg
import pytest

from tests.service.catalog_managed.asking import CALLS, check_landed, files_of, is_closed, log_of
from tests.service.catalog_managed.restoring import (
    Backups,
    body,
    commit,
    given_up,
    publish,
)
from tests.service.catalog_managed.set_back.cleaning import A_DAY, cleaned_up
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tidegate_protocol.base.problems import Code
from tidegate_service.core.catalog_managed.ratified_log import UnknownIds
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.records import QuarantineCause, TableRecord, TableState
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


class SetBack:
    """A table of the versions a to f, all published, whose log begins with version 4 and its
    checkpoint; and a database as it was when there was less of it. `now` is an instance of the
    first database, `then` one of the other."""

    def __init__(self, made: Backups, url: str) -> None:
        self.made, self.url = made, url

    async def make(self, published: str = "ab", waiting: str = "") -> "SetBack":
        self.now = self.made.instance(self.url)
        self.table = await self.now.create(catalog_managed=True, properties=A_DAY)
        if published:
            await commit(self.now, self.table, *published)
            await publish(self.now, self.table)
        await commit(self.now, self.table, *waiting)
        self.old_url = await self.made.copy(self.url)
        await commit(self.now, self.table, *"abcdef"[len(published + waiting) :])
        await publish(self.now, self.table)
        whole = log_of(self.now, self.table)
        storage = self.made.storage
        self.log = await cleaned_up(self.now, self.url, storage, self.table, to=4)
        self.gone = {name: whole[name] for name in whole.keys() - log_of(self.now, self.table)}
        self.then = self.made.instance(self.old_url)
        return self

    def put_back(self, *versions: int) -> None:
        """As if the clean-up had been cut short before these."""
        for version in versions:
            name = f"{version:020d}.json"
            (self.log.folder / name).write_bytes(self.gone[name])

    async def check_refused(self, match: str) -> None:
        """Nothing is acknowledged or put into the log, and no rebuild takes it in."""
        then, table, before = self.then, self.table, log_of(self.then, self.table)
        with pytest.raises(TableQuarantined, match=match):
            await propose(then.context, table.id, body("new"))
        with pytest.raises(Refused, match=match) as refused:
            await rebuild(then.context, table.id)
        assert refused.value.code is Code.BROKEN_LOG
        assert await is_closed(then, table)
        await publish(then, table)
        assert log_of(then, table) == before


class Backup(NamedTuple):
    """What was published and what waited when a backup was made, and what cannot be known since."""

    published: str = ""
    waiting: str = ""
    unknown: UnknownIds | None = None

    @property
    def names(self) -> dict[str, int]:
        """The ids that are known, and their versions."""
        names = {name: version for version, name in enumerate("abcdef", start=1)}
        return {n: v for n, v in names.items() if self.unknown is None or n != "c"}


VERSION_3 = UnknownIds(first_version=3, last_version=3)
BACKUPS = {
    "published": Backup("ab", unknown=VERSION_3),
    "never published": Backup(waiting="ab", unknown=VERSION_3),
    "up to it": Backup("ab", "c"),
    "with it": Backup("ab", "cd"),
    "never published, with it": Backup(waiting="abcde"),
}
ASKED = [
    *(("a commit", backup) for backup in BACKUPS),
    *((call, "published") for call in CALLS if call != "a commit"),
]
"""Every call, and every backup."""


@pytest.mark.parametrize(("call", "name"), ASKED)
async def test_nothing_is_acknowledged_or_put_there(made, database_url, call, name):
    backup = BACKUPS[name]
    at = await SetBack(made, database_url).make(backup.published, backup.waiting)
    before = log_of(at.then, at.table)
    with pytest.raises(TableQuarantined, match=r"cleaned up to version 4.* set back.* `rebuild`"):
        await CALLS[call](at.then, at.table)
    with pytest.raises(Refused, match=r"stays quarantined: the log was cleaned up to version 4"):
        await release_table(at.then.context, at.table.id)
    await publish(at.then, at.table)
    assert log_of(at.then, at.table) == before
    head = await get_table(at.then.context, at.table.id)
    assert (head.state, head.quarantine_cause) == (
        TableState.QUARANTINED,
        QuarantineCause.SET_BACK,
    )


@pytest.mark.parametrize(
    ("first", "name"),
    [*(("nothing", backup) for backup in BACKUPS), ("a publisher", "never published")],
)
async def test_a_rebuild_takes_in_what_was_published(made, database_url, first, name, caplog):
    backup = BACKUPS[name]
    at = await SetBack(made, database_url).make(backup.published, backup.waiting)
    then, table = at.then, at.table
    if first == "a publisher":
        await publish(then, table)
    done = await rebuild(then.context, table.id)
    assert (done.lost, done.unknown) == ((), backup.unknown)
    assert ("transaction ids are unknown" in caplog.text) == (backup.unknown is not None)
    head = done.table
    assert (head.first_version, head.latest_version, head.published_version) == (4, 6, 6)
    assert await files_of(then, table) == await files_of(at.now, table)
    await check_landed(then, table, backup.names)
    assert (await propose(then.context, table.id, body("new"))).record.version == 7
    await publish(then, table)
    assert (await verify_table(then.context, table.id)).differences == ()
    # What was unknown once is no news.
    assert (await rebuild(then.context, table.id)).unknown is None
    await check_landed(then, table, backup.names)


@pytest.mark.parametrize("left", [(3,), (1, 2, 3)], ids=str)
async def test_a_clean_up_that_was_cut_short_leaves_ids(made, database_url, left):
    """Also where the last version that the index knows to be published is still there."""
    at = await SetBack(made, database_url).make()
    at.put_back(*left)
    with pytest.raises(TableQuarantined, match="was set back"):
        await propose(at.then.context, at.table.id, body("new"))
    done = await rebuild(at.then.context, at.table.id)
    assert (done.unknown, done.table.first_version, done.table.latest_version) == (None, 4, 6)
    await check_landed(at.then, at.table, Backup().names)
    assert await files_of(at.then, at.table) == await files_of(at.now, at.table)


HOLES = [
    *(("ab", "", (2,)), ("ab", "", (0, 2))),
    *(("ab", "c", (1, 2)), ("", "", (0,)), ("", "ab", (0, 1))),
]


@pytest.mark.parametrize(
    ("known", "publishes_first"),
    # Where the last version is published and nothing waits, a publisher puts nothing.
    [*((known, False) for known in HOLES), *((known, True) for known in HOLES[2:])],
    ids=str,
)
async def test_one_that_left_a_hole_behind_the_last_published_version(
    made, database_url, known, publishes_first
):
    """An object store deletes several files at a time, and may refuse one of them."""
    published, waiting, left = known
    at = await SetBack(made, database_url).make(published, waiting)
    at.put_back(*left)
    before = log_of(at.then, at.table)
    if publishes_first:
        await publish(at.then, at.table)
    with pytest.raises(TableQuarantined, match="was set back"):
        await propose(at.then.context, at.table.id, body("new"))
    await publish(at.then, at.table)
    # A version that waited may be put back with the bytes that it had. Nothing else is put.
    assert log_of(at.then, at.table).items() <= (before | at.gone).items()
    done = await rebuild(at.then.context, at.table.id)
    assert (done.table.first_version, done.table.latest_version) == (4, 6)
    assert await files_of(at.then, at.table) == await files_of(at.now, at.table)
    assert (await propose(at.then.context, at.table.id, body("new"))).record.version == 7


class TestRefused:
    async def test_a_checkpoint_without_a_commit(self, made, database_url):
        """As anybody may write one, and delete what is before it."""
        at = await SetBack(made, database_url).make()
        at.now.log_file(at.table, 4).unlink()
        await at.check_refused("the commit of that version is not there")

    async def test_a_checkpoint_of_a_commit_of_others(self, made, database_url):
        at = await SetBack(made, database_url).make()
        at.now.log_file(at.table, 4).unlink()
        foreign_commit(at.now, at.table, 4, FOREIGN_ADD)
        await at.check_refused("neither says that this service wrote it for this table")

    async def test_a_commit_of_another_table(self, made, database_url):
        at = await SetBack(made, database_url).make()
        other = await SetBack(made, database_url).make()
        shutil.copy(other.now.log_file(other.table, 4), at.now.log_file(at.table, 4))
        await at.check_refused("neither says that this service wrote it for this table")

    async def test_a_copy_of_an_earlier_version(self, made, database_url):
        at = await SetBack(made, database_url).make()
        at.now.log_file(at.table, 4).write_bytes(at.gone[f"{2:020d}.json"])
        await at.check_refused("what lies there as its commit is a copy of version 2")

    async def test_the_log_of_another_table(self, made, database_url):
        at = await SetBack(made, database_url).make()
        other = await SetBack(made, database_url).make()
        shutil.rmtree(at.log.folder)
        shutil.copytree(other.log.folder, at.log.folder)
        await at.check_refused("the log's checkpoint is another table's")

    async def test_other_bytes_than_were_ratified(self, made, database_url):
        at = await SetBack(made, database_url).make("ab", "cd")
        file = at.now.log_file(at.table, 4)
        file.write_bytes(file.read_bytes() + b"\n")
        await at.check_refused("its commit has other bytes than were ratified")

    async def test_another_version_than_waits(self, made, database_url):
        """Two databases took commits. Which of the index's landed in the end is not to be seen."""
        at = await SetBack(made, database_url).make("ab", "c")
        at.put_back(3)
        file = at.now.log_file(at.table, 3)
        file.write_bytes(file.read_bytes() + b"\n")
        with pytest.raises(Refused, match="version 3 lies in the log with other bytes"):
            await rebuild(at.then.context, at.table.id)
        assert (await get_table(at.then.context, at.table.id)).state is TableState.QUARANTINED

    async def test_a_log_that_was_set_back_itself(self, made, database_url):
        at = await SetBack(made, database_url).make()
        for file in at.log.folder.glob("*"):
            file.unlink()
        await at.check_refused("(neither its file nor a checkpoint|none is in the log)")

    async def test_a_version_of_others_behind_it_is_not_taken_in(self, made, database_url):
        at = await SetBack(made, database_url).make()
        at.now.log_file(at.table, 6).unlink()
        foreign_commit(at.now, at.table, 6, FOREIGN_ADD)
        assert (await rebuild(at.then.context, at.table.id)).table.latest_version == 5
        with pytest.raises(
            TableQuarantined, match="file of version 6, and that version cannot be published"
        ):
            await propose(at.then.context, at.table.id, body("new"))


class TestGivenUp:
    """An operator who followed the runbook of an earlier release has given the table up."""

    async def at(self, made: Backups, url: str, published: str = "ab") -> SetBack:
        at = await SetBack(made, url).make(published, "" if published else "ab")
        with pytest.raises(TableQuarantined):
            await propose(at.then.context, at.table.id, body("new"))
        with psycopg.connect(at.old_url) as connection:
            assert connection.execute(given_up(at.table)[1]).rowcount == 1
        await forget_table(at.then.context, at.table.id)
        return at

    async def register(self, at: SetBack, *, by_marks: bool = False) -> TableRecord:
        table = at.table
        asked = RegisterTable(
            name=table.name, location=table.location, catalog_managed=True, by_marks=by_marks
        )
        return (await register_table(at.then.context, asked))[0]

    @pytest.mark.parametrize(("by_marks", "published"), [(False, "ab"), (True, "")])
    async def test_it_is_registered(self, made, database_url, by_marks, published, caplog):
        at = await self.at(made, database_url, published)
        back = await self.register(at, by_marks=by_marks)
        assert (back.first_version, back.latest_version, back.published_version) == (4, 6, 6)
        assert "transaction ids are unknown" in caplog.text
        await check_landed(at.then, back, {"a": 1, "b": 2, "d": 4, "e": 5, "f": 6})
        assert (await propose(at.then.context, back.id, body("new"))).record.version == 7
        await publish(at.then, back)
        assert (await verify_table(at.then.context, back.id)).differences == ()

    async def test_another_tables_log_is_not(self, made, database_url):
        at = await self.at(made, database_url)
        other = await SetBack(made, database_url).make()
        shutil.rmtree(at.log.folder)
        shutil.copytree(other.log.folder, at.log.folder)
        with pytest.raises(Refused, match="is not the catalog-managed table that was forgotten"):
            await self.register(at)

    @pytest.mark.parametrize("what", ["gone", "of others"])
    async def test_nor_one_whose_beginning_is_not_its_own(self, made, database_url, what):
        at = await self.at(made, database_url)
        file = at.now.log_file(at.table, 4)
        file.unlink()
        if what == "of others":
            foreign_commit(at.now, at.table, 4, FOREIGN_ADD)
        with pytest.raises(
            Refused, match="begins with a checkpoint of version 4, and version 2 was"
        ) as refused:
            await self.register(at)
        assert f"copy _delta_log/{4:020d}.json to" in str(refused.value.hint)
