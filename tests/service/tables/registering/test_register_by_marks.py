"""Catalog-managed tables that no index knows any more, as those that were made after the backup
that was restored: their log says who wrote every version, and for which table."""

from dataclasses import replace

import psycopg
import pytest

from tests.service.catalog_managed.restoring import body, commit, given_up, publish
from tests.service.catalog_managed.stock_commits import WITHOUT_ID, again, stock_commit
from tests.service.log.foreign.foreign import FOREIGN_ADD, foreign_commit
from tests.service.maintenance.pictures import checkpointed, picture
from tests.service.world import World
from tidegate_protocol.base.problems import Code
from tidegate_service.core.access.roles import Caller, Grant, Principal, Role
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Forbidden, Refused, TableQuarantined
from tidegate_service.core.maintenance.forget import forget_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio


@pytest.fixture
async def now(made, database_url) -> World:
    return made.instance(database_url)


@pytest.fixture
async def then(made, now, database_url) -> World:
    """An instance of the database as it was before there was any table."""
    return made.instance(await made.copy(database_url))


async def of(now: World, *names: str) -> TableRecord:
    table = await now.create(catalog_managed=True)
    await commit(now, table, *names)
    await publish(now, table)
    return table


async def register(world: World, table: TableRecord, *, by_marks: bool = True) -> TableRecord:
    asked = RegisterTable(
        name=table.name, location=table.location, catalog_managed=True, by_marks=by_marks
    )
    return (await register_table(world.context, asked))[0]


@pytest.mark.parametrize("names", ["", "ab"], ids=["version 0 alone", "some"])
async def test_they_are_taken_up_by_their_marks(then, now, names):
    table = await of(now, *names)
    with pytest.raises(Refused) as refused:
        await register(then, table, by_marks=False)
    assert refused.value.code is Code.UNSUPPORTED_FEATURE
    assert "by_marks" in str(refused.value.hint)
    back = await register(then, table)
    assert back.catalog_managed
    expected = await picture(now, await get_table(now.context, table.id))
    found = await picture(then, back)
    assert found[1:] == expected[1:]
    for number, name in enumerate(names, start=1):
        landed = await propose(then.context, back.id, body(name))
        assert (landed.record.version, landed.replayed) == (number, True)
    landed = await propose(then.context, back.id, body("new"))
    assert landed.record.version == len(names) + 1
    await publish(then, back)
    assert (await verify_table(then.context, back.id)).differences == ()


async def test_a_version_of_others_is_refused(then, now):
    table = await of(now, "a")
    foreign_commit(now, table, 2, FOREIGN_ADD)
    with pytest.raises(Refused, match=r"version 2 .* did not write it"):
        await register(then, table)
    now.log_file(table, 2).unlink()
    # A copy of another version has the marks of that one.
    now.log_file(table, 2).write_bytes(now.log_file(table, 1).read_bytes())
    with pytest.raises(Refused, match=r"version 2 .* did not write it"):
        await register(then, table)
    now.log_file(table, 2).unlink()
    assert (await register(then, table)).latest_version == 1


@pytest.mark.parametrize("name", ["stock-1", WITHOUT_ID])
async def test_commits_of_stock_clients_are_taken_up_by_their_staged_files(then, now, name):
    table = await of(now, "a")
    said = await stock_commit(now, table, name)
    await commit(now, table, "b")
    await publish(now, table)
    file = now.log_folder(table) / "_staged_commits" / said.file_name
    content = file.read_bytes()
    file.write_bytes(content + b"\n")
    with pytest.raises(Refused, match=r"version 3 .* no staged commit has its bytes") as refused:
        await register(then, table)
    # Whoever moved it away would take a version of this service's with it.
    assert "version 4, which this service published, lies behind: copy" in str(refused.value.hint)
    assert "out of the log" not in str(refused.value.hint)
    file.write_bytes(content)
    back = await register(then, table)
    expected = await picture(now, await get_table(now.context, table.id))
    assert (await picture(then, back))[2:] == expected[2:]
    assert (await again(then, back, said)).latest_version == 4
    assert (await verify_table(then.context, back.id)).differences == ()


async def test_a_version_that_says_no_table_is_refused(then, now):
    """As a release before this one wrote it: it may be of any table."""
    table = await of(now, "a")
    file = now.log_file(table, 1)
    file.write_bytes(file.read_bytes().replace(b'"tableId"', b'"another"'))
    with pytest.raises(Refused, match=r"version 1 does not say which table"):
        await register(then, table)


async def test_a_log_that_does_not_begin_at_version_0_is_refused(then, now):
    table = await of(now, "a", "b")
    checkpointed(now, table, 1)
    now.log_file(table, 0).unlink()
    with pytest.raises(Refused, match="begins at version 1"):
        await register(then, table)


async def test_only_an_admin_of_everything_says_so(then, now):
    table = await of(now, "a")
    principal = Principal(name="admin", grants=(Grant(Role.ADMIN, "main"),))
    world = World(replace(then.context, caller=Caller(principal=principal)))
    with pytest.raises(Forbidden, match="admin of everything"):
        await register(world, table)
    assert await then.context.index.table(table.name) is None


async def test_it_is_for_catalog_managed_tables(then, now):
    table = await now.create()
    asked = RegisterTable(name=table.name, location=table.location, by_marks=True)
    with pytest.raises(Refused) as refused:
        await register_table(then.context, asked)
    assert refused.value.code is Code.UNSUPPORTED_FEATURE
    with pytest.raises(Refused, match="not a catalog-managed table"):
        await register(then, table)


async def test_the_row_of_a_table_that_was_here_before_is_given_up_for_it(made, now, database_url):
    """A restore brings the row back of a table that was forgotten since, and whose place another
    one has."""
    gone = await of(now, *"abcde")
    url = await made.copy(database_url)
    await forget_table(now.context, gone.id)
    now.log_folder(gone).rename(now.log_folder(gone).with_name("kept"))
    table = await now.create(name=gone.name, catalog_managed=True)
    await commit(now, table, "k")
    await publish(now, table)
    before = [path.read_bytes() for path in sorted(now.log_folder(table).iterdir())]
    then = made.instance(url)
    with pytest.raises(TableQuarantined, match="move nothing there"):
        await propose(then.context, gone.name, body("new"))
    with psycopg.connect(url) as connection:
        assert connection.execute(given_up(gone)[1]).rowcount == 1
    await forget_table(then.context, gone.id)
    back = await register(then, table)
    assert (back.latest_version, back.published_version) == (1, 1)
    again = await propose(then.context, back.id, body("k"))
    assert (again.record.version, again.replayed) == (1, True)
    assert [path.read_bytes() for path in sorted(then.log_folder(table).iterdir())] == before
