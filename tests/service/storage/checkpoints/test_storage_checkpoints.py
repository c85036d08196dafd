"""Checkpoint files as actions."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders.by_x import add, metadata
from tests.builders.lines import vector
from tests.service.tables.delta_logs import ADD, DeltaLog, line, lines_of, write_rows
from tidegate_protocol.log.actions import (
    Add,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    UnknownAction,
)
from tidegate_protocol.log.codec import decode, encode
from tidegate_protocol.replay.snapshot import Snapshot
from tidegate_service.core.ports.store.storage import Log, UnreadableFile
from tidegate_service.storage import ObjectStorage
from tidegate_service.storage.limits import CheckpointLimits, StorageLimits

pytestmark = pytest.mark.anyio

EVERYTHING = (
    Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset(["deletionVectors"]),
        writer_features=frozenset(["deletionVectors"]),
    ),
    metadata(delta_appendOnly="false"),
    Txn(app_id="app", version=7, last_updated=3),
    Txn(app_id="other", version=1),
    DomainMetadata(domain="d", configuration="{}", removed=False),
    add("a%20b", dataChange=False),
    add("c", None, dataChange=False, stats=None, tags={"k": None, "l": "m"}),
    add("c", dataChange=False, deletionVector=vector("ab^-aqEH.-t@S}K{vb[*k^")),
    add("e", dataChange=False, baseRowId=5, defaultRowCommitVersion=2),
)


@pytest.fixture
def log(tmp_path):
    return DeltaLog(tmp_path / "t")


def stored(log: DeltaLog, **limits: int) -> Log:
    most = StorageLimits(checkpoints=CheckpointLimits(**limits))
    return ObjectStorage(log.table.parent.as_uri(), limits=most).log(log.location)


async def read(log: DeltaLog, name: str, **limits: int) -> list:
    batches = stored(log, **limits).checkpoint_actions(name)
    return [action async for batch in batches for action in batch]


def comparable(actions) -> list:
    return sorted(json.dumps(line(action), sort_keys=True) for action in actions)


class TestParquet:
    async def test_every_kind_of_action_comes_back_as_it_was(self, log):
        path = log.checkpoint(3, [line(action) for action in EVERYTHING])
        found = await read(log, path.name)
        assert comparable(found) == comparable(EVERYTHING)
        # What the fields say and what the raw line says are one.
        assert [msgspec.structs.asdict(decode(encode(action))) for action in found] == [
            msgspec.structs.asdict(action) for action in found
        ]

    async def test_a_part_may_hold_nothing_but_tombstones(self, log):
        path = log.checkpoint(0, [{"remove": {"path": "x", "dataChange": True}}])
        (found,) = await read(log, path.name)
        assert isinstance(found, Remove)
        assert (found.path, found.data_change, found.deletion_timestamp) == ("x", True, None)

    async def test_sidecars_stay_to_be_read(self, log):
        path = log.v2(0, [line(add("a")), line(EVERYTHING[0])], form="parquet", sidecars=1)
        found = await read(log, path.name)
        (sidecar,) = (action for action in found if isinstance(action, UnknownAction))
        name = json.loads(sidecar.raw)["sidecar"]["path"]
        assert comparable(await read(log, f"_sidecars/{name}")) == comparable([add("a")])

    async def test_columns_that_nobody_knows_come_along(self, log):
        kind = pa.struct([*ADD, ("clusteringProvider", pa.string()), ("news", pa.list_(pa.int8()))])
        row = {**line(add("a"))["add"], "partitionValues": [("x", "1")], "tags": None}
        row |= {"clusteringProvider": "liquid", "news": [1, None]}
        table = pa.table({"add": pa.array([row], type=kind)})
        pq.write_table(table, log.path(0, "checkpoint.parquet"))
        (found,) = await read(log, log.path(0, "checkpoint.parquet").name)
        assert isinstance(found, Add)
        assert found.clustering_provider == "liquid"
        assert json.loads(found.raw)["add"]["news"] == [1, None]

    async def test_empty_lists_of_features_are_none_below_versions_3_and_7(self, log):
        old = {"minReaderVersion": 1, "minWriterVersion": 2}
        new = {"minReaderVersion": 3, "minWriterVersion": 7}
        empty = {"readerFeatures": [], "writerFeatures": []}
        path = log.checkpoint(0, [{"protocol": {**old, **empty}}, {"protocol": {**new, **empty}}])
        first, second = await read(log, path.name)
        assert (first.reader_features, first.writer_features) == (None, None)
        assert (second.reader_features, second.writer_features) == (frozenset(), frozenset())

    async def test_in_batches_over_row_groups(self, log):
        path = log.path(0, "checkpoint.parquet")
        write_rows(path, [line(add(f"f{number}")) for number in range(50)], row_group_size=20)
        batches = [batch async for batch in stored(log, rows=7).checkpoint_actions(path.name)]
        assert max(map(len, batches)) <= 7
        assert [action.path for batch in batches for action in batch] == [
            f"f{number}" for number in range(50)
        ]


INSTANT = pa.timestamp("us", tz="UTC")
STATS = pa.struct(
    [
        ("numRecords", pa.int64()),
        ("tightBounds", pa.bool_()),
        *(
            (
                part,
                pa.struct(
                    [
                        ("i", pa.int32()),
                        ("f", pa.float64()),
                        ("d", pa.date32()),
                        ("t", INSTANT),
                        ("n", pa.timestamp("us")),
                        ("m", pa.decimal128(38, 18)),
                        ("b", pa.binary()),
                        ("s", pa.struct([("x", pa.string())])),
                    ]
                ),
            )
            for part in ("minValues", "maxValues")
        ),
        ("nullCount", pa.struct([("i", pa.int64())])),
    ]
)


def with_parsed_stats(log: DeltaLog, rows: list[dict], *, text: bool) -> str:
    fields = [field for field in ADD if text or field.name != "stats"]
    kind = pa.struct([*fields, ("stats_parsed", STATS)])
    plain = line(add("a", stats=None))["add"] | {"partitionValues": [("x", "1")]}
    table = pa.table({"add": pa.array([{**plain, **row} for row in rows], type=kind)})
    path = log.path(0, "checkpoint.parquet")
    pq.write_table(table, path)
    return path.name


class TestParsedStatistics:
    async def test_instants_in_the_form_that_spark_has_by_default(self, log):
        """INT96, also of years that do not fit into nanoseconds."""
        kind = pa.struct(
            [
                *(field for field in ADD if field.name != "stats"),
                ("stats_parsed", pa.struct([("maxValues", pa.struct([("t", INSTANT)]))])),
            ]
        )
        plain = line(add("a", stats=None))["add"] | {"partitionValues": [("x", "1")]}
        instants = [datetime(year, 2, 3, 4, 5, 6, 7999, UTC) for year in (1, 2024, 9999)]
        rows = [{**plain, "stats_parsed": {"maxValues": {"t": at}}} for at in instants]
        path = log.path(0, "checkpoint.parquet")
        pq.write_table(
            pa.table({"add": pa.array(rows, type=kind)}), path, use_deprecated_int96_timestamps=True
        )
        assert "INT96" in {
            pq.ParquetFile(path).schema.column(n).physical_type
            for n in range(len(pq.ParquetFile(path).schema))
        }
        found = [json.loads(one.stats)["maxValues"]["t"] for one in await read(log, path.name)]
        assert found == [f"{year:04d}-02-03T04:05:06.007Z" for year in (1, 2024, 9999)]

    async def test_they_become_the_text_that_delta_writes(self, log):
        bounds = {
            "i": 7,
            "f": 1.5,
            "d": date(2024, 2, 29),
            "t": datetime(2024, 1, 2, 3, 4, 5, 678999, UTC),
            "n": datetime(1969, 12, 31, 23, 59, 59, 999999),
            "m": Decimal("12345678901234567890.000000000000000001"),
            "b": b"\0",
            "s": {"x": "text"},
        }
        stats = {
            "numRecords": 3,
            "tightBounds": False,
            "minValues": bounds,
            "maxValues": {**bounds, "f": float("nan"), "i": None},
            "nullCount": {"i": 1},
        }
        name = with_parsed_stats(log, [{"stats_parsed": stats}], text=False)
        (found,) = await read(log, name)
        shown = {
            "i": 7,
            "f": 1.5,
            "d": "2024-02-29",
            "t": "2024-01-02T03:04:05.678Z",
            "n": "1969-12-31T23:59:59.999",
            "m": Decimal("12345678901234567890.000000000000000001"),
            "s": {"x": "text"},
        }
        above = {name: value for name, value in shown.items() if name not in ("f", "i")}
        assert json.loads(found.stats, parse_float=_exact) == {
            "numRecords": 3,
            "tightBounds": False,
            "minValues": shown,
            "maxValues": above,
            "nullCount": {"i": 1},
        }

    async def test_the_text_goes_before_them_and_either_may_be_missing(self, log):
        name = with_parsed_stats(
            log,
            [
                {"path": "text", "stats": '{"numRecords":1}', "stats_parsed": {"numRecords": 2}},
                {"path": "parsed", "stats_parsed": {"numRecords": 2}},
                {"path": "none"},
            ],
            text=True,
        )
        assert {found.path: found.stats for found in await read(log, name)} == {
            "text": '{"numRecords":1}',
            "parsed": '{"numRecords":2}',
            "none": None,
        }


def _exact(text: str) -> object:
    return float(text) if len(text) < 10 else Decimal(text)


class TestJson:
    async def test_lines_are_actions(self, log):
        path = log.v2(0, [line(action) for action in EVERYTHING], form="json", sidecars=0)
        found = await read(log, path.name)
        known = [action for action in found if not isinstance(action, UnknownAction)]
        assert comparable(known) == comparable(EVERYTHING)

    @pytest.mark.parametrize("text", ["{", '{"add":{"path":1}}\n', "[]"])
    async def test_anything_else_is_unreadable(self, log, text):
        path = log.v2(0, [], form="json", sidecars=0)
        path.write_text(text)
        with pytest.raises(UnreadableFile, match=r"line 1: "):
            await read(log, path.name)

    async def test_a_line_without_an_end_is_not_read_into_memory(self, log):
        path = log.v2(0, [], form="json", sidecars=0)
        path.write_text("x" * 1000)
        with pytest.raises(UnreadableFile, match="line 1 is over 100 bytes"):
            await read(log, path.name, line_bytes=100)


class TestUnreadable:
    async def test_missing(self, log):
        with pytest.raises(UnreadableFile, match="is missing"):
            await read(log, "00000000000000000003.checkpoint.parquet")

    @pytest.mark.parametrize("content", [b"", b"PAR1", b"not parquet at all, but long enough"])
    async def test_garbage(self, log, content):
        path = log.path(0, "checkpoint.parquet")
        path.write_bytes(content)
        with pytest.raises(UnreadableFile, match="cannot be read as Parquet"):
            await read(log, path.name)

    async def test_a_file_that_was_damaged_inside(self, log):
        path = log.checkpoint(0, [line(add(f"f{number}")) for number in range(2000)])
        content = bytearray(path.read_bytes())
        content[100:3000] = bytes(2900)
        path.write_bytes(content)
        with pytest.raises(UnreadableFile, match="cannot be read as Parquet"):
            await read(log, path.name)

    async def test_other_columns(self, log):
        path = log.path(0, "checkpoint.parquet")
        pq.write_table(pa.table({"x": [1]}), path)
        with pytest.raises(UnreadableFile, match="none of the columns"):
            await read(log, path.name)

    async def test_a_column_that_is_no_struct(self, log):
        path = log.path(0, "checkpoint.parquet")
        pq.write_table(pa.table({"add": [1]}), path)
        with pytest.raises(UnreadableFile, match="the column add is 'int64'; expected a struct"):
            await read(log, path.name)

    @pytest.mark.parametrize(
        "value", [pa.array([2**62]).cast(pa.timestamp("us")), pa.array([b"\xff"]).view("string")]
    )
    async def test_a_value_that_python_has_not(self, log, value):
        path = log.path(0, "checkpoint.parquet")
        table = pa.table({"txn": pa.StructArray.from_arrays([value], ["appId"])})
        pq.write_table(table, path)
        with pytest.raises(UnreadableFile, match="cannot be read as Parquet"):
            await read(log, path.name)

    async def test_a_row_without_what_it_needs(self, log):
        row = line(add("a"))
        del row["add"]["size"]
        path = log.checkpoint(0, [row])
        with pytest.raises(UnreadableFile, match="missing required field `size`"):
            await read(log, path.name)


async def test_a_whole_snapshot(log):
    snapshot = Snapshot().apply(0, EVERYTHING)
    path = log.checkpoint(0, lines_of(snapshot))
    found = Snapshot().apply(0, await read(log, path.name))
    assert found.files.keys() == snapshot.files.keys()
    assert found.txns.keys() == snapshot.txns.keys()
    assert isinstance(found.metadata, Metadata)
