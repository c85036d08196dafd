"""Delta logs written by hand, as other engines might: commits, and checkpoints of every kind."""

import itertools
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.builders.by_x import PROTOCOL, metadata
from tests.repository import ROOT
from tidegate_protocol.log.actions import Action, CommitInfo
from tidegate_protocol.log.codec import encode
from tidegate_protocol.replay.snapshot import Snapshot

GOLDEN = ROOT.parent / "shared" / "golden"
ABSENT = f"the golden tables are not beside the checkout, at ../shared/{GOLDEN.name}"

_TEXTS = pa.map_(pa.string(), pa.string())
_ADD = [
    ("path", pa.string()),
    ("partitionValues", _TEXTS),
    ("size", pa.int64()),
    ("modificationTime", pa.int64()),
    ("dataChange", pa.bool_()),
    ("stats", pa.string()),
    ("tags", _TEXTS),
    (
        "deletionVector",
        pa.struct(
            [
                ("storageType", pa.string()),
                ("pathOrInlineDv", pa.string()),
                ("offset", pa.int32()),
                ("sizeInBytes", pa.int32()),
                ("cardinality", pa.int64()),
            ]
        ),
    ),
    ("baseRowId", pa.int64()),
    ("defaultRowCommitVersion", pa.int64()),
]
ADD = pa.struct(_ADD)
_COLUMNS: dict[str, pa.DataType] = {
    "add": ADD,
    "remove": pa.struct(
        [("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]
    ),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", _TEXTS),
            ("createdTime", pa.int64()),
        ]
    ),
    "protocol": pa.struct(
        [
            ("minReaderVersion", pa.int32()),
            ("minWriterVersion", pa.int32()),
            ("readerFeatures", pa.list_(pa.string())),
            ("writerFeatures", pa.list_(pa.string())),
        ]
    ),
    "txn": pa.struct(
        [("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]
    ),
    "domainMetadata": pa.struct(
        [("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())]
    ),
    "checkpointMetadata": pa.struct([("version", pa.int64())]),
    "sidecar": pa.struct(
        [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
    ),
}
CHECKPOINT = pa.schema(list(_COLUMNS.items()))

Line = dict[str, Any]


def line(action: Action) -> Line:
    """The action's log line, parsed."""
    parsed: Line = json.loads(encode(action))
    return parsed


def lines_of(snapshot: Snapshot) -> list[Line]:
    """What a checkpoint of the snapshot holds."""
    single = [action for action in (snapshot.protocol, snapshot.metadata) if action is not None]
    rest = (*snapshot.txns.values(), *snapshot.domains.values(), *snapshot.files.values())
    return [line(action) for action in (*single, *rest)]


def write_rows(path: Path, rows: Sequence[Line], **options: object) -> None:
    """Log lines as the rows of a Parquet checkpoint file."""
    kinds = {kind for row in rows for kind in row}
    schema = pa.schema([(kind, _COLUMNS[kind]) for kind in _COLUMNS if kind in kinds])
    pq.write_table(
        pa.Table.from_pylist([_row(row) for row in rows], schema=schema), path, **options
    )


class DeltaLog:
    """The log of one table at `table`, whose folders are made."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.folder = table / "_delta_log"
        self.folder.mkdir(parents=True)

    @property
    def location(self) -> str:
        return self.table.as_uri()

    def path(self, version: int, suffix: str = "json") -> Path:
        return self.folder / f"{version:020d}.{suffix}"

    def commit(
        self, version: int, *actions: Action, info: CommitInfo | None = None, at: int | None = None
    ) -> bytes:
        """Write `<version>.json`, modified `at` (ms) where that is given, and return it."""
        given = () if info is None else (info,)
        content = b"".join(encode(action) + b"\n" for action in (*given, *actions))
        self.path(version).write_bytes(content)
        if at is not None:
            os.utime(self.path(version), ns=(at * 1_000_000, at * 1_000_000))
        return content

    def first(self, *actions: Action, **options: Any) -> bytes:
        """Version 0, with a protocol and metadata."""
        return self.commit(0, PROTOCOL, metadata(), *actions, **options)

    def checkpoint(self, version: int, rows: Sequence[Line]) -> Path:
        path = self.path(version, "checkpoint.parquet")
        write_rows(path, rows)
        return path

    def multi_part(self, version: int, rows: Sequence[Line], *, parts: int) -> list[Path]:
        paths = []
        for part in range(parts):
            path = self.path(version, f"checkpoint.{part + 1:010d}.{parts:010d}.parquet")
            write_rows(
                path, rows[part::parts] or [{"remove": {"path": "gone", "dataChange": True}}]
            )
            paths.append(path)
        return paths

    def v2(
        self,
        version: int,
        rows: Sequence[Line],
        *,
        form: str,
        sidecars: int,
        absolute: bool = False,
    ) -> Path:
        """Files go into the sidecars, if there are any; the rest into the manifest."""
        files = [row for row in rows if "add" in row] if sidecars else []
        manifest = [row for row in rows if row not in files] if sidecars else list(rows)
        manifest.append({"checkpointMetadata": {"version": version}})
        folder = self.folder / "_sidecars"
        folder.mkdir(exist_ok=True)
        for number in range(sidecars):
            part = files[number::sidecars]
            if not part:
                continue
            path = folder / f"{uuid.uuid4()}.parquet"
            write_rows(path, part)
            manifest.append(
                {
                    "sidecar": {
                        "path": path.as_uri() if absolute else path.name,
                        "sizeInBytes": path.stat().st_size,
                        "modificationTime": 1,
                    }
                }
            )
        path = self.path(version, f"checkpoint.{uuid.uuid4()}.{form}")
        if form == "parquet":
            write_rows(path, manifest)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in manifest))
        return path


def folded(commits: Iterable[Sequence[Action]]) -> Iterator[Snapshot]:
    """The snapshot at each version."""
    snapshot = Snapshot()
    for version, actions in enumerate(commits):
        snapshot = snapshot.apply(version, actions)
        yield snapshot


def _row(row: Line) -> Line:
    return {kind: _maps(body, _COLUMNS[kind]) for kind, body in row.items()}


def _maps(value: Any, kind: pa.DataType) -> Any:
    """Parquet's maps are lists of pairs on their way in."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items())
    if pa.types.is_struct(kind):
        fields = {kind.field(index).name: kind.field(index).type for index in range(len(kind))}
        return {name: _maps(part, fields[name]) for name, part in value.items() if name in fields}
    return value


names = (f"main.reg.t{number}" for number in itertools.count())
