"""Commits of others that are dated at the end of the calendar, and what comes after them."""

import json

import pytest

from tests.builders.by_x import add
from tests.builders.proposals import proposal
from tests.service.commit.far_ahead import times, written_past
from tidegate_protocol.base.problems import Code
from tidegate_protocol.replay.commits import MAX_TIMESTAMP
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import Refused, TableQuarantined
from tidegate_service.core.maintenance.end_quarantine import release_table
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

SWITCHED_ON = {"delta.enableInCommitTimestamps": "true"}
KINDS = pytest.mark.parametrize("properties", [{}, SWITCHED_ON], ids=["plain", "in-commit"])


def dated(world, table, version, timestamp):
    """A version of another writer whose commitInfo says so, in both of its ways."""
    written_past(world, table, version, version)
    info, file = world.actions_of(table, version)
    info["commitInfo"] |= {"timestamp": timestamp, "inCommitTimestamp": timestamp}
    world.log_file(table, version).write_text(f"{json.dumps(info)}\n{json.dumps(file)}\n")


@KINDS
async def test_later_versions_keep_their_dates_when_the_log_is_read_again(world, properties):
    table = await world.create(properties=properties)
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
