"""When commits of others are dated: by Delta's rule, whatever their writers' clocks said."""

import json
from dataclasses import replace

import pytest
from deltalake import DeltaTable

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.far_ahead import FAR, times, written_past
from tests.service.log.foreign.foreign import date_file
from tidegate_protocol.base.problems import Code
from tidegate_protocol.proposal.transaction import Conflict, Reads
from tidegate_protocol.replay.commits import MAX_TIMESTAMP
from tidegate_service.core.commit.batches import plain_batch
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

SWITCHED_ON = {"delta.enableInCommitTimestamps": "true"}
YEARS_MS = 50 * 365 * 86_400_000
FEW = 2
"""Those that a commit finds under the lock are taken in there."""
FIRST_MS = 1_700_000_000_000
"""What the files of others are dated."""
CLOCKS = pytest.mark.parametrize(
    "clock",
    [lambda now: now + YEARS_MS, lambda now: now - YEARS_MS, lambda now: now // 1000, None],
    ids=["50 years ahead", "50 years behind", "seconds", "none"],
)


def written(world, table, first, last, clock):
    """Versions of another writer with this clock, whose files are a minute apart."""
    for version in range(first, last + 1):
        written_past(world, table, version, version, timestamp=None)
        if clock is not None:
            info, file = world.actions_of(table, version)
            info["commitInfo"]["timestamp"] = clock(FIRST_MS + version * 60_000)
            world.log_file(table, version).write_text(f"{json.dumps(info)}\n{json.dumps(file)}\n")
        date_file(world, table, version, FIRST_MS + version * 60_000)


def expected(first, last):
    return [FIRST_MS + version * 60_000 for version in range(first, last + 1)]


@pytest.fixture
async def old(world):
    """A registered table whose version 0 is older than what others write."""
    table = await world.create()
    _, *actions = world.log_file(table, 0).read_text().splitlines(keepends=True)
    world.log_file(table, 0).write_text("".join(actions))
    date_file(world, table, 0, FIRST_MS)
    await world.lose(table)
    asked = RegisterTable(name=table.name, location=table.location)
    registered, _ = await register_table(world.context, asked)
    return registered


@CLOCKS
@pytest.mark.parametrize("last", [FEW, FAR], ids=["under the lock", "far ahead"])
async def test_by_their_files_wherever_they_are_read(world, old, monkeypatch, clock, last):
    written(world, old, 1, last, clock)
    taken, real = [], plain_batch.take_found

    async def take_found(section, found, **others):
        await real(section, found, **others)
        taken.append(section.table.latest_version)

    monkeypatch.setattr(plain_batch, "take_found", take_found)
    # However slow the machine is.
    world = world.limited(race_s=3600.0)
    landed = await propose(world.context, old.id, proposal(add("x=1/ours")))
    assert landed.record.version == last + 1
    assert (len(taken) == last) is (last == FEW)
    found = await times(world, old)
    assert found[: last + 1] == expected(0, last)
    assert found[-1] == landed.record.timestamp
    await rebuild(world.context, old.id)
    assert await times(world, old) == found
    await world.lose(old)
    asked = RegisterTable(name=old.name, location=old.location)
    again, _ = await register_table(world.context, asked)
    assert await times(world, again) == found


@pytest.mark.parametrize("size", [0, 100_000], ids=["short", "long"])
async def test_a_winner_of_another_clock_has_the_version_s_date(world, old, size):
    written(world, old, 1, 1, lambda now: now + YEARS_MS)
    with world.log_file(old, 1).open("a") as file:
        file.write(" " * size + "\n")
    date_file(world, old, 1, expected(1, 1)[0])
    # The second instance reads the winner from the index.
    for context in (world.context, replace(world.context, windows=WindowCache())):
        lost = proposal(add("x=1/ours"), read_version=0, reads=Reads(whole_table=True))
        outcome = await propose(context, old.id, lost)
        assert isinstance(outcome, Conflict)
        assert outcome.winner.timestamp == expected(1, 1)[0]


def dated(world, table, version, timestamp):
    """A version of another writer whose commitInfo says so, in both of its ways."""
    written_past(world, table, version, version)
    info, file = world.actions_of(table, version)
    info["commitInfo"] |= {"timestamp": timestamp, "inCommitTimestamp": timestamp}
    world.log_file(table, version).write_text(f"{json.dumps(info)}\n{json.dumps(file)}\n")


async def test_later_versions_keep_their_dates_when_the_log_is_read_again(world):
    """Where an in-commit timestamp is at the end of the calendar."""
    table = await world.create(properties=SWITCHED_ON)
    dated(world, table, 1, MAX_TIMESTAMP)
    bodies = [proposal(add(f"x=1/{name}")) for name in "ab"]
    told = [(await propose(world.context, table.id, body)).record for body in bodies]
    assert [record.timestamp - MAX_TIMESTAMP for record in told] == [1, 2]
    before = await times(world, table)
    assert before == sorted(set(before))
    await rebuild(world.context, table.id)
    assert (await times(world, table))[2:] == before[2:]
    again = [await propose(world.context, table.id, body) for body in bodies]
    assert [one.record.timestamp for one in again] == [record.timestamp for record in told]
    await propose(world.context, table.id, proposal(add("x=1/c")))
    carried = [world.actions_of(table, v)[0]["commitInfo"]["timestamp"] for v in range(1, 5)]
    assert carried == [MAX_TIMESTAMP + after for after in range(4)]


async def test_in_commit_timestamps_that_leave_no_room_are_refused(world):
    """Ours behind it would have to be dated after it, or the log's timestamps would go back."""
    table = await world.create(properties=SWITCHED_ON)
    dated(world, table, 1, MAX_TIMESTAMP + 2)
    with pytest.raises(TableQuarantined, match=r"version 1, .* is 253402300800001 ms, after the"):
        await propose(world.context, table.id, proposal(add("x=1/a")))
    assert not world.log_file(table, 2).exists()
    with pytest.raises(Refused, match=r"version 1: its in-commit timestamp is 253402300800001 ms"):
        await release_table(world.context, table.id)
    dated(world, table, 1, MAX_TIMESTAMP + 1)
    await release_table(world.context, table.id)
    landed = await propose(world.context, table.id, proposal(add("x=1/a")))
    assert (landed.record.version, landed.record.timestamp) == (2, MAX_TIMESTAMP + 2)


@pytest.mark.parametrize("properties", [SWITCHED_ON, {}], ids=["on", "off"])
async def test_the_version_of_a_checkpoint_is_dated_by_the_rule_too(world, properties):
    """The metadata that switch them on, or off, are in the checkpoint alone."""
    table = await world.create(properties=properties)
    now = table.latest_timestamp
    for version in (1, 2):
        dated(world, table, version, now + YEARS_MS + version * 1_000)
        date_file(world, table, version, now + version * 60_000)
        if version == 1:
            DeltaTable(table.location).create_checkpoint()
            world.log_file(table, 0).unlink()
    await world.lose(table)
    asked = RegisterTable(name=table.name, location=table.location)
    registered, _ = await register_table(world.context, asked)
    rows = await world.context.index.history(
        registered.id, from_version=0, to_version=None, limit=9
    )
    by_file = [now + version * 60_000 for version in (2, 1)]
    by_itself = [now + YEARS_MS + version * 1_000 for version in (2, 1)]
    assert [row.timestamp for row in rows] == (by_itself if properties else by_file)


async def test_metadata_of_versions_before_the_protocol_are_heeded(world):
    table = await world.create(properties=SWITCHED_ON)
    _, *actions = world.log_file(table, 0).read_text().splitlines(keepends=True)
    (protocol,) = [line for line in actions if line.startswith('{"protocol"')]
    world.log_file(table, 0).write_text("".join(line for line in actions if line != protocol))
    said = table.latest_timestamp + YEARS_MS
    info = {"commitInfo": {"inCommitTimestamp": said}}
    world.log_file(table, 1).write_text(f"{json.dumps(info)}\n{protocol}")
    await world.lose(table)
    asked = RegisterTable(name=table.name, location=table.location)
    registered, _ = await register_table(world.context, asked)
    assert registered.latest_timestamp == said


async def test_nor_is_a_log_with_them_registered(world):
    table = await world.create(properties=SWITCHED_ON)
    dated(world, table, 1, MAX_TIMESTAMP + 2)
    await world.lose(table)
    asked = RegisterTable(name=table.name, location=table.location)
    with pytest.raises(Refused, match=r"1\.json: its in-commit timestamp is") as refused:
        await register_table(world.context, asked)
    assert refused.value.code is Code.BROKEN_LOG


async def test_where_they_are_switched_off_the_time_is_passed_over(world):
    table = await world.create()
    dated(world, table, 1, MAX_TIMESTAMP + 2)
    landed = await propose(world.context, table.id, proposal(add("x=1/a")))
    assert landed.record.version == 2
    assert landed.record.timestamp < MAX_TIMESTAMP
    assert (await get_table(world.context, table.id)).latest_timestamp == landed.record.timestamp
