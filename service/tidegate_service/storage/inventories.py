"""Inventories: Parquet files that say what lies in a store (Delta: USING INVENTORY)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate_service.core.errors import StorageUnavailable

COLUMNS = ["path", "length", "isDir", "modificationTime"]
ROWS_AT_ONCE = 10_000


def inventory_rows(file: Path) -> Iterator[Sequence[dict[str, Any]]]:
    """The rows, in batches. Raises `StorageUnavailable` for what is no such file."""
    try:
        with pq.ParquetFile(file) as opened:
            missing = [name for name in COLUMNS if name not in opened.schema_arrow.names]
            if missing:
                raise StorageUnavailable(
                    f"the inventory {file} cannot be read: it has no column {missing[0]}"
                )
            for batch in opened.iter_batches(ROWS_AT_ONCE, columns=COLUMNS):
                yield batch.to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StorageUnavailable(f"the inventory {file} cannot be read: {error}") from error
