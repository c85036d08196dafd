"""Checkpoint files, written a page of rows at a time: Parquet, or JSON lines for the main file of a
V2 checkpoint. Blocking."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, BinaryIO, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate_protocol.checkpoint.columns import FileColumns
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.codec import encode
from tidegate_service.core.ports.checkpoints import FileRows
from tidegate_service.core.sharing.pools import Rests
from tidegate_service.storage.checkpoints.arrow_types import OF_V2, SMALL, TEXTS
from tidegate_service.storage.checkpoints.file_batches import FileBatches
from tidegate_service.storage.checkpoints.portions import of_objects, rows_at_once, width_of

GROUP_BYTES = 32 * 1024 * 1024
"""Of a row group as Arrow has it: it is in memory until it is written."""
ACTIONS_AT_ONCE = 1_000
_REPEATED = [
    f"{kind}.{name}.key_value.{part}"
    for kind in ("add", "remove")
    for name in ("partitionValues", "tags")
    for part in ("key", "value")
]
SIDECARS = "_sidecars/"

_LINE = msgspec.json.Decoder(dict[str, dict[str, Any]])


class Rows(Protocol):
    """Where rows are written."""

    def take(self, rows: FileRows) -> None: ...
    def take_actions(self, actions: Sequence[Action]) -> None: ...
    def end(self) -> None:
        """Write what is left; the file itself stays open."""
        ...

    def leave(self) -> None:
        """Write no more, whatever is missing."""
        ...


def rows_of(name: str, file: BinaryIO, columns: FileColumns) -> Rows:
    """What writes a file of this name (`_sidecars/<name>` for a sidecar)."""
    if name.endswith(".json"):
        return _JsonRows(file)
    return _ParquetRows(file, columns, is_sidecar=name.startswith(SIDECARS))


class _JsonRows:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def take(self, rows: FileRows) -> None:
        raise TypeError("files are in the sidecars of a checkpoint whose main file is JSON")

    def take_actions(self, actions: Sequence[Action]) -> None:
        self._file.writelines(encode(action) + b"\n" for action in actions)

    def end(self) -> None:
        """Each line is written as it comes."""

    def leave(self) -> None:
        """Nothing is held."""


class _ParquetRows:
    def __init__(self, file: BinaryIO, columns: FileColumns, *, is_sidecar: bool) -> None:
        self._batches = FileBatches(columns)
        files = {"add": self._batches.add_type, "remove": self._batches.remove_type}
        kinds = files if is_sidecar else {**SMALL, **files, **OF_V2}
        self._schema = pa.schema(list(kinds.items()))
        self._writer = pq.ParquetWriter(
            file,
            self._schema,
            compression="snappy",
            # Hardly two files share a path or statistics: looking for it takes half of the time.
            use_dictionary=_REPEATED,
            # Readers look for the bounds of typed statistics alone.
            write_statistics=columns.parsed,
        )
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0

    def take(self, rows: FileRows) -> None:
        if rows.num_adds:
            for adds in self._batches.adds(rows.adds, rows.num_adds):
                self._take("add", adds)
        if rows.tombstones:
            for removes in self._batches.removes(rows.tombstones):
                self._take("remove", removes)

    def take_actions(self, actions: Sequence[Action]) -> None:
        rests = Rests()
        rows = min(ACTIONS_AT_ONCE, rows_at_once(sum(map(width_of, self._schema.types))))
        for some in of_objects(map(encode, actions), len, rows):
            rests()
            bodies = [next(iter(_LINE.decode(line).items())) for line in some]
            for kind, run in groupby(bodies, key=lambda body: body[0]):
                column = self._schema.field(kind).type
                self._take(kind, pa.array([_as_arrow(body, column) for _, body in run], column))

    def end(self) -> None:
        self._write()
        self._writer.close()

    def leave(self) -> None:
        # It would otherwise write its end whenever it is collected, into a file that is closed.
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self._writer.is_open = False

    def _take(self, kind: str, column: pa.StructArray) -> None:
        columns = [
            column if field.name == kind else pa.nulls(len(column), field.type)
            for field in self._schema
        ]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._waiting.append(batch)
        # With its nulls: those of wide columns of another kind are most of it.
        self._bytes += batch.nbytes
        if self._bytes >= GROUP_BYTES:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            group = pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(group, row_group_size=len(group))
            self._waiting, self._bytes = [], 0


def _as_arrow(value: object, data_type: pa.DataType) -> object:
    """JSON's objects as Arrow takes maps; fields that the column has not are left out."""
    if not isinstance(value, Mapping):
        return value
    if data_type == TEXTS:
        return list(value.items())
    return {
        field.name: _as_arrow(value[field.name], field.type)
        for field in data_type
        if field.name in value
    }
