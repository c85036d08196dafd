"""Lines that readers take, and that no proposal may have: `deltalake` says what they mean."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.builders.by_x import PROTOCOL, add, metadata
from tests.builders.proposals import proposal
from tests.service.log.foreign.foreign import FOREIGN_ADD
from tests.service.tables.delta_logs import DeltaLog, folded, lines_of, names
from tidegate_protocol.log.paths import decode
from tidegate_protocol.proposal.transaction import Conflict
from tidegate_service.core.commit.propose import propose
from tidegate_service.core.errors import TableQuarantined
from tidegate_service.core.instance.window_cache import WindowCache
from tidegate_service.core.maintenance.rebuild import rebuild
from tidegate_service.core.maintenance.verify import verify_table
from tidegate_service.core.tables.lookup import get_table
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

THEIRS = json.dumps(FOREIGN_ADD, separators=(",", ":"))
OTHER = THEIRS.replace("x=1/theirs", "x=1/other")
REMOVE = '"remove":{"path":"x=1/theirs","deletionTimestamp":1,"dataChange":true}'
INFO = '{"commitInfo":%s}\n'
CASES = {
    "nulls beside an action": f'{OTHER[:-1]},"remove":null,"metaData":null,"commitInfo":null}}',
    "a null action": f'{OTHER}\n{{"remove":null}}',
    "an object without an action": "{}\n" + OTHER,
    "no action at all": "{}",
    "two commitInfo": INFO % '{"operation":"A"}' + INFO % '{"operation":"B"}' + OTHER,
    "a commitInfo beside a remove": f'{{{REMOVE},"commitInfo":{{"operation":"A"}}}}',
    "a commitInfo that is no object": INFO % "[5]" + OTHER,
    "a commitInfo of odd types": INFO % '{"timestamp":"soon","operation":5,"tags":7}' + OTHER,
    "a commitInfo with a key twice": INFO % '{"operation":"A","operation":"B"}' + OTHER,
    "a commitInfo of a hundred levels": INFO % ('{"x":' + "[" * 100 + "]" * 100 + "}") + OTHER,
    "NUL in a commitInfo": INFO % r'{"userMetadata":"a\u0000b","txnId":"\u0000"}' + OTHER,
    "fractions": OTHER.replace('"size":5', '"size":7.0').replace('Time":1', 'Time":2.0'),
    "an exponent": OTHER.replace('"size":5', '"size":7E2'),
    "numbers as texts": OTHER.replace('"size":5', '"size":"7"'),
    "a null partition value": OTHER.replace('"1"', "null")[:-1] + ',"remove":null}',
    "a partition value that is a number": OTHER.replace('"1"', "1"),
    "a path that is there twice": OTHER.replace('"size"', '"path":"x=1/last","size"'),
    "a partition value that is there twice": OTHER.replace('"x":"1"', '"x":"2","x":"1"'),
    "an add and a remove on a line": f"{OTHER[:-1]},{REMOVE}}}",
    "two objects on a line": f"{OTHER}{{{REMOVE}}}",
    "lines that end as on old machines": f"{OTHER}\r{{{REMOVE}}}\r",
}
UNREADABLE = {
    "half a line": OTHER[:-9],
    "no size": OTHER.replace('"size":5,', ""),
    "a null for a size": OTHER.replace('"size":5', '"size":null'),
    "an action that is no object": '{"remove":[]}',
    "a line that is no object": "null",
}
THE_FIRST = {
    "two metaData": ("metaData", "description", "first", "second"),
    "two protocols": ("protocol", "minWriterVersion", 3, 4),
}


CHECKPOINTS = {
    "Parquet": lambda log, rows: log.checkpoint(1, rows),
    "V2 in Parquet": lambda log, rows: log.v2(1, rows, form="parquet", sidecars=1),
    "V2 in JSON": lambda log, rows: log.v2(
        1, [*({**row, "txn": None, "cdc": None} for row in rows), {}], form="json", sidecars=0
    ),
}


File = tuple[int, int, str | None]
"""Its size, modification time in ms, and partition value."""


async def files(world, table) -> dict[str, File]:
    head = await get_table(world.context, table.id)
    batches = world.context.index.files(table.id, head.latest_version)
    return {
        decode(file.path): (file.size, file.modification_time, file.partition_values["x"])
        async for batch in batches
        for file in batch
    }


def as_read_by_others(table) -> dict[str, File]:
    rows = pa.table(DeltaTable(table.location).get_add_actions()).to_pylist()
    return {
        decode(row["path"]): (
            row["size_bytes"],
            row["modification_time"],
            None if row["partition"]["x"] is None else str(row["partition"]["x"]),
        )
        for row in rows
    }


def written(world, table, *versions: str) -> None:
    for version, content in enumerate(versions, start=1):
        world.log_file(table, version).write_text(content + "\n")


async def registered_again(world, table):
    await world.lose(table)
    asked = RegisterTable(name=table.name, location=table.location)
    again, _ = await register_table(world.context, asked)
    return again


@pytest.mark.parametrize("line", CASES.values(), ids=CASES)
async def test_a_table_is_what_others_read_wherever_the_line_is_met(world, line):
    table = await world.create()
    written(world, table, THEIRS, line)
    expected = as_read_by_others(table)
    landed = await propose(world.context, table.id, proposal(add("x=1/ours")))
    assert landed.record.version == 3
    expected["x=1/ours"] = (10, 1, "1")
    assert as_read_by_others(table) == expected
    assert await files(world, table) == expected
    assert (await verify_table(world.context, table.id)).differences == ()
    await rebuild(world.context, table.id)
    assert await files(world, table) == expected
    again = await registered_again(world, table)
    assert await files(world, again) == expected


@pytest.mark.parametrize("line", ["nulls beside an action", "two objects on a line"])
async def test_a_winner_with_such_lines_is_a_conflict(world, line):
    table = await world.create()
    written(world, table, THEIRS, CASES[line])
    # The second instance reads the winner from the index.
    for context in (world.context, replace(world.context, windows=WindowCache())):
        lost = proposal(add("x=1/ours"), read_version=1, predicates=("x = 1",))
        outcome = await propose(context, table.id, lost)
        assert isinstance(outcome, Conflict)
        assert (outcome.winner.version, outcome.path) == (2, "x=1/other")


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE)
async def test_what_others_cannot_read_ends_commits(world, line):
    table = await world.create()
    written(world, table, THEIRS, line)
    with pytest.raises(Exception, match="Kernel error"):
        as_read_by_others(table)
    with pytest.raises(TableQuarantined, match="line 1: "):
        await propose(world.context, table.id, proposal(add("x=1/ours")))


@pytest.mark.parametrize(("kind", "field", "first", "second"), THE_FIRST.values(), ids=THE_FIRST)
async def test_the_first_of_two(world, kind, field, first, second):
    table = await world.create()
    (action,) = (a for a in world.actions_of(table, 0) if kind in a)
    written(
        world,
        table,
        "\n".join(json.dumps({kind: {**action[kind], field: value}}) for value in (first, second)),
    )
    theirs = DeltaTable(table.location)
    read = theirs.metadata().description if kind == "metaData" else theirs.protocol()[1]
    assert read == first
    await propose(world.context, table.id, proposal(add("x=1/ours")))
    taken_in = await get_table(world.context, table.id)
    assert (await verify_table(world.context, table.id)).differences == ()
    for head in (taken_in, await registered_again(world, table)):
        found = getattr(head.metadata, field, None) or head.protocol.min_writer_version
        assert found == first


async def test_a_null_property_is_no_property(world):
    """DuckDB and Delta Spark read such a table; deltalake refuses to."""
    table = await world.create(properties={"delta.appendOnly": "false"})
    (action,) = (a for a in world.actions_of(table, 0) if "metaData" in a)
    action["metaData"]["configuration"] = {"delta.appendOnly": None, "a": "1"}
    written(world, table, json.dumps(action))
    await propose(world.context, table.id, proposal(add("x=1/ours")))
    head = await get_table(world.context, table.id)
    assert head.metadata.configuration == {"a": "1"}
    again = await registered_again(world, table)
    assert again.metadata.configuration == {"a": "1"}


@pytest.mark.parametrize("write", CHECKPOINTS.values(), ids=CHECKPOINTS)
async def test_in_checkpoints(world, tmp_path, write):
    log = DeltaLog(tmp_path / "table")
    log.first(add("x=1/a"))
    log.commit(1, add("x=1/b"))
    *_, snapshot = folded([(PROTOCOL, metadata(a="1"), add("x=1/a")), (add("x=1/b"),)])
    rows = lines_of(snapshot)
    (head,) = (row["metaData"] for row in rows if "metaData" in row)
    head["configuration"]["delta.appendOnly"] = None
    write(log, rows)
    log.path(0).unlink()
    asked = RegisterTable(name=next(names), location=log.location)
    table, _ = await register_table(world.context, asked)
    assert (table.first_version, table.metadata.configuration) == (1, {"a": "1"})
    assert await files(world, table) == {"x=1/a": (10, 1, "1"), "x=1/b": (10, 1, "1")}
    assert (await verify_table(world.context, table.id)).differences == ()
