"""Bodies and raw requests that tests send."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "month", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "carrier", "type": "string", "nullable": True, "metadata": {}},
    ],
}
TABLE = "main.air.flights"
JSON_TYPE = {"Content-Type": "application/json"}
NDJSON_TYPE = {"Content-Type": "application/x-ndjson"}


def table_body(name: str = TABLE, **fields: Any) -> dict[str, Any]:
    return {"name": name, "schema": SCHEMA, "partition_columns": ["month"], **fields}


def add(path: str = "month=5/a.parquet", month: str | None = "5", **fields: Any) -> dict[str, Any]:
    body = {
        "path": path,
        "partitionValues": {"month": month},
        "size": 10,
        "modificationTime": 1,
        "dataChange": True,
        "stats": '{"numRecords":3}',
    }
    return {"add": {**body, **fields}}


def remove(path: str = "month=5/a.parquet", month: str | None = "5") -> dict[str, Any]:
    body = {
        "path": path,
        "deletionTimestamp": 2,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {"month": month},
        "size": 10,
    }
    return {"remove": body}


def proposal(*actions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"operation": "WRITE", "actions": list(actions), **fields}


def ndjson(*actions: dict[str, Any], **fields: Any) -> bytes:
    """The same as NDJSON, its actions laid out as httpx lays out JSON."""
    lines = [{"operation": "WRITE", **fields}, *actions]
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def exchange(url: str, sent: bytes, *, timeout_s: float = 20.0) -> bytes:
    """What the server sends back on a connection of its own until it closes it."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=timeout_s) as connection:
        connection.sendall(sent)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received
