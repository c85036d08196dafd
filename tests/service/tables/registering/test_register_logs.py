"""Registering logs of every shape that healthy tables have."""

import asyncio
import os

import psycopg
import pytest

from tests.builders.by_x import PROTOCOL, add, metadata, remove
from tests.builders.lines import inline
from tests.service.tables.delta_logs import DeltaLog, folded, line, lines_of, names
from tests.service.world import make_world
from tidegate_protocol.log.actions import (
    CommitInfo,
    DomainMetadata,
    Protocol,
    Txn,
    file_key,
)
from tidegate_protocol.replay.snapshot import Snapshot
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.index.commit_index import PostgresIndex
from tidegate_service.index.postgres.engine import ConnectionSettings, create_engine
from tidegate_service.storage import ObjectStorage

pytestmark = pytest.mark.anyio

HISTORY = (
    (PROTOCOL, metadata(), add("a"), add("b%20b")),
    (add("c"), Txn(app_id="app", version=1), CommitInfo(txn_id="one", operation="WRITE")),
    (remove("a"), add("d"), DomainMetadata(domain="x", configuration="1", removed=False)),
    # Added again, with a vector; and one file's statistics replaced.
    (add("a"), remove("c"), add("c", deletionVector=inline("a")), add("d", stats=None)),
    (metadata(delta_appendOnly="false"), Txn(app_id="app", version=2), add("e")),
    (
        remove("c", deletionVector=inline("a")),
        add("c", deletionVector=inline("b")),
        DomainMetadata(domain="x", configuration="1", removed=True),
    ),
)
SNAPSHOTS = tuple(folded(HISTORY))
HEAD = len(HISTORY) - 1


@pytest.fixture
def log(tmp_path):
    """The history above, all of it as commits."""
    log = DeltaLog(tmp_path / "table")
    for version, actions in enumerate(HISTORY):
        log.commit(version, *actions)
    return log


async def register(world, log: DeltaLog):
    table, created = await register_table(
        world.context, RegisterTable(name=next(names), location=log.location)
    )
    assert created
    return table


async def assert_holds(world, table, first: int, snapshots=SNAPSHOTS) -> None:
    """The index knows every version from the first one on as the snapshots do."""
    index = world.context.index
    assert (table.first_version, table.latest_version) == (first, len(snapshots) - 1)
    assert table.published_version == table.latest_version
    for version in range(first):
        assert await index.state_at(table.id, version) is None
        assert await index.commit(table.id, version) is None
    for version in range(first, len(snapshots)):
        await assert_version(index, table, version, snapshots[version])
    head = snapshots[-1]
    assert table.num_files == len(head.files)
    assert table.size_bytes == sum(add.size for add in head.files.values())
    for app_id in ("app", "nobody"):
        found = await index.app_transaction(table.id, app_id, known=ReplicatedHeads())
        expected = head.txns.get(app_id)
        assert (found and found.version) == (expected and expected.version)


async def assert_version(index, table, version: int, snapshot: Snapshot) -> None:
    found = {
        file_key(add): without_data_change(add)
        async for batch in index.files(table.id, version)
        for add in batch
    }
    assert found == {key: without_data_change(add) for key, add in snapshot.files.items()}
    state = await index.state_at(table.id, version)
    assert line(state.protocol) == line(snapshot.protocol)
    assert line(state.metadata)["metaData"]["configuration"] == snapshot.metadata.configuration


def without_data_change(add) -> dict[str, object]:
    """A file as its log line; a checkpoint need not keep whether adding it changed data."""
    body = dict(line(add)["add"])
    body.pop("dataChange")
    return {name: value for name, value in body.items() if value is not None}


def clean_up(log: DeltaLog, before: int) -> None:
    for version in range(before):
        log.path(version).unlink()


async def test_all_commits(world, log):
    await assert_holds(world, await register(world, log), 0)


KINDS = {
    "classic": lambda log, v, rows: log.checkpoint(v, rows),
    "multi-part": lambda log, v, rows: log.multi_part(v, rows, parts=3),
    "more parts than rows": lambda log, v, rows: log.multi_part(v, rows, parts=20),
    "v2 json": lambda log, v, rows: log.v2(v, rows, form="json", sidecars=2),
    "v2 parquet": lambda log, v, rows: log.v2(v, rows, form="parquet", sidecars=2),
    "v2 json without sidecars": lambda log, v, rows: log.v2(v, rows, form="json", sidecars=0),
    "v2 parquet without sidecars": lambda log, v, rows: log.v2(v, rows, form="parquet", sidecars=0),
    "v2 with absolute sidecars": lambda log, v, rows: log.v2(
        v, rows, form="json", sidecars=1, absolute=True
    ),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_from_a_checkpoint(world, log, kind):
    KINDS[kind](log, 3, lines_of(SNAPSHOTS[3]))
    clean_up(log, 3)
    await assert_holds(world, await register(world, log), 3)


@pytest.mark.parametrize("kind", ["classic", "v2 json"])
async def test_from_a_checkpoint_whose_commit_is_gone(world, log, kind):
    KINDS[kind](log, 3, lines_of(SNAPSHOTS[3]))
    clean_up(log, 4)
    table = await register(world, log)
    await assert_holds(world, table, 3)
    base = await world.context.index.commit(table.id, 3)
    assert (base.operation, base.transaction_id, base.content_sha256) == (None, None, None)


async def test_only_a_checkpoint(world, log):
    log.checkpoint(HEAD, lines_of(SNAPSHOTS[HEAD]))
    clean_up(log, HEAD + 1)
    await assert_holds(world, await register(world, log), HEAD)


async def test_a_checkpoint_is_read_that_is_newer_than_every_commit(world, log):
    log.checkpoint(HEAD, lines_of(SNAPSHOTS[HEAD]))
    log.path(HEAD).unlink()
    log.path(HEAD - 1).unlink()
    await assert_holds(world, await register(world, log), HEAD)


async def test_the_oldest_of_several_checkpoints(world, log):
    for version in (1, 3, 4):
        log.checkpoint(version, lines_of(SNAPSHOTS[version]))
    clean_up(log, 3)
    await assert_holds(world, await register(world, log), 3)


async def test_the_past_before_a_hole_is_left_alone(world, log):
    log.checkpoint(3, lines_of(SNAPSHOTS[3]))
    log.path(2).unlink()
    await assert_holds(world, await register(world, log), 3)


@pytest.mark.parametrize(
    "hint",
    [None, "", "{", '{"version":77,"size":3}', '{"version":3,"size":1,"parts":9}', "\0\1"],
)
async def test_the_hint_at_the_last_checkpoint_is_not_believed(world, log, hint):
    log.checkpoint(3, lines_of(SNAPSHOTS[3]))
    clean_up(log, 3)
    if hint is not None:
        (log.folder / "_last_checkpoint").write_text(hint)
    await assert_holds(world, await register(world, log), 3)


async def test_what_else_lies_in_the_log_is_passed_over(world, log):
    log.multi_part(4, lines_of(SNAPSHOTS[4]), parts=3)[1].unlink()
    log.path(5, "checkpoint.parquet").touch()
    log.path(1, f"{4:020d}.compacted.json").write_text("garbage")
    log.path(9, "crc").write_text("garbage")
    for name in (".tmp", "00000000000000000007.json.tmp", "README", "8.json"):
        (log.folder / name).write_text("garbage")
    (log.folder / "_commits").mkdir()
    (log.folder / "_commits" / f"{6:020d}.json").write_text("garbage")
    await assert_holds(world, await register(world, log), 0)


async def test_metadata_that_came_later_than_version_0(world, tmp_path):
    """Nobody can read the table at version 0, so it starts where it can be read."""
    log = DeltaLog(tmp_path / "table")
    history = (
        (PROTOCOL, add("a"), add("b"), Txn(app_id="app", version=5)),
        (remove("a"), add("c")),
        (metadata(), add("d")),
        (add("e"),),
    )
    for version, actions in enumerate(history):
        log.commit(version, *actions)
    table = await register(world, log)
    await assert_holds(world, table, 2, tuple(folded(history)))
    base = await world.context.index.commit(table.id, 2)
    assert base.content_sha256 is not None
    assert base.metrics.num_added_files == 1


class TestTimestamps:
    async def test_they_are_those_of_the_files_made_monotone(self, world, tmp_path):
        log = DeltaLog(tmp_path / "table")
        log.first(at=5_000, info=CommitInfo(timestamp=77_000))
        for version, at in enumerate((9_000, 9_000, 4_000, 9_001, 20_000), start=1):
            log.commit(version, add(f"f{version}"), at=at, info=CommitInfo(timestamp=1))
        table = await register(world, log)
        found = await timestamps(world, table)
        assert found == [5_000, 9_000, 9_001, 9_002, 9_003, 20_000]
        index = world.context.index
        assert await index.version_at(table.id, 9_001) == 2
        assert await index.version_at(table.id, 4_999) is None

    async def test_of_the_checkpoint_where_the_commit_is_gone(self, world, log):
        path = log.checkpoint(3, lines_of(SNAPSHOTS[3]))
        os.utime(path, ns=(3_000_000_000, 3_000_000_000))
        clean_up(log, 4)
        table = await register(world, log)
        assert (await timestamps(world, table))[0] == 3_000

    async def test_in_commit_timestamps_are_exact(self, world, tmp_path):
        """The log was copied: its files are younger than the timestamps in its commits."""
        log = DeltaLog(tmp_path / "table")
        log.first(at=100_000)
        log.commit(1, add("a"), at=200_000)
        features = frozenset(["inCommitTimestamp"])
        protocol = Protocol(min_reader_version=1, min_writer_version=7, writer_features=features)
        switch = metadata(delta_enableInCommitTimestamps="true")
        log.commit(2, protocol, switch, at=300_000, info=CommitInfo(in_commit_timestamp=50_000))
        log.commit(3, add("b"), at=300_000, info=CommitInfo(in_commit_timestamp=60_000))
        table = await register(world, log)
        assert await timestamps(world, table) == [49_998, 49_999, 50_000, 60_000]
        assert table.latest_timestamp == 60_000

    async def test_in_commit_timestamps_that_are_switched_off_are_information(
        self, world, tmp_path
    ):
        log = DeltaLog(tmp_path / "table")
        log.first(at=100_000, info=CommitInfo(in_commit_timestamp=50_000))
        assert await timestamps(world, await register(world, log)) == [100_000]


async def timestamps(world, table) -> list[int]:
    commits = await world.context.index.history(
        table.id, from_version=None, to_version=None, limit=100
    )
    return [commit.timestamp for commit in reversed(commits)]


async def test_what_is_committed_meanwhile_is_there_too(world, log):
    """Somebody commits after the log was listed and before it is read to its head."""

    class Busy(ObjectStorage):
        def log(self, location: str, *, who: str | None = None):
            found = super().log(location, who=who)
            real = found.read

            async def read(version: int):
                if version == HEAD and not log.path(HEAD + 1).exists():
                    log.commit(HEAD + 1, add("late"))
                return await real(version)

            found.read = read
            return found

    warehouse = log.table.parent.as_uri()
    busy = make_world(world.context.index, Busy(warehouse=warehouse), warehouse)
    table = await register(busy, log)
    late = SNAPSHOTS[-1].apply(HEAD + 1, (add("late"),))
    await assert_holds(world, table, 0, (*SNAPSHOTS, late))


async def test_a_store_may_be_slower_than_the_database_is_patient(world, log, database_url):
    """The database ends transactions that are idle, and reading a log takes its time."""
    log.checkpoint(HEAD, lines_of(SNAPSHOTS[HEAD]))

    class Slow(ObjectStorage):
        def log(self, location: str, *, who: str | None = None):
            found = super().log(location, who=who)
            entries, read = found.entries, found.checkpoint_actions

            async def slowly(batches):
                async for batch in batches:
                    await asyncio.to_thread(wait)
                    yield batch

            found.entries = lambda **which: slowly(entries(**which))
            found.checkpoint_actions = lambda name: slowly(read(name))
            return found

    def wait() -> None:
        with psycopg.connect(database_url) as connection:
            connection.execute("SELECT pg_sleep(1.5)")

    warehouse = log.table.parent.as_uri()
    engine = create_engine(database_url, ConnectionSettings(idle_in_transaction_timeout_ms=1000))
    try:
        index = PostgresIndex(engine)
        await assert_holds(
            world, await register(make_world(index, Slow(warehouse=warehouse), warehouse), log), 0
        )
    finally:
        await engine.dispose()
