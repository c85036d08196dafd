"""Which files are live at which version, and what finding that out costs."""

import json
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import text

from tests.builders import lines
from tests.builders.by_x import add, remove
from tests.service.commit.committing import append, create, land, paths
from tidegate_protocol.log.codec import decode
from tidegate_service.core.access.roles import OPERATOR
from tidegate_service.core.errors import NotFound
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import DEFAULTS
from tidegate_service.index.postgres.parameters import int8s, texts, uuids
from tidegate_service.index.postgres.pipeline import Query, Statement, run
from tidegate_service.index.reading.live_files import files_page_query
from tidegate_service.index.rows.file_rows import CLOSE
from tidegate_service.index.rows.keys import MAX_KEY_BYTES

pytestmark = pytest.mark.anyio


async def test_every_version_has_its_files(index):
    table = await create(index, add("b"), add("a", size=1))
    table = await land(index, table, remove("a"), add("c", size=100))
    table = await land(index, table)
    table = await land(index, table, remove("b"))

    assert [await paths(index, table, v) for v in range(4)] == [
        ["a", "b"],
        ["b", "c"],
        ["b", "c"],
        ["c"],
    ]
    assert (table.num_files, table.size_bytes) == (1, 100)


async def test_files_come_back_with_their_own_bytes(index):
    line = lines.add("x%20y/z", {"x": "1"}, tags={"k": None}, unknownField=[1, 2.5])
    # As it is spelled, with spaces.
    action = decode(json.dumps(line).encode())
    table = await create(index, action)
    ((found,),) = [batch async for batch in index.files(table.id, 0)]
    assert found == action
    assert found.raw == action.raw
    assert b'"unknownField": [1, 2.5]' in found.raw


async def test_a_file_added_again_while_live_is_replaced(index):
    table = await create(index, add("a", size=10))
    again = add("a", size=7, dataChange=False)
    table = await land(index, table, again)

    assert (table.num_files, table.size_bytes) == (1, 7)
    ((before,),) = [batch async for batch in index.files(table.id, 0)]
    ((after,),) = [batch async for batch in index.files(table.id, 1)]
    assert (before.size, after.size) == (10, 7)
    table = await land(index, table, remove("a"))
    assert (table.num_files, table.size_bytes) == (0, 0)
    table = await land(index, table, add("a", size=3))
    assert (table.num_files, table.size_bytes) == (1, 3)
    assert [await paths(index, table, v) for v in range(4)] == [["a"], ["a"], [], ["a"]]


async def test_removing_what_is_not_live_is_harmless(index):
    table = await create(index, add("a"), add("b"))
    table = await land(index, table, remove("a"))
    table = await land(index, table, remove("a"), remove("never"), remove("b", dv="none such"))
    assert await paths(index, table, 2) == ["b"]
    assert (table.num_files, table.size_bytes) == (1, 10)


async def test_a_deletion_vector_makes_another_file_of_one_path(index):
    table = await create(index, add("a"))
    table = await land(index, table, remove("a"), add("a", dv="v1"))
    table = await land(index, table, remove("a", dv="v1"), add("a", dv="v2"))
    assert (table.num_files, table.size_bytes) == (1, 10)
    vectors = []
    for version in range(3):
        ((found,),) = [batch async for batch in index.files(table.id, version)]
        vectors.append(found.deletion_vector and found.deletion_vector.path_or_inline_dv)
    assert vectors == [None, "v1", "v2"]


async def test_paths_are_compared_decoded(index):
    table = await create(index, add("a%20b"))
    table = await land(index, table, remove("a b"), add("c%2Fd"))
    assert await paths(index, table, 1) == ["c%2Fd"]
    table = await land(index, table, remove("c/d"))
    assert table.num_files == 0


@pytest.mark.parametrize("path", ["p" * (MAX_KEY_BYTES + 1), "ü" * 3_000, "nul%00"])
async def test_any_path_of_a_foreign_commit_can_be_held(index, path):
    table = await create(index, add(path), add(path + "x", dv="v" * 5_000))
    assert sorted(await paths(index, table, 0)) == sorted([path, path + "x"])
    table = await land(index, table, remove(path), remove(path + "x", dv="v" * 5_000))
    assert table.num_files == 0


async def test_absurd_sizes_do_not_overflow(index):
    largest = 2**63 - 1
    table = await create(index, add("a", size=largest), add("b", size=largest))
    assert table.size_bytes == 2 * largest
    record = await index.commit(table.id, 0)
    assert record.metrics.bytes_added == 2 * largest
    table = await land(index, table, remove("a", size=largest), remove("b", size=largest))
    assert table.size_bytes == 0


async def test_the_last_action_about_a_file_counts(index):
    """A commit of ours names a file once; a foreign one that does not must not get stuck."""
    table = await create(index, add("kept"))
    table = await land(
        index, table, add("a"), remove("a"), remove("kept"), add("kept"), add("b"), add("b", size=3)
    )
    assert await paths(index, table, 1) == ["b", "kept"]
    assert (table.num_files, table.size_bytes) == (2, 13)


async def test_partition_values_of_a_file_at_a_version(index):
    table = await create(index, add("a b", partitionValues={"day": None, "x": "\\u"}))
    table = await land(index, table, remove("a b"))
    table = await land(index, table, add("a%20b", partitionValues={"day": "2"}))
    async with index.commit_section(table.id) as section:
        assert [await section.partition_values("a b", v) for v in range(3)] == [
            {"day": None, "x": "\\u"},
            None,
            {"day": "2"},
        ]
        assert await section.partition_values("b", 0) is None


async def test_rows_can_be_queried_beside_their_bytes(index, engine):
    table = await create(index, add("a", partitionValues={"day": "ü", "n": None}))
    async with engine.connect() as connection:
        row = (await connection.execute(text("SELECT * FROM files"))).one()
    assert str(row.table_id) == table.id
    assert (row.path, row.dv_id, row.added_version, row.removed_version) == ("a", "", 0, None)
    assert row.partition_values == {"day": "ü", "n": None}
    # They are in the action, and would be a fifth of the row.
    assert row.stats is None
    assert decode(row.action).size == row.size == 10


async def test_batches_are_bounded_and_in_order(engine):
    index = PostgresIndex(engine, files_per_batch=4)
    names = [f"{n:03}" for n in range(11)]
    table = await create(index, *(add(name) for name in reversed(names)))
    batches = [[a.path for a in batch] async for batch in index.files(table.id, 0)]
    assert batches == [names[0:4], names[4:8], names[8:11]]
    table = await land(index, table, add("011"))
    assert [len(batch) async for batch in index.files(table.id, 1)] == [4, 4, 4]
    assert [batch async for batch in index.files((await create(index)).id, 0)] == []


async def test_a_snapshot_is_not_changed_by_commits_while_it_is_read(engine):
    index = PostgresIndex(engine, files_per_batch=2)
    table = await create(index, *(add(name) for name in "bdfhj"))
    read = []
    async for batch in index.files(table.id, 0):
        read += [a.path for a in batch]
        # Before and behind the reader: removed, replaced, added.
        table = await land(
            index,
            table,
            remove("b"),
            remove("h"),
            add("j", size=1),
            add(f"a{table.latest_version}"),
        )
    assert read == list("bdfhj")
    assert "h" not in await paths(index, table, table.latest_version)


async def test_a_table_forgotten_while_it_is_read_is_not_a_short_snapshot(engine):
    index = PostgresIndex(engine, files_per_batch=2)
    table = await create(index, *(add(name) for name in "abcd"))
    batches = index.files(table.id, 0)
    assert len(await anext(batches)) == 2
    assert await index.forget(table.id, by=OPERATOR)
    with pytest.raises(NotFound):
        await anext(batches)


async def test_thousands_of_files_in_one_commit(index):
    names = [f"part-{n:05}" for n in range(12_000)]
    table = await create(index, *(add(name) for name in names))
    table = await land(index, table, *(remove(name) for name in names[:11_000]))
    assert (table.num_files, table.size_bytes) == (1_000, 10_000)
    assert await paths(index, table, 1) == names[11_000:]
    assert len(await paths(index, table, 0)) == 12_000


class TestPlans:
    """What a commit or a batch costs must not depend on how long the table is."""

    async def explain(self, connection, statement, parameters):
        explained = f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {statement}"
        (plan,) = (await connection.execute(text(explained), parameters)).scalar_one()
        return list(nodes(plan["Plan"]))

    @pytest.mark.parametrize("analyzed", [True, False])
    async def test_removing_many_files_looks_each_up(self, index, engine, analyzed):
        table = await create(index)
        table = await land(index, table, *(add(f"f{n:06}") for n in range(10_000)))
        if analyzed:
            async with engine.connect() as connection:
                await connection.execute(text("ANALYZE files"))
                await connection.commit()
        names = [f"f{n:06}" for n in range(0, 10_000, 5)]
        async with index.commit_section(table.id) as section:
            # Rows of the same transaction, which no statistics know of.
            await append(section, *(add(f"g{n:06}") for n in range(2_000)))
            explain = Statement(f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {CLOSE.text.decode()}")
            named = (
                uuids([UUID(table.id)] * len(names)),
                texts(names),
                texts([""] * len(names)),
                int8s([9] * len(names)),
                int8s([5] * len(names)),
            )
            ((explained,),) = (await run(section._unit._driver, [Query(explain, *named)]))[0]
            (found,) = json.loads(explained)
            plan = list(nodes(found["Plan"]))
        (scan,) = [
            node
            for node in plan
            if node.get("Relation Name") == "files" and node["Node Type"] == "Index Scan"
        ]
        assert (scan["Actual Loops"], scan["Actual Rows"]) == (len(names), 1)
        assert scan["Index Cond"].count(" = ") == 3
        assert "Rows Removed by Filter" not in scan
        assert not [node for node in plan if node["Node Type"] == "Seq Scan"]

    async def test_a_batch_reads_on_from_the_last(self, index, engine):
        table = await create(index, *(add(f"f{n:06}") for n in range(10_000)))
        query = files_page_query(
            UUID(table.id), 0, after=("f005000", ""), limit=100, limits=DEFAULTS
        )
        literal = query.compile(engine.sync_engine, compile_kwargs={"literal_binds": True})
        async with engine.connect() as connection:
            plan = await self.explain(connection, str(literal), {})
        (scan,) = [node for node in plan if node.get("Relation Name") == "files"]
        assert (scan["Node Type"], scan["Actual Rows"]) == ("Index Scan", 100)
        # Not from the table's first file, and nothing beside the page.
        assert "ROW(" in scan["Index Cond"]
        assert scan.get("Rows Removed by Filter", 0) == 0


def nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


async def test_a_section_goes_through_the_files_of_a_version(index):
    many = [add(f"f{number:05}") for number in range(5_001)]
    table = await create(index, *many)
    table = await land(index, table, remove("f00000"), add("z"))
    async with index.commit_section(table.id) as section:
        for version, expected in ((0, 5_001), (1, 5_001)):
            found = [f.path async for batch in section.live_files(version) for f in batch]
            assert len(found) == len(set(found)) == expected
        assert "f00000" not in found
        assert "z" in found


async def test_the_highest_row_id_is_that_of_the_head(index):
    def mark(highest, *, removed=False):
        body = {
            "domain": "delta.rowTracking",
            "configuration": json.dumps({"rowIdHighWaterMark": highest}),
            "removed": removed,
        }
        return decode(json.dumps({"domainMetadata": body}).encode())

    table = await create(index)
    for action, expected in ((None, -1), (mark(7), 7), (mark(9), 9), (mark(9, removed=True), -1)):
        if action is not None:
            table = await land(index, table, action)
        async with index.commit_section(table.id) as section:
            assert await section.row_id_high_water_mark() == expected


STATEMENTS = """
    CREATE TABLE statements (rows bigint);
    CREATE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO statements SELECT count(*) FROM changed; RETURN NULL; END $$;
    CREATE TRIGGER count_rows AFTER INSERT ON files REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION count_rows()
"""


async def test_no_statement_writes_more_files_than_it_has_time_for(index, database_url):
    """A table that was converted to Delta has all its files, a million or so, in one commit."""
    with psycopg.connect(database_url) as connection:
        connection.execute(STATEMENTS)
    table = await create(index, *(add(f"{number:05}") for number in range(12_000)))
    assert table.num_files == 12_000
    with psycopg.connect(database_url) as connection:
        counts = connection.execute("SELECT rows FROM statements").fetchall()
    assert sum(rows for (rows,) in counts) == 12_000
    assert max(rows for (rows,) in counts) <= 5_000
