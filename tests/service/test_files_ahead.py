"""Files that are written while their commit is being made: nobody sees them without it."""

import json

import pytest

from tests.service.faults import Fault
from tests.service.world import proposal
from tidegate_protocol.actions import Action
from tidegate_protocol.problems import Code
from tidegate_protocol.transaction import Conflict, Invalid
from tidegate_service.api.action_lines import ActionLines
from tidegate_service.core.outcomes import Committed, WouldCommit
from tidegate_service.core.propose import conflict_check, propose
from tidegate_service.core.tables import get_table
from tidegate_service.core.verify import verify_table
from tidegate_service.index import bulk_files
from tidegate_service.index.files_ahead import FilesAhead

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("catalog_managed", [False, True], ids=["plain", "catalog-managed"])
MANY = 12_000


def lines(count: int = MANY, *, name: str = "a", kind: str = "add") -> tuple[Action, ...]:
    """So many file actions as they come in a body."""
    time = {"add": "modificationTime", "remove": "deletionTimestamp"}[kind]
    texts = [
        json.dumps(
            {
                kind: {
                    "path": f"x={n % 3}/{name}-{n:05}.parquet",
                    "partitionValues": {"x": str(n % 3)},
                    "size": n + 1,
                    "dataChange": True,
                    time: 1,
                }
            }
        )
        for n in range(count)
    ]
    actions = ActionLines(max_actions=count)
    for start in range(0, count, 1_000):
        actions.add("\n".join([*texts[start : start + 1_000], ""]).encode())
    return actions.all()


@pytest.fixture
def begun(monkeypatch) -> list[FilesAhead]:
    """Whose files are begun before their commit is there, in order."""
    seen: list[FilesAhead] = []
    write = FilesAhead.write

    async def watched(self: FilesAhead, driver) -> None:
        seen.append(self)
        await write(self, driver)

    monkeypatch.setattr(FilesAhead, "write", watched)
    return seen


async def check(world, table, *, files: int, latest: int) -> None:
    head = await get_table(world.context, table.id)
    assert (head.latest_version, head.num_files) == (latest, files)
    assert not (await verify_table(world.context, table.id)).differences


@BOTH
async def test_they_are_there_with_their_commit(world, begun, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    landed = await propose(world.context, table.id, proposal(*lines()))
    assert isinstance(landed, Committed)
    assert [ahead.version for ahead in begun] == [1]
    await check(world, table, files=MANY, latest=1)
    again = await propose(world.context, table.id, proposal(*lines(name="b"), read_version=0))
    assert again.record.rebased_over == 1
    await check(world, table, files=2 * MANY, latest=2)


@BOTH
async def test_what_is_live_already_is_replaced(world, begun, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    await propose(world.context, table.id, proposal(*lines()))
    await propose(world.context, table.id, proposal(*lines(100), *lines(name="b")))
    assert len(begun) == 2
    await check(world, table, files=2 * MANY, latest=2)
    removing = proposal(*lines(kind="remove"), read_version=2)
    assert isinstance(await propose(world.context, table.id, removing), Committed)
    await check(world, table, files=MANY, latest=3)


@BOTH
async def test_an_invalid_commit_leaves_none(world, begun, catalog_managed):
    table = await world.create(catalog_managed=catalog_managed)
    twice = proposal(*lines(), *lines(1))
    refused = await propose(world.context, table.id, twice)
    assert isinstance(refused, Invalid)
    assert refused.code is Code.DUPLICATE_ACTION
    assert len(begun) == 1
    head = await get_table(world.context, table.id)
    assert head.num_files == 0
    landed = await propose(world.context, table.id, proposal(*lines()))
    await check(world, table, files=MANY, latest=landed.record.version)


async def test_a_conflict_begins_none(world, begun):
    table = await world.create(catalog_managed=True)
    await propose(world.context, table.id, proposal(*lines(10)))
    lost = proposal(*lines(), read_version=0, whole_table=True)
    assert isinstance(await propose(world.context, table.id, lost), Conflict)
    assert not begun
    await check(world, table, files=10, latest=1)


async def test_a_conflict_check_begins_none(world, begun):
    table = await world.create()
    assert isinstance(
        await conflict_check(world.context, table.id, proposal(*lines())), WouldCommit
    )
    assert not begun


async def test_where_the_version_is_taken_they_move_on(world, begun):
    """The files of the version that it was to be are taken back with it."""
    table = await world.create()
    (foreign,) = lines(1, name="foreign")
    world.log_file(table, 1).write_bytes(foreign.raw + b"\n")
    landed = await propose(world.context, table.id, proposal(*lines()))
    assert landed.record.version == 2
    assert [ahead.version for ahead in begun] == [1, 2]
    await check(world, table, files=MANY + 1, latest=2)


async def test_a_put_without_an_answer_lands_once(world, faults, begun):
    table = await world.create()
    faults.faults.append(Fault.ANSWER_LOST)
    landed = await propose(world.context, table.id, proposal(*lines()))
    assert landed.record.version == 1
    await check(world, table, files=MANY, latest=1)


@BOTH
async def test_what_the_database_refuses_at_first_is_written_again(
    world, begun, catalog_managed, monkeypatch
):
    """A statement that fails ahead of the commit is not the commit's failure."""
    table = await world.create(catalog_managed=catalog_managed)
    copy, calls = bulk_files._copy, []

    async def failing(driver, block) -> None:
        calls.append(block)
        if len(calls) == 2:
            await driver.execute("SELECT 1 / 0")
        await copy(driver, block)

    monkeypatch.setattr(bulk_files, "_copy", failing)
    assert isinstance(await propose(world.context, table.id, proposal(*lines())), Committed)
    assert len(calls) > 3
    await check(world, table, files=MANY, latest=1)
