"""Writers that commit as stock engines do: they stage a file and ask for its version.

That is done by Unity Catalog's API. A writer that lost its version loads the table and stages its
commit anew, at once, under the same txnId. It keeps one connection, as those clients do.
"""

import asyncio
import json
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.rig.service import Service

_UNITY = "/api/2.1/unity-catalog/delta/v1/catalogs/main/schemas/bench"
_PROPERTIES = {"delta.enableInCommitTimestamps": "true"}
_STATISTICS = json.dumps({"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 1}})


@dataclass(frozen=True, slots=True, kw_only=True)
class StockTable:
    """One that was made by this API. `path` is of its resource."""

    path: str
    table_id: str
    log: Path


@dataclass(slots=True, kw_only=True)
class StockLoad:
    """What writers were told, and for how long, to the last commit. Any other answer has ended the
    load."""

    commits: int = 0
    conflicts: int = 0
    seconds: float = 0.0
    last_s: float = 0.0

    @property
    def commits_per_second(self) -> float:
        return self.commits / self.seconds


def stock_table(service: Service) -> StockTable:
    """A new table on a local disk."""
    name = f"t{uuid.uuid4().hex}"
    place = _answer(service.http.post(f"{service.url}{_UNITY}/staging-tables", json={"name": name}))
    log = Path(place["location"].removeprefix("file://")) / "_delta_log"
    (log / "_staged_commits").mkdir(parents=True)
    now = time.time_ns() // 1_000_000
    required = place["required-protocol"]
    protocol = {
        "minReaderVersion": required["min-reader-version"],
        "minWriterVersion": required["min-writer-version"],
        "readerFeatures": required["reader-features"],
        "writerFeatures": required["writer-features"],
    }
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    columns = {"type": "struct", "fields": [field]}
    properties = {**_PROPERTIES, "io.unitycatalog.tableId": place["table-id"]}
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(columns),
        "partitionColumns": [],
        "configuration": properties,
        "createdTime": now,
    }
    lines = [_commit_info(now, str(uuid.uuid4())), {"protocol": protocol}, {"metaData": metadata}]
    (log / f"{0:020d}.json").write_bytes(_content(lines))
    body = {
        "name": name,
        "location": place["location"],
        "table-type": "MANAGED",
        "columns": columns,
        "partition-columns": [],
        "protocol": required,
        "properties": properties,
        "last-commit-timestamp-ms": now,
    }
    _answer(service.http.post(f"{service.url}{_UNITY}/tables", json=body))
    return StockTable(path=f"{_UNITY}/tables/{name}", table_id=place["table-id"], log=log)


def stock_appends(
    service: Service, table: StockTable, *, writers: int, seconds: float
) -> StockLoad:
    """Have writers commit one file each, again and again, for so long."""
    return asyncio.run(_appends(service, table, writers, seconds))


async def _appends(service: Service, table: StockTable, writers: int, seconds: float) -> StockLoad:
    load = StockLoad()
    begun = time.perf_counter()
    jobs = [_write(service, table, load, begun + seconds) for _ in range(writers)]
    await asyncio.gather(*jobs)
    load.seconds = load.last_s - begun
    return load


async def _write(service: Service, table: StockTable, load: StockLoad, until_s: float) -> None:
    connection = await _Connection.open(service)
    head = await connection.head(table.path)
    transaction_id = str(uuid.uuid4())
    while time.perf_counter() < until_s:
        version, at = head[0] + 1, max(time.time_ns() // 1_000_000, head[1] + 1)
        content = _content([_commit_info(at, transaction_id), _add()])
        name = f"{version:020d}.{uuid.uuid4()}.json"
        (table.log / "_staged_commits" / name).write_bytes(content)
        said = {
            "version": version,
            "timestamp": at,
            "file-name": name,
            "file-size": len(content),
            "file-modification-timestamp": at,
        }
        body = {
            "requirements": [{"type": "assert-table-uuid", "uuid": table.table_id}],
            "updates": [{"action": "add-commit", "commit": said}],
        }
        status, answer = await connection.ask("POST", table.path, json.dumps(body).encode())
        if status == 200:
            load.commits += 1
            load.last_s = time.perf_counter()
            head, transaction_id = (version, at), str(uuid.uuid4())
        elif status == 409:
            load.conflicts += 1
            head = await connection.head(table.path)
        else:
            raise RuntimeError(f"expected 200 or 409, found {status}: {answer[:500]!r}")
    connection.close()


class _Connection:
    """HTTP/1.1, as far as the service's answers need it: each says its length."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @staticmethod
    async def open(service: Service) -> "_Connection":
        return _Connection(*await asyncio.open_connection(*service.address))

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {_HOST}\r\nAuthorization: Bearer some-token\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2])
            for line in answer.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        return int(answer[9:12]), await self._reader.readexactly(length)

    async def head(self, path: str) -> tuple[int, int]:
        """The table's latest version and its time."""
        status, body = await self.ask("GET", path)
        if status != 200:
            raise RuntimeError(f"expected 200, found {status}: {body[:500]!r}")
        found = json.loads(body)
        return found["latest-table-version"], found["metadata"]["last-commit-timestamp-ms"]

    def close(self) -> None:
        self._writer.close()


_HOST = "127.0.0.1"


def _commit_info(at: int, transaction_id: str) -> dict[str, Any]:
    return {
        "commitInfo": {
            "timestamp": at,
            "inCommitTimestamp": at,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append"},
            "isBlindAppend": True,
            "engineInfo": "a stock engine",
            "txnId": transaction_id,
        }
    }


def _add() -> dict[str, Any]:
    return {
        "add": {
            "path": f"{uuid.uuid4()}.parquet",
            "partitionValues": {},
            "size": 1000,
            "modificationTime": 0,
            "dataChange": True,
            "stats": _STATISTICS,
        }
    }


def _content(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _answer(answer: httpx.Response) -> dict[str, Any]:
    if answer.status_code != 200:
        raise RuntimeError(f"expected 200, found {answer.status_code}: {answer.text[:500]}")
    found = answer.json()
    assert isinstance(found, dict)
    return found
