"""Files of a log that nothing shows the origin of: commits of stock clients whose staged files were
deleted, or files of other writers."""

import re
import uuid

import pytest

from tests.service.catalog_managed.asking import files_of, is_closed
from tests.service.catalog_managed.restoring import body, commit
from tests.service.catalog_managed.stock_commits import stage, stock_set_back
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio

FOREIGN = {
    "other bytes": lambda content: content + b"\n",
    "as many other bytes": lambda content: content.replace(b"x=1/stock-1", b"x=1/stock-2"),
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=FOREIGN)
async def test_a_file_that_was_not_staged_so_is_anothers(made, database_url, change):
    at = await stock_set_back(made, database_url, "stock-1")
    file = at.then.log_file(at.table, 3)
    file.write_bytes(change(file.read_bytes()))
    await check_anothers(at)


async def test_a_file_that_was_staged_as_another_version_is_anothers(made, database_url):
    at = await stock_set_back(made, database_url, "stock-1")
    folder = at.then.log_folder(at.table) / "_staged_commits"
    for name in folder.glob("*"):
        name.rename(folder / name.name.replace(f"{3:020d}", f"{4:020d}"))
    await check_anothers(at)


async def check_anothers(at) -> None:
    with pytest.raises(
        TableQuarantined,
        match=r"no staged commit has its bytes: .* out of the log; then `rebuild`",
    ):
        await propose(at.then.context, at.table.id, body("new"))
    assert await is_closed(at.then, at.table)
    assert (await rebuild(at.then.context, at.table.id)).table.latest_version == 2


def unstaged(at, *names: str) -> None:
    """As where a lifecycle rule of the store deleted the staged files."""
    for name in names:
        (at.then.log_folder(at.table) / "_staged_commits" / at.said[name].file_name).unlink()


def follow(at, text: str) -> int:
    """Do what a text says to copy; returns the version."""
    (copy,) = re.findall(r"copy (\S+) to (\S+<any UUID>\.json)", text)
    assert "out of the log" not in text
    source, copied = (at.then.log_folder(at.table).parent / path for path in copy)
    content = source.read_bytes()
    copied.with_name(copied.name.replace("<any UUID>", str(uuid.uuid4()))).write_bytes(content)
    return int(source.stem)


BURIED = [
    (("stock-1", "b"), "nothing"),
    (("stock-1", "b", "stock-2"), "nothing"),
    (("stock-1", "stock-2", "b", "stock-3"), "nothing"),
    (("stock-1", "b", "stock-2"), "ours"),
]


@pytest.mark.parametrize("first", ["a commit", "a rebuild"])
@pytest.mark.parametrize(("names", "held"), BURIED, ids=str)
async def test_before_a_version_of_ours_files_are_to_be_copied(
    made, database_url, names, held, first
):
    """What was published before a version of ours was ratified, though its staged file is gone;
    also where the restored index has ratified another version in its place."""
    at = await stock_set_back(made, database_url, *names)
    then, table = at.then, at.table
    if held == "ours":
        gone = {version: then.log_file(table, version).read_bytes() for version in range(3, 6)}
        for version in gone:
            then.log_file(table, version).unlink()
        await commit(then, table, "other")
        for version, content in gone.items():
            then.log_file(table, version).write_bytes(content)
        then = at.then = made.instance(at.old_url)
    unstaged(at, *at.said)
    if first == "a commit":
        with pytest.raises(TableQuarantined, match=r"version 4|version 5") as refused:
            await propose(then.context, table.id, body("new"))
        assert follow(at, str(refused.value)) == 3
    for _ in names:
        try:
            done = await rebuild(then.context, table.id)
        except Refused as refused:
            follow(at, f"{refused.detail} {refused.hint}")
            head = await get_table(then.context, table.id)
            # Whoever asks later is given the same next step.
            assert "copy _delta_log" in str(head.state_reason)
        else:
            break
    last = 3 + names.index("b")
    assert done.table.latest_version == last
    assert [one.transaction_id for one in done.lost] == (["other"] if held == "ours" else [])
    live = {file.path for file in await files_of(then, table)}
    assert live == {"x=1/a", *(f"x=1/{name}" for name in names[: names.index("b") + 1])}


async def test_what_is_staged_counts_only_as_a_commit_of_a_stock_client(made, database_url):
    """Whoever copies another writer's file there has not made a version of the table of that."""
    at = await stock_set_back(made, database_url)
    foreign_commit(at.then, at.table, 3, {"commitInfo": {"timestamp": 1}}, FOREIGN_ADD)
    stage(at.then, at.table, 3, at.then.log_file(at.table, 3).read_bytes(), at=1)
    await check_anothers(at)


async def test_the_last_version_without_an_origin_may_be_anothers(made, database_url):
    at = await stock_set_back(made, database_url, "stock-1")
    unstaged(at, "stock-1")
    with pytest.raises(TableQuarantined, match=r"before a restore .* out of the log"):
        await propose(at.then.context, at.table.id, body("new"))
