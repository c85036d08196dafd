"""What tests see of a table past the client: its log by deltalake, its folder, its history."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from tidegate import Table
from tidegate.models import TableHead


def independent(table: Table, version: int | None = None) -> list[dict[str, Any]]:
    """The rows that deltalake finds by the log alone."""
    return DeltaTable(table.location, version=version).to_pyarrow_table().to_pylist()


def folder_of(table: Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def data_files(table: Table) -> set[str]:
    """Every data file in the table's folder, in the log or not: paths relative to it."""
    folder = folder_of(table)
    found = (path.relative_to(folder) for path in folder.rglob("*.parquet"))
    return {path.as_posix() for path in found if path.parts[0] != "_delta_log"}


def actions(table: Table, version: int, kind: str) -> list[dict[str, Any]]:
    """The actions of a kind in one commit, as the log has them."""
    lines = map(json.loads, table.commit_bytes(version).splitlines())
    return [line[kind] for line in lines if kind in line]


def rows(df: Any) -> list[tuple[Any, ...]]:
    """The rows as tuples in their order, nulls last."""
    found = [tuple(row) for row in df.collect()]
    return sorted(found, key=lambda row: [(value is None, value) for value in row])


def overtake(table: Table, rival: Callable[[], object]) -> None:
    """Let a rival commit whenever this handle has been asked for its head, as at the beginning of
    a transaction, and before it goes on."""
    ask = table.head

    def head() -> TableHead:
        found = ask()
        rival()
        return found

    table.head = head
