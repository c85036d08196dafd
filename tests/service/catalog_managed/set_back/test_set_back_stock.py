"""A database that was set back behind commits of stock clients, which have no mark in the log."""

import pytest

from tests.service.catalog_managed.asking import CALLS, check_landed, files_of, log_of
from tests.service.catalog_managed.restoring import body, commit, publish
from tests.service.catalog_managed.set_back.cleaning import A_DAY, cleaned_up
from tests.service.catalog_managed.stock_commits import (
    WITHOUT_ID,
    again,
    stage,
    staged,
    stock_commit,
    stock_set_back,
)
from tests.service.faults import Fault
from tests.service.maintenance.pictures import picture
from tests.service.upkeep.aged import LogOf, rows_of
from tidegate_protocol.base.problems import Code
from tidegate_service.core.catalog_managed.ratified_log import LostCommit, UnknownIds
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.records import CommitRecord, QuarantineCause, TableState
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

WRITERS = [
    ("stock-1", "stock-2"),
    ("stock-1", "b", "stock-2"),
    ("b", "stock-1", "c"),
    (WITHOUT_ID,),
]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_nothing_is_answered_and_no_file_is_to_be_moved(made, database_url, call):
    at = await stock_set_back(made, database_url, "stock-1", "stock-2")
    before = log_of(at.then, at.table)
    with pytest.raises(
        TableQuarantined, match=r"version 3 is published .* set back.* `rebuild`"
    ) as refused:
        await call(at.then, at.table)
    with pytest.raises(Refused, match=r"stays quarantined: version 3 is published") as kept:
        await release_table(at.then.context, at.table.id)
    assert "away" not in f"{refused.value} {kept.value}"
    head = await get_table(at.then.context, at.table.id)
    assert (head.state, head.quarantine_cause) == (
        TableState.QUARANTINED,
        QuarantineCause.SET_BACK,
    )
    assert log_of(at.then, at.table) == before


@pytest.mark.parametrize("first", ["a commit", "nothing"])
@pytest.mark.parametrize("names", WRITERS, ids=str)
async def test_a_rebuild_takes_in_what_stock_clients_committed(made, database_url, names, first):
    """With bytes, dates and ids, so that no transaction lands twice."""
    at = await stock_set_back(made, database_url, *names)
    then, table = at.then, at.table
    if first == "a commit":
        with pytest.raises(TableQuarantined):
            await propose(then.context, table.id, body("new"))
    done = await rebuild(then.context, table.id)
    last = 2 + len(names)
    assert (done.lost, done.unknown) == ((), None)
    assert (done.table.state, done.table.published_version) == (TableState.ACTIVE, last)
    assert await files_of(then, table) == await files_of(at.now, table)
    known = [await world.context.index.commit(table.id, last) for world in (then, at.now)]
    assert len({(one.timestamp, one.content_sha256, one.foreign) for one in known}) == 1
    for said in at.said.values():
        assert (await again(then, table, said)).latest_version == last
    await check_landed(
        then, table, {name: 3 + i for i, name in enumerate(names) if name not in at.said}
    )
    assert (await verify_table(then.context, table.id)).differences == ()
    await stock_commit(then, table, "stock-9")
    await commit(then, table, "new")
    await publish(then, table)
    assert (await verify_table(then.context, table.id)).differences == ()


async def test_the_same_work_in_another_file_is_known(made, database_url):
    at = await stock_set_back(made, database_url, "stock-1")
    await rebuild(at.then.context, at.table.id)
    same = staged(at.then, at.table, 3, "stock-1", at=at.said["stock-1"].timestamp + 1)
    assert (await again(at.then, at.table, same)).latest_version == 3
    later = staged(at.then, at.table, 4, "stock-1", at=at.said["stock-1"].timestamp + 1)
    with pytest.raises(Refused, match="has landed as version 3 already"):
        await again(at.then, at.table, later)


async def test_a_rebuild_of_all_that_is_known_changes_nothing(made, database_url):
    """Stock clients' commits are no foreign ones, however often the index was made anew."""
    at = await stock_set_back(made, database_url, "stock-1", "b")
    head = await get_table(at.now.context, at.table.id)
    before = await picture(at.now, head)
    history = await at.now.context.index.history(
        at.table.id, from_version=0, to_version=None, limit=9
    )
    assert not any(record.foreign for record in history)
    done = await rebuild(at.now.context, at.table.id)
    after = await picture(at.now, done.table)
    assert (after[0], after[2:]) == (before[0], before[2:])
    history = await at.now.context.index.history(
        at.table.id, from_version=0, to_version=None, limit=9
    )
    assert not any(record.foreign for record in history)


@pytest.mark.parametrize("who", ["ours", "stock-9", WITHOUT_ID])
async def test_what_was_ratified_in_their_place_is_lost(made, database_url, who):
    """Two databases took commits. What is published is the table's."""
    at = await stock_set_back(made, database_url)
    if who == "ours":
        await commit(at.then, at.table, who)
        name = who
    else:
        # Publishing fails behind the commit, and once more for whoever loads the table.
        made.storage.faults.extend([Fault.REFUSED] * 3)
        said = await stock_commit(at.then, at.table, who)
        name = said.file_name if who == WITHOUT_ID else who
        made.storage.faults.clear()
    await stock_commit(at.now, at.table, "stock-1")
    restarted = made.instance(at.old_url)
    with pytest.raises(TableQuarantined, match="another one than the index holds"):
        await propose(restarted.context, at.table.id, body("new"))
    done = await rebuild(restarted.context, at.table.id)
    assert done.lost == (LostCommit(version=3, transaction_id=name),)
    assert await files_of(restarted, at.table) == await files_of(at.now, at.table)


async def test_a_hole_behind_one_of_them_ends_no_rebuild_in_silence(made, database_url):
    at = await stock_set_back(made, database_url, "stock-1", "b", "stock-2")
    file = at.then.log_file(at.table, 4)
    content = file.read_bytes()
    file.unlink()
    with pytest.raises(Refused, match=r"version 4 is missing from the log.* version 5, which"):
        await rebuild(at.then.context, at.table.id)
    file.write_bytes(content)
    assert (await rebuild(at.then.context, at.table.id)).table.latest_version == 5


async def test_versions_behind_one_that_was_moved_away_are_not_taken_in(made, database_url):
    """As an earlier release told an operator to do. Version 4 follows from the one that is gone."""
    at = await stock_set_back(made, database_url, "stock-1", "stock-2")
    then, table = at.then, at.table
    gone = [then.log_file(table, version) for version in (3, 4)]
    contents = [file.read_bytes() for file in gone]
    for file in gone:
        file.unlink()
    await commit(then, table, "new")
    await publish(then, table)
    gone[1].write_bytes(contents[1])
    with pytest.raises(TableQuarantined, match="version 4 is published in the log"):
        await propose(made.instance(at.old_url).context, table.id, body("more"))
    with pytest.raises(Refused, match=r"version 4 .* was ratified before version 3") as refused:
        await rebuild(then.context, table.id)
    assert "move their files out of the log" in str(refused.value.hint)
    gone[1].unlink()
    assert (await rebuild(then.context, table.id)).table.latest_version == 3
    assert (await propose(then.context, table.id, body("more"))).record.version == 4


async def test_a_copy_of_an_earlier_version_is_none(made, database_url):
    """As of a client that staged its work again after its answer was lost."""
    at = await stock_set_back(made, database_url, "stock-1")
    await rebuild(at.then.context, at.table.id)
    content = at.then.log_file(at.table, 3).read_bytes()
    at.then.log_file(at.table, 4).write_bytes(content)
    stage(at.then, at.table, 4, content, at=at.said["stock-1"].timestamp)
    with pytest.raises(TableQuarantined, match="file of version 4 is a copy of version 3"):
        await propose(at.then.context, at.table.id, body("new"))
    assert (await rebuild(at.then.context, at.table.id)).table.latest_version == 3


async def test_a_hole_before_one_of_them(made, database_url):
    at = await stock_set_back(made, database_url, "b", "stock-1")
    file = at.then.log_file(at.table, 3)
    content = file.read_bytes()
    file.unlink()
    with pytest.raises(TableQuarantined, match=r"version 3 is missing.* version 4,.*set back"):
        await propose(at.then.context, at.table.id, body("new"))
    with pytest.raises(Refused, match="version 3 is missing"):
        await rebuild(at.then.context, at.table.id)
    file.write_bytes(content)
    assert (await rebuild(at.then.context, at.table.id)).table.latest_version == 4


async def test_a_staged_commit_among_many(made, database_url, monkeypatch):
    """Those who came too late have staged theirs as the same version."""
    monkeypatch.setattr("tidegate_service.core.catalog_managed.origins.LISTED_VERSIONS", 2)
    names = [f"stock-{number}" for number in range(1, 6)]
    at = await stock_set_back(made, database_url, *names)
    for said in at.said.values():
        staged(at.then, at.table, said.version, f"stock-{9 - said.version}", at=said.timestamp)
    done = await rebuild(at.then.context, at.table.id)
    assert (done.lost, done.table.latest_version) == ((), 7)
    assert await files_of(at.then, at.table) == await files_of(at.now, at.table)


@pytest.mark.parametrize("is_staged", [True, False])
async def test_a_log_that_was_cleaned_up_to_one_of_them(made, database_url, is_staged):
    at = await stock_set_back(made, database_url, "b", "stock-1", "stock-2", "c", **A_DAY)
    await cleaned_up(at.now, database_url, made.storage, at.table, to=4)
    if not is_staged:
        for file in (at.then.log_folder(at.table) / "_staged_commits").glob(f"{4:020d}.*"):
            file.unlink()
        match = "neither says that this service wrote it .* nor has the bytes of a staged commit"
        with pytest.raises(TableQuarantined, match=match):
            await propose(at.then.context, at.table.id, body("new"))
        with pytest.raises(Refused, match=match) as refused:
            await rebuild(at.then.context, at.table.id)
        assert refused.value.code is Code.BROKEN_LOG
        return
    with pytest.raises(TableQuarantined, match=r"cleaned up to version 4.* `rebuild`"):
        await propose(at.then.context, at.table.id, body("new"))
    done = await rebuild(at.then.context, at.table.id)
    assert (done.lost, done.unknown) == ((), UnknownIds(first_version=3, last_version=3))
    assert (done.table.first_version, done.table.latest_version) == (4, 6)
    # A checkpoint has the same files in other bytes.
    found, expected = [await files_of(one, at.table) for one in (at.then, at.now)]
    assert [file.path for file in found] == [file.path for file in expected]


async def test_ids_before_the_checkpoint_of_a_clean_up_that_was_cut_short(made, database_url):
    at = await stock_set_back(made, database_url, "stock-1", "b", "c", "d", **A_DAY)
    content = at.now.log_file(at.table, 3).read_bytes()
    await cleaned_up(at.now, database_url, made.storage, at.table, to=4)
    at.now.log_file(at.table, 3).write_bytes(content)
    done = await rebuild(at.then.context, at.table.id)
    assert (done.unknown, done.table.first_version) == (None, 4)
    known = await at.then.context.index.transaction(at.table.id, "stock-1")
    assert isinstance(known, CommitRecord)
    assert known.version == 3


async def test_a_copy_of_a_version_before_the_first_one_ends_no_rebuild(made, database_url):
    at = await stock_set_back(made, database_url, "b", "stock-1", "c", **A_DAY)
    copied = at.now.log_file(at.table, 2).read_bytes()
    await cleaned_up(at.now, database_url, made.storage, at.table, to=3)
    at.now.log_file(at.table, 9).write_bytes(copied)
    done = await rebuild(at.now.context, at.table.id)
    assert (done.lost, done.table.first_version, done.table.latest_version) == ((), 3, 5)


async def test_a_checkpoint_without_its_commit_dates_nothing(made, database_url):
    """A checkpoint is written after the versions behind it, at times."""
    at = await stock_set_back(made, database_url, "stock-1", "stock-2")
    log = LogOf(at.then, at.table)
    log.checkpoint(2, await rows_of(at.then.context.index, at.table, 2))
    for version in range(3):
        at.then.log_file(at.table, version).unlink()
    done = await rebuild(at.then.context, at.table.id)
    assert (done.lost, done.table.first_version, done.table.latest_version) == ((), 2, 4)
