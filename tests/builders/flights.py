"""Flights by month: bodies for the HTTP API, of tables and of proposals to them."""

import json
from typing import Any

from tests.builders import lines
from tests.builders.lines import Line

TABLE = "main.air.flights"
SCHEMA = lines.struct("month", lines.column("carrier", "string"))


def table_body(name: str = TABLE, **fields: Any) -> dict[str, Any]:
    return {"name": name, "schema": SCHEMA, "partition_columns": ["month"], **fields}


def add(path: str = "month=5/a.parquet", month: str | None = "5", **fields: Any) -> Line:
    return lines.add(path, {"month": month}, **{"size": 10, "stats": '{"numRecords":3}', **fields})


def remove(path: str = "month=5/a.parquet", month: str | None = "5") -> Line:
    return lines.removal(path, {"month": month})


def proposal(*actions: Line, **fields: Any) -> dict[str, Any]:
    return {"operation": "WRITE", "actions": list(actions), **fields}


def ndjson(*actions: Line, **fields: Any) -> bytes:
    """The same as NDJSON, its actions laid out as httpx lays out JSON."""
    sent = [{"operation": "WRITE", **fields}, *actions]
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in sent)
