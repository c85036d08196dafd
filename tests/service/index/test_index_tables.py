"""Creating, finding, listing and forgetting tables."""

import asyncio
import uuid

import pytest
from sqlalchemy import text

from tests.builders.by_x import METADATA, PROTOCOL, add
from tests.service.commit.committing import append, create, land, new_table, paths, ratified
from tidegate_protocol.log.actions import DomainMetadata, Txn
from tidegate_service.core.access.roles import OPERATOR
from tidegate_service.core.errors import IndexUnavailable, NotFound, Refused, TableExists
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.limits import IndexLimits
from tidegate_service.index.postgres.engine import ConnectionSettings, create_engine
from tidegate_service.index.schema.tables import metadata

pytestmark = pytest.mark.anyio

OF_NO_TABLE = ("audit", "tokens", "token_grants", "hooks")
"""The trail outlives its tables; tokens and the names of hooks are of none."""


async def test_a_table_is_found_by_name_in_any_case_and_by_id(index):
    head = await create(index, table=new_table(name="Main.Air.Flights"))
    for ref in ("Main.Air.Flights", "main.air.flights", "MAIN.AIR.FLIGHTS", head.id):
        assert await index.table(ref) == head
    for ref in ("main.air", "main.air.flights2", str(uuid.uuid4()), "", "nul\0"):
        assert await index.table(ref) is None


async def test_case_means_ascii_only(index):
    """The Kelvin sign's lower case is an ASCII k; it must not find tables by that."""
    await create(index, table=new_table(name="main.k.t"))
    assert await index.table("main.\N{KELVIN SIGN}.t") is None


async def test_a_name_is_taken_in_any_case(index):
    await create(index, table=new_table(name="main.a.b"))
    with pytest.raises(TableExists, match=r"a table named main\.a\.b exists"):
        await create(index, table=new_table(name="Main.A.B"))


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ("file:///lake/a", "file:///lake/a"),
        ("file:///lake/a", "file:///lake/a/b"),
        ("file:///lake/a", "file:///lake/a/b/c/d"),
        ("file:///lake/a/b", "file:///lake/a"),
        ("file:///lake/a/b", "file:///lake"),
        ("s3://bucket", "s3://bucket/table"),
        # One folder, on some file systems.
        ("file:///lake/a", "file:///Lake/A"),
        ("file:///lake/A", "file:///lake/a/b"),
        ("file:///lake/A/b", "file:///lake/a"),
        ("file:///lake/\u00c9/A", "file:///LAKE/\u00c9/a"),
    ],
)
async def test_overlapping_locations_are_refused(index, there, wanted):
    await create(index, table=new_table(location=there))
    table = new_table(location=wanted)
    with pytest.raises(TableExists, match="location"):
        await create(index, table=table)
    assert await index.table(table.id) is None


@pytest.mark.parametrize(
    "location",
    ["file:///lake/ab", "file:///lake/a_", "file:///la", "s3://lake/b", "s3://lake/A"],
)
async def test_locations_side_by_side_are_not_refused(index, location):
    for there in ("file:///lake/a", "s3://lake/a"):
        await create(index, table=new_table(location=there))
    await create(index, table=new_table(location=location))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"location": "file:///lake/a"}, {"location": "file:///lake/a/b"}),
        ({"location": "file:///lake/a/b/c"}, {"location": "file:///lake/a"}),
        ({"location": "file:///lake/a"}, {"location": "file:///lake/a"}),
        ({"location": "file:///lake/a"}, {"location": "file:///LAKE/A/b"}),
        ({"name": "main.a.b"}, {"name": "main.A.b"}),
    ],
)
@pytest.mark.parametrize("saved", [True, False])
async def test_creations_that_exclude_each_other_wait_for_each_other(
    index, waiters, first, second, saved
):
    async with index.creation_section(new_table(**first)) as section:
        await section.append(ratified(0, PROTOCOL, METADATA))
        later = asyncio.create_task(create(index, table=new_table(**second)))
        # It has got as far as waiting for this section before this section ends.
        await waiters(1)
        if saved:
            await section.save()
    if saved:
        with pytest.raises(TableExists):
            await later
    else:
        assert (await later).latest_version == 0


async def test_creations_side_by_side_do_not_wait(index):
    async with index.creation_section(new_table(location="file:///lake/a/b")):
        await create(index, table=new_table(location="file:///lake/a/c"))
        await create(index, table=new_table(location="file:///lake/b"))


async def test_a_location_beyond_what_an_index_holds_is_refused(index):
    # Random, since Postgres compresses what it can.
    random_text = "".join(uuid.uuid4().hex for _ in range(500))
    with pytest.raises(Refused):
        await create(index, table=new_table(location="file:///" + random_text))


class TestPages:
    @pytest.fixture
    async def names(self, index):
        for name in ("main.b.x", "Main.A.y", "main.a.X", "main_a.b.c", "other.a.x", "main.a.x%"):
            await create(index, table=new_table(name=name))

    @pytest.mark.parametrize(
        ("prefix", "found"),
        [
            ("", ["main.a.X", "main.a.x%", "Main.A.y", "main.b.x", "main_a.b.c", "other.a.x"]),
            ("MAIN.a.", ["main.a.X", "main.a.x%", "Main.A.y"]),
            ("main_", ["main_a.b.c"]),
            ("main.a.x%", ["main.a.x%"]),
            ("%", []),
        ],
    )
    async def test_a_prefix_is_taken_literally(self, index, names, prefix, found):
        tables = await index.tables(prefix=prefix, after=None, limit=10, known=ReplicatedHeads())
        assert [table.name for table in tables] == found

    async def test_pages_follow_each_other(self, index, names):
        seen, after = [], None
        while page := await index.tables(
            prefix="main", after=after, limit=2, known=ReplicatedHeads()
        ):
            assert len(page) <= 2
            seen += [table.name for table in page]
            after = page[-1].name.upper()
        assert seen == ["main.a.X", "main.a.x%", "Main.A.y", "main.b.x", "main_a.b.c"]


class TestForgetting:
    async def test_nothing_is_left_of_a_forgotten_table(self, index, engine):
        txn = Txn(app_id="a", version=1)
        domain = DomainMetadata(domain="d", configuration="", removed=False)
        table = new_table()
        forgotten = await create(index, add("a"), txn, domain, table=table)
        async with index.commit_section(forgotten.id) as section:
            await section.abort("x")
            await append(section, add("b"))
            await append(section, add("c"))
            await section.save()
        kept = await create(index, add("a"))

        assert await index.forget(forgotten.id, by=OPERATOR) is True
        assert await index.forget(forgotten.id, by=OPERATOR) is False

        assert await index.table(forgotten.id) is None
        async with engine.connect() as connection:
            for name, declared in metadata.tables.items():
                if name in OF_NO_TABLE or name.startswith("forgotten_"):
                    continue
                column = "id" if name == "tables" else "table_id"
                assert column in declared.c
                rows = await connection.execute(text(f"SELECT DISTINCT {column} FROM {name}"))
                assert {str(row[0]) for row in rows} <= {kept.id}
        await create(index, table=new_table(name=table.name, location=table.location))

    @pytest.fixture
    def index(self, engine):
        few = IndexLimits(forgotten_commits=3, forgotten_files=2)
        return PostgresIndex(engine, limits=few)

    @pytest.fixture
    async def long_table(self, index):
        """A table that is forgotten in several slices of everything."""
        table = await create(index, add("f0"), add("f0", dv="d"), add("f1"))
        for number in range(2, 10):
            table = await land(index, table, add(f"f{number}"), principal="ada")
        return table

    async def test_a_long_table_goes_in_slices(self, index, engine, long_table):
        assert await index.forget(long_table.id, by=OPERATOR) is True
        async with engine.connect() as connection:
            for name in ("tables", "commits", "files"):
                count = await connection.execute(text(f"SELECT count(*) FROM {name}"))
                assert count.scalar_one() == 0
            trail = await connection.execute(
                text("SELECT version FROM audit WHERE deed = 'commit' ORDER BY id")
            )
            assert trail.scalars().all() == list(range(1, 9))

    async def test_a_forgetting_that_is_cut_off_has_changed_nothing(
        self, index, engine, database_url, long_table
    ):
        history = await index.history(long_table.id, from_version=None, to_version=None, limit=99)
        files = await paths(index, long_table, 8)
        hasty = create_engine(database_url, ConnectionSettings(lock_timeout_ms=200))
        async with engine.connect() as connection:
            # The last slice of commits meets this, when all others are gone.
            await connection.execute(text("SELECT FROM commits WHERE version = 0 FOR UPDATE"))
            with pytest.raises(IndexUnavailable):
                await PostgresIndex(hasty).forget(long_table.id, by=OPERATOR)
            # Nobody has seen anything of it.
            assert await index.table(long_table.id) == long_table
        await hasty.dispose()
        assert await paths(index, long_table, 8) == files
        assert history == await index.history(
            long_table.id, from_version=None, to_version=None, limit=99
        )
        assert await index.forget(long_table.id, by=OPERATOR) is True

    async def test_what_only_the_index_holds_is_not_forgotten(self, index):
        table = await create(index, table=new_table(catalog_managed=True))
        assert await index.forget(table.id, by=OPERATOR) is False
        assert await index.table(table.id) == table
        await index.mark_published(table.id, 0, 0)
        assert await index.forget(table.id, by=OPERATOR) is True

    async def test_forgetting_waits_for_a_commit_under_way(self, index, other_index, waiters):
        table = await create(index)
        async with index.commit_section(table.id) as section:
            forgetting = asyncio.create_task(other_index.forget(table.id, by=OPERATOR))
            await waiters(1)
            await append(section, add("a"))
            await section.save()
        assert await forgetting is True

    async def test_a_commit_that_waited_finds_no_table(self, index, other_index, waiters, engine):
        table = await create(index)
        async with engine.connect() as connection:
            await connection.execute(
                text("SELECT FROM tables WHERE id = :id FOR UPDATE"), {"id": table.id}
            )
            late = asyncio.create_task(land(index, table))
            await waiters(1)
            forgetting = asyncio.create_task(other_index.forget(table.id, by=OPERATOR))
            await waiters(2)
            # Both wait for the row; whoever is second finds what the first has left.
            await connection.rollback()
        done = await asyncio.gather(late, forgetting, return_exceptions=True)
        assert await index.table(table.id) is None
        assert isinstance(done[0], NotFound) or done[0].latest_version == 1
        assert done[1] is True
