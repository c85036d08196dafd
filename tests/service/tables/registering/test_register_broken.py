"""Logs that cannot be read: each is refused, with its reason, and nothing is kept of it."""

import re
import shutil

import psycopg
import pytest

from tests.builders.by_x import PROTOCOL, add, metadata
from tests.service.tables.delta_logs import DeltaLog, folded, line, lines_of, names
from tidegate_protocol.log.actions import Metadata, Protocol
from tidegate_service.core.errors import Refused, ServiceError, StorageUnavailable
from tidegate_service.core.tables.register import RegisterTable, register_table

pytestmark = pytest.mark.anyio

HISTORY = ((PROTOCOL, metadata(), add("a")), (add("b"),), (add("c"),), (add("d"),))
SNAPSHOTS = tuple(folded(HISTORY))
ROWS = lines_of(SNAPSHOTS[2])


def healthy(log: DeltaLog) -> None:
    for version, actions in enumerate(HISTORY):
        log.commit(version, *actions)


def without_commits(log: DeltaLog, *versions: int) -> None:
    healthy(log)
    for version in versions:
        log.path(version).unlink()


def with_text(log: DeltaLog, text: str | bytes, version: int = 3) -> None:
    healthy(log)
    log.path(version).write_bytes(text if isinstance(text, bytes) else text.encode())


def cut(log: DeltaLog) -> DeltaLog:
    """Its past is gone up to version 2, which a checkpoint is to hold."""
    without_commits(log, 0, 1)
    return log


def rows_without(kind: str) -> list[dict]:
    return [row for row in ROWS if kind not in row]


def damaged(log: DeltaLog) -> None:
    path = cut(log).checkpoint(2, ROWS)
    path.write_bytes(path.read_bytes()[:-20])


def missing_sidecar(log: DeltaLog) -> None:
    cut(log).v2(2, ROWS, form="json", sidecars=2)
    next((log.folder / "_sidecars").iterdir()).unlink()


def sidecar_at(log: DeltaLog, path: str) -> None:
    sidecar = {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}}
    cut(log).v2(2, [*ROWS, sidecar], form="json", sidecars=0)


BROKEN = {
    "no log folder": (lambda log: shutil.rmtree(log.folder), "no commit and no complete"),
    "empty log folder": (lambda log: None, "no commit and no complete checkpoint"),
    "version 0 missing": (lambda log: without_commits(log, 0), "version 0 is missing"),
    "a gap": (lambda log: without_commits(log, 2), "version 2 is missing"),
    "a gap that a compacted file spans": (
        lambda log: (
            without_commits(log, 1),
            log.path(0, f"{2:020d}.compacted.json").write_text("{}"),
        ),
        "version 1 is missing",
    ),
    "no protocol": (
        lambda log: (healthy(log), log.commit(0, metadata(), add("a"))),
        "no version of it has a protocol action",
    ),
    "no metadata": (
        lambda log: (healthy(log), log.commit(0, PROTOCOL, add("a"))),
        "no version of it has a metaData action",
    ),
    "an empty commit": (lambda log: with_text(log, ""), r"0003\.json: the file is empty"),
    "garbage": (lambda log: with_text(log, "garbage"), r"0003\.json: line 1: not valid JSON"),
    "half a line": (lambda log: with_text(log, '{"add":{"path":"x"'), "line 1: not valid JSON"),
    "bytes that are no text": (lambda log: with_text(log, b"\xff\xfe\0"), "line 1: not valid JSON"),
    "a number out of range": (
        lambda log: with_text(log, '{"txn":{"appId":"a","version":99999999999999999999}}'),
        "line 1: in action 'txn'",
    ),
    "an add without a path": (lambda log: with_text(log, '{"add":{}}'), "missing required field"),
    "a schema that is none": (
        lambda log: (
            healthy(log),
            log.commit(
                3,
                Metadata(id="x", schema_string="int", partition_columns=(), configuration={}),
            ),
        ),
        "the log cannot be read: ",
    ),
    "a commit that is a folder": (
        lambda log: (without_commits(log, 3), log.path(3).mkdir()),
        None,
    ),
    "incomplete parts": (
        lambda log: cut(log).multi_part(2, ROWS, parts=3)[1].unlink(),
        "version 1 is missing",
    ),
    "an empty checkpoint": (
        lambda log: cut(log).path(2, "checkpoint.parquet").touch(),
        "version 1 is missing",
    ),
    "a damaged checkpoint": (damaged, "cannot be read as Parquet"),
    "a checkpoint without protocol": (
        lambda log: cut(log).checkpoint(2, rows_without("protocol")),
        "has 0 protocol actions; expected one",
    ),
    "a checkpoint without metadata": (
        lambda log: cut(log).checkpoint(2, rows_without("metaData")),
        "has 0 metaData actions; expected one",
    ),
    "a checkpoint with two": (
        lambda log: cut(log).checkpoint(2, [*ROWS, line(metadata())]),
        "has 2 metaData actions; expected one",
    ),
    "a checkpoint that names a file twice": (
        lambda log: cut(log).checkpoint(2, [*ROWS, line(add("a"))]),
        "named twice",
    ),
    "parts that name a file twice": (
        lambda log: cut(log).multi_part(2, [*ROWS, *ROWS[2:]], parts=5),
        "named twice",
    ),
    "a sidecar that is missing": (missing_sidecar, "is missing"),
    "a sidecar elsewhere": (
        lambda log: sidecar_at(log, "file:///etc/x.parquet"),
        "names the sidecar",
    ),
    "a sidecar above": (lambda log: sidecar_at(log, "../x.parquet"), "names the sidecar"),
    "a sidecar above, escaped": (
        lambda log: sidecar_at(log, "..%2Fx.parquet"),
        "names the sidecar",
    ),
    "a sidecar without a name": (lambda log: sidecar_at(log, ""), "names the sidecar"),
    "a checkpoint that contradicts the commits": (
        lambda log: (healthy(log), log.checkpoint(2, lines_of(SNAPSHOTS[1]))),
        "the checkpoint of version 2 has 2 files, and the commits up to it make 3",
    ),
    "a checkpoint beyond the commits that is damaged": (
        lambda log: (healthy(log), log.path(2, "checkpoint.parquet").write_bytes(b"PAR1")),
        "cannot be read as Parquet",
    ),
    "a checkpoint in JSON that is cut short": (
        lambda log: cut(log).v2(2, ROWS, form="json", sidecars=0).write_text('{"add":'),
        "line 1: not valid JSON",
    ),
}


@pytest.fixture
def log(tmp_path):
    return DeltaLog(tmp_path / "table")


async def refusal(world, log: DeltaLog) -> ServiceError:
    with pytest.raises(ServiceError) as refused:
        await register_table(world.context, RegisterTable(name=next(names), location=log.location))
    return refused.value


def rows_left(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' "
            "AND tablename NOT IN ('alembic_version')"
        ).fetchall()
        return {
            table: connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
            for (table,) in tables
        }


@pytest.mark.parametrize("kind", BROKEN)
async def test_it_is_refused_and_leaves_nothing(world, log, database_url, kind):
    breaking, reason = BROKEN[kind]
    breaking(log)
    error = await refusal(world, log)
    if reason is None:
        # What is in the way is no file of a log: the store cannot say what it is.
        assert isinstance(error, StorageUnavailable)
    else:
        assert (type(error), error.code) == (Refused, "broken-log")
        assert re.search(reason, error.detail), error.detail
    left = rows_left(database_url)
    assert len(left) > 5
    assert set(left.values()) == {0}


async def test_the_healthy_log_is_not_refused(world, log):
    """What the cases above change is all that is wrong with them."""
    healthy(log)
    log.checkpoint(2, ROWS)
    table, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=log.location)
    )
    assert table.num_files == 4


async def test_it_registers_once_it_is_repaired(world, log):
    without_commits(log, 2)
    await refusal(world, log)
    log.commit(2, *HISTORY[2])
    table, created = await register_table(
        world.context, RegisterTable(name=next(names), location=log.location)
    )
    assert (table.latest_version, created) == (3, True)


MANAGED = frozenset(["catalogManaged", "inCommitTimestamp", "vacuumProtocolCheck"])
READERS = frozenset(["catalogManaged", "vacuumProtocolCheck"])


class TestUnsupported:
    @pytest.mark.parametrize(
        ("protocol", "names_it"),
        [
            (Protocol(min_reader_version=4, min_writer_version=7), "reader version 4"),
            (
                Protocol(
                    min_reader_version=1,
                    min_writer_version=7,
                    writer_features=frozenset(["fromTheFuture"]),
                ),
                "fromTheFuture",
            ),
            (
                Protocol(
                    min_reader_version=3,
                    min_writer_version=7,
                    reader_features=READERS,
                    writer_features=MANAGED,
                ),
                "a catalog ratifies the table's commits",
            ),
        ],
    )
    @pytest.mark.parametrize("checkpoint", [False, True])
    async def test_a_protocol(self, world, log, database_url, *, protocol, names_it, checkpoint):
        log.commit(0, protocol, metadata(), add("a"))
        if checkpoint:
            (snapshot,) = folded([(protocol, metadata(), add("a"))])
            log.checkpoint(0, lines_of(snapshot))
            log.path(0).unlink()
        error = await refusal(world, log)
        assert error.code == "unsupported-feature"
        assert names_it in error.detail
        assert set(rows_left(database_url).values()) == {0}
