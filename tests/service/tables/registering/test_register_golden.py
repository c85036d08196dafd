"""Tables that other engines wrote (../shared/golden): each registers, or fails for its reason."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.exceptions import DeltaProtocolError

from tests.service.commit.committing import scanned
from tests.service.tables.delta_logs import ABSENT, GOLDEN, names
from tidegate_protocol.features.known import SUPPORTED_WRITER_FEATURES
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.paths import decode
from tidegate_protocol.schema.table_schema import parse_schema, to_json
from tidegate_service.core.errors import Refused
from tidegate_service.core.instance.replicated_heads import ReplicatedHeads
from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.tables.register import RegisterTable, register_table
from tidegate_service.core.tables.scan import ScanRequest, scan

pytestmark = pytest.mark.anyio

TABLES = sorted(
    str(log.parent.relative_to(GOLDEN)) for log in GOLDEN.rglob("_delta_log") if log.is_dir()
)
EMPTY = "there is no commit and no complete checkpoint in it"
BROKEN = {
    "data-reader-absolute-paths-escaped-chars": (
        "broken-log",
        "no version of it has a metaData action",
    ),
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata": (
        "broken-log",
        "the checkpoint of version 10 has 0 metaData actions",
    ),
    "deltalog-state-reconstruction-from-checkpoint-missing-protocol": (
        "broken-log",
        "the checkpoint of version 10 has 0 protocol actions",
    ),
    "log-store-listFrom": ("broken-log", EMPTY),
    "log-store-read": ("broken-log", EMPTY),
    "no-delta-log-folder": ("broken-log", EMPTY),
}
# delta-rs refuses their metadata, which has no schemaString; Delta reads them.
ONLY_BY_DELTA = {
    "canonicalized-paths-normal-a": (1, 0),
    "canonicalized-paths-special-a": (1, 0),
    "canonicalized-paths-special-b": (1, 0),
    "update-deleted-directory": (0, 10),
}
READ = sorted(set(TABLES) - set(BROKEN) - set(ONLY_BY_DELTA))
needs_golden = pytest.mark.skipif(not TABLES, reason=ABSENT)


async def registered(world, tmp_path: Path, golden: str) -> TableRecord:
    folder = tmp_path / "lake" / golden
    shutil.copytree(GOLDEN / golden, folder)
    location = f"file://{folder}"
    table, _ = await register_table(
        world.context, RegisterTable(name=next(names), location=location)
    )
    return table


async def register(world, tmp_path: Path, golden: str):
    table = await registered(world, tmp_path, golden)
    return table, deltalake.DeltaTable(tmp_path / "lake" / golden)


def uses_unsupported(golden: str) -> set[str]:
    """Features that the golden table's protocol lists and that are not supported here."""
    listed: set[str] = set()
    for commit in sorted((GOLDEN / golden / "_delta_log").glob("*.json")):
        for line in commit.read_text().splitlines():
            listed.update(json.loads(line).get("protocol", {}).get("writerFeatures") or [])
    return listed - SUPPORTED_WRITER_FEATURES


def rows_of(path: Path, add: Add) -> int:
    hidden = add.deletion_vector.cardinality if add.deletion_vector else 0
    rows: int = pq.ParquetFile(path).metadata.num_rows - hidden
    if add.stats is not None and "numRecords" in json.loads(add.stats):
        assert json.loads(add.stats)["numRecords"] == rows + hidden
    return rows


def rows_by_deltalake(table: deltalake.DeltaTable) -> int:
    try:
        return table.to_pyarrow_dataset().count_rows()
    except (DeltaProtocolError, pa.ArrowInvalid):
        # What Arrow itself cannot read of these tables has its counts in the log.
        return table.count()


@needs_golden
@pytest.mark.parametrize("golden", READ)
async def test_it_is_the_table_that_deltalake_reads(world, tmp_path, golden):
    unsupported = uses_unsupported(golden)
    if unsupported:
        with pytest.raises(Refused) as refused:
            await register(world, tmp_path, golden)
        assert refused.value.code == "unsupported-feature"
        assert any(feature in refused.value.detail for feature in unsupported)
        return

    table, theirs = await register(world, tmp_path, golden)

    assert table.latest_version == theirs.version()
    read = await scan(world.context, table.name, ScanRequest())
    files = await scanned(read)
    actions = theirs.get_add_actions()
    paths = actions.column("path").to_pylist()
    assert sorted(decode(add.path) for add in files) == sorted(decode(path) for path in paths)
    assert table.num_files == len(paths)
    assert table.size_bytes == sum(actions.column("size_bytes").to_pylist())
    assert read.metadata.configuration == theirs.metadata().configuration
    assert list(read.metadata.partition_columns) == theirs.metadata().partition_columns
    assert read.metadata.id == theirs.metadata().id
    schema = json.loads(to_json(parse_schema(read.metadata.schema_string)))
    assert schema == json.loads(theirs.schema().to_json())
    data = [tmp_path / "lake" / golden / decode(add.path) for add in files]
    if all(path.is_file() for path in data):
        ours = sum(rows_of(path, add) for path, add in zip(data, files, strict=True))
        assert ours == rows_by_deltalake(theirs)


@needs_golden
@pytest.mark.parametrize("golden", sorted(BROKEN))
async def test_a_broken_one_is_refused_and_leaves_nothing(world, tmp_path, golden):
    code, reason = BROKEN[golden]
    with pytest.raises(Refused, match=reason) as refused:
        await register(world, tmp_path, golden)
    assert refused.value.code == code
    assert (
        await world.context.index.tables(prefix="", after=None, limit=1, known=ReplicatedHeads())
        == []
    )


@needs_golden
@pytest.mark.parametrize("golden", sorted(ONLY_BY_DELTA))
async def test_one_that_only_delta_reads(world, tmp_path, golden):
    table = await registered(world, tmp_path, golden)
    assert (table.latest_version, table.num_files) == ONLY_BY_DELTA[golden]
    assert parse_schema(table.metadata.schema_string).fields == ()


@needs_golden
@pytest.mark.parametrize(
    "golden", sorted(name for name in ONLY_BY_DELTA if name.startswith("canonical"))
)
async def test_absolute_paths_are_one_file_in_every_spelling(world, tmp_path, golden):
    """What was added as /x was removed as file:/x, so the table is empty. The version before
    names a file outside it, which a reader must not be led to."""
    table = await registered(world, tmp_path, golden)
    with pytest.raises(Refused, match=r"outside the table, the warehouse .*allowed_locations"):
        await files_at(world, table, 0)
    policy = replace(world.context.locations, prefixes=("file:///some/unqualified",))
    allowing = replace(world, context=replace(world.context, locations=policy))
    assert len(await files_at(allowing, table, 0)) == 1


async def files_at(world, table, version):
    found = await scan(world.context, table.id, ScanRequest(version=version))
    return await scanned(found)
