"""A pruned scan has exactly the files that its predicates may match, whatever finds them."""

import random
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import text

from tests.builders.by_x import add, remove
from tests.service.commit.committing import land, paths, ratified, scanned
from tests.service.tables.scan_tables import PREDICATES, create, generated, table_metadata
from tests.service.world import make_world
from tidegate_protocol.log.statistics import statistics_of
from tidegate_protocol.scan.predicates import parse_predicate
from tidegate_protocol.schema.table_schema import parse_schema
from tidegate_service.core.access.roles import OPERATOR
from tidegate_service.core.errors import NotFound
from tidegate_service.core.tables.scan import ScanRequest, scan
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.storage.object_storage import ObjectStorage

pytestmark = pytest.mark.anyio


@pytest.fixture
def context(index, tmp_path):
    warehouse = f"file://{tmp_path}"
    return make_world(index, ObjectStorage(warehouse=warehouse), warehouse).context


async def found_by(context, table, version, *predicates):
    request = ScanRequest(version=version, predicates=predicates)
    return await scanned(await scan(context, table.id, request))


async def check_all(context, table, *versions):
    """Every predicate, at these versions: the scan against the evaluator on each live file."""
    for version in versions:
        state = await context.index.state_at(table.id, version)
        schema = parse_schema(state.metadata.schema_string)
        columns = state.metadata.partition_columns
        live = [a async for batch in context.index.files(table.id, version) for a in batch]
        for texts in PREDICATES:
            parsed = [parse_predicate(text, schema, columns) for text in texts]
            expected = {
                file.raw
                for file in live
                if not parsed
                or any(
                    p.may_match(file.partition_values, statistics_of(file.stats)) for p in parsed
                )
            }
            found = await found_by(context, table, version, *texts)
            assert sorted(file.raw for file in found) == sorted(expected), (version, texts)


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("seed", range(2))
async def test_it_has_the_files_that_may_match(context, engine, seed, mapped):
    # Pages so small that everything takes several.
    paged = PostgresIndex(engine, files_per_batch=4, limits=IndexLimits(partitions_a_page=3))
    small = replace(context, index=paged)
    table = await generated(small.index, random.Random(seed), mapped=mapped, versions=4)
    await check_all(small, table, 2, 4)


async def test_files_of_the_release_before_are_looked_at_one_by_one(context, database_url):
    table = await generated(context.index, random.Random(7), mapped=False)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE files SET partition = NULL WHERE hashtext(path) % 2 = 0")
    await check_all(context, table, 6)


async def test_two_spellings_of_a_partition_are_both_found(context, database_url):
    table = await create(context.index, table_metadata(mapped=False))
    one, other = {"p": "a", "n": "1"}, {"n": "1", "p": "a"}
    table = await land(
        context.index, table, add("one", partitionValues=one), add("other", partitionValues=other)
    )
    with psycopg.connect(database_url) as connection:
        keys = connection.execute("SELECT DISTINCT partition FROM files").fetchall()
        assert keys == [('{"n":"1","p":"a"}',)]
        # As an older release wrote them.
        connection.execute("UPDATE files SET partition = partition_values::text")
    assert len(await found_by(context, table, 1, "p = 'a'")) == 2


async def test_files_from_before_a_table_had_partitions_are_not_lost(context):
    """No writer that keeps to the protocol leaves them; one past us could."""
    index = context.index
    table = await create(index, table_metadata(mapped=False, partition_columns=()))
    bare = {"partitionValues": {}}
    table = await land(index, table, *(add(name, **bare) for name in ("a", "b", "c")))
    table = await land(index, table, table_metadata(mapped=False), remove("a"))
    table = await land(index, table, remove("b"), add("d", partitionValues={"p": "x", "n": None}))
    assert sorted(file.path for file in await found_by(context, table, 2, "p = 'a'")) == ["b", "c"]
    await check_all(context, table, 1, 2, 3)


async def test_files_of_which_the_next_commit_leaves_none_are_not_lost(context):
    """Both commits are written together."""
    index = context.index
    table = await create(index, table_metadata(mapped=False, partition_columns=()))
    table = await land(index, table, add("a", partitionValues={}))
    async with index.commit_section(table.id) as section:
        partitioned = add("b", partitionValues={"p": "x", "n": None})
        await section.append(ratified(2, table_metadata(mapped=False), partitioned))
        await section.append(ratified(3, remove("a")))
        await section.save()
    assert [file.path for file in await found_by(context, section.table, 2, "p = 'a'")] == ["a"]


async def test_a_table_that_is_overwritten_with_partitions_is_not_gone_through(context):
    index = context.index
    table = await create(index, table_metadata(mapped=False, partition_columns=()))
    table = await land(index, table, *(add(f"f{n}", partitionValues={}) for n in range(500)))
    table = await land(index, table, *(remove(f"f{n}") for n in range(1, 500)))
    read = text(
        "SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0) FROM pg_stat_xact_user_tables "
        "WHERE relname = 'files'"
    )
    async with index.commit_section(table.id) as section:
        # Of the transactions before it, too.
        async with section._unit.statements() as connection:
            before = (await connection.execute(read)).scalar_one()
        added = add("a", partitionValues={"p": "x", "n": None})
        await section.append(ratified(3, table_metadata(mapped=False), remove("f0"), added))
        async with section._unit.statements() as connection:
            assert (await connection.execute(read)).scalar_one() - before <= 20
        await section.save()
    await check_all(context, section.table, 2, 3)


async def test_unpartitioned_files_have_no_entry(context, database_url):
    table = await create(context.index, table_metadata(mapped=False, partition_columns=()))
    await land(context.index, table, *(add(f"f{n}", partitionValues={}) for n in range(50)))
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT DISTINCT partition FROM files").fetchall() == [("",)]
        size = connection.execute("SELECT pg_relation_size('files_partition_idx')").fetchone()
    # An index without entries is its first page.
    assert size == (8192,)


async def test_a_table_forgotten_meanwhile_is_not_a_short_scan(context, engine):
    index = PostgresIndex(engine, files_per_batch=2)
    table = await create(index, table_metadata(mapped=False))
    files = [add(f"f{n}", partitionValues={"p": f"{n % 3}", "n": None}) for n in range(12)]
    table = await land(index, table, *files)
    request = ScanRequest(predicates=("p >= '0'",))
    found = await scan(replace(context, index=index), table.id, request)
    assert len(await anext(found.files)) == 2
    assert await index.forget(table.id, by=OPERATOR)
    with pytest.raises(NotFound):
        [batch async for batch in found.files]


async def test_a_scan_that_is_given_up_leaves_nothing_behind(context, engine):
    index = PostgresIndex(engine, files_per_batch=2)
    table = await create(index, table_metadata(mapped=False))
    table = await land(index, table, *(add(f"f{n}") for n in range(9)))
    found = await scan(replace(context, index=index), table.id, ScanRequest())
    assert len(await anext(found.files)) == 2
    await found.files.aclose()
    assert index.pool_use().in_use == 0
    assert len(await paths(index, table, 1)) == 9


async def test_statistics_are_cut_to_columns(context):
    table = await create(context.index, table_metadata(mapped=False))
    stats = '{"numRecords":3,"minValues":{"v":1,"p":"a"},"nullCount":{"n":0},"maxValues":null}'
    odd = add("odd", stats='"text"')
    deep = '{"minValues":{"v":' + "[" * 5000 + "]" * 5000 + "}}"
    table = await land(
        context.index,
        table,
        add("a", stats=stats, unknownField=[1, 2.5]),
        add("b", stats=None),
        odd,
        add("z_deep", stats=deep),
    )
    request = ScanRequest(columns=("V",))
    files = await scanned(await scan(context, table.id, request))
    assert [file.stats for file in files] == [
        '{"numRecords":3,"minValues":{"v":1},"nullCount":{},"maxValues":null}',
        None,
        '"text"',
        deep,
    ]
    assert b'"unknownField":[1,2.5]' in files[0].raw
