"""Clean-ups of a plain table's log that leave the index's head and take what is behind it.

Delta writers delete in no order, and a clean-up that is cut short, or some of whose requests fail,
leaves any part of what it was to take.
"""

from collections.abc import Sequence

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.groups.grouping import instance
from tests.service.faults import FaultyLog
from tests.service.log.test_hidden_log import ROWS
from tidegate_protocol.log.file_names import commit_name
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.log.catching_up import tail
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.ports.records import TableState
from tidegate_service.core.tables.lookup import get_table

pytestmark = pytest.mark.anyio


def mine(name: str):
    return proposal(add(f"x=1/{name}"), transaction_id=name)


async def cut_short(world, *gone: int, checkpoint: int | None = 6):
    """A table of two versions, 0 and 1, behind which others wrote up to 6, with a checkpoint of
    one of them; of what is under it, their clean-up has taken these so far."""
    table = await world.create()
    await propose(world.context, table.id, mine("first"))
    for version in range(2, 7):
        write_deltalake(table.location, ROWS, mode="append")
        if version == checkpoint:
            DeltaTable(table.location).create_checkpoint()
    for version in gone:
        world.log_file(table, version).unlink()
    world.checked_long_ago()
    return table


def is_read(table, name: str) -> bool:
    return any(uri.endswith(f"/{name}") for uri in DeltaTable(table.location).file_uris())


@pytest.mark.parametrize(
    ("gone", "checkpoint"),
    [
        pytest.param((2, 3), 6, id="right behind the head"),
        pytest.param((3, 5), 6, id="behind a version that is there"),
        pytest.param((2, 3, 4, 5, 6), 6, id="all that the checkpoint holds"),
        pytest.param((0, 4), 5, id="with versions behind the checkpoint"),
        pytest.param((3,), 3, id="of the checkpoint's own version"),
    ],
)
async def test_no_commit_goes_into_the_hole(world, gone, checkpoint):
    table = await cut_short(world, *gone, checkpoint=checkpoint)
    for version, name in enumerate(("one", "two", "three"), 7):
        landed = await propose(world.context, table.id, mine(name))
        assert (landed.record.version, landed.replayed) == (version, False)
        assert is_read(table, name)
    assert not any(world.log_file(table, version).exists() for version in gone)
    head = await get_table(world.context, table.id)
    assert (head.latest_version, head.num_files) == (9, 9)
    assert (await verify_table(world.context, table.id)).differences == ()
    assert (await propose(world.context, table.id, mine("first"))).record.version == 1


async def test_where_no_checkpoint_covers_it_the_table_is_quarantined(world):
    table = await cut_short(world, checkpoint=None)
    content = world.log_file(table, 3).read_bytes()
    world.log_file(table, 3).unlink()
    with pytest.raises(TableQuarantined, match="version 3 is missing"):
        await propose(world.context, table.id, mine("lost"))
    assert (await get_table(world.context, table.id)).state is TableState.QUARANTINED
    assert not world.log_file(table, 3).exists()
    with pytest.raises(Refused, match="version 3 is missing from the log, and there are later"):
        await release_table(world.context, table.id)
    world.log_file(table, 3).write_bytes(content)
    await release_table(world.context, table.id)
    assert (await propose(world.context, table.id, mine("kept"))).record.version == 7


@pytest.fixture
def listings(monkeypatch):
    """From where logs were listed, and the names that each listing is not to have."""
    real, made, kept_out = FaultyLog.entries, [], set()

    async def entries(self, *, behind: int | None = None):
        made.append(behind)
        async for batch in real(self, behind=behind):
            yield [entry for entry in batch if entry.name not in kept_out]

    monkeypatch.setattr(FaultyLog, "entries", entries)
    return made, kept_out


async def test_what_came_while_the_log_was_listed_is_no_hole(world, listings):
    table = await cut_short(world, checkpoint=None)
    _, kept_out = listings
    kept_out |= {commit_name(2), commit_name(4)}
    landed = await propose(world.context, table.id, mine("more"))
    assert landed.record.version == 7
    # Read in version by version.
    assert (await get_table(world.context, table.id)).first_version == 0


async def test_one_listing_of_what_is_behind_the_head_is_for_all_commits_of_a_while(
    world, listings
):
    one, (made, _) = instance(world), listings
    table = await world.create()
    await one.propose(table, mine("first"))
    assert made == []
    world.checked_long_ago()
    for name in "abc":
        await one.propose(table, mine(name))
    assert made == [1]


async def test_verify_finds_what_was_committed_under_a_checkpoint(world, monkeypatch):
    """As by an instance that looks for its head alone. Both have as many files."""

    async def not_looked_for(*_: object) -> None:
        return None

    table = await cut_short(world, 2, 3)
    monkeypatch.setattr(tail, "gap", not_looked_for)
    versions: Sequence[int] = [
        (await propose(world.context, table.id, mine(name))).record.version
        for name in ("one", "two", "three")
    ]
    assert versions == [2, 3, 7]
    assert not is_read(table, "one")
    seen = await verify_table(world.context, table.id)
    (found,) = seen.differences
    assert (found.version, found.kind) == (6, "index")
    assert "6 files" in found.detail
    assert (await verify_table(world.context, table.id, from_version=7)).differences == ()
