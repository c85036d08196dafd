"""What a stock client does, call by call: it writes commits itself and asks for their versions."""

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

UNITY = "/api/2.1/unity-catalog"
COLUMNS = {
    "type": "struct",
    "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "x", "type": "integer", "nullable": True, "metadata": {}},
    ],
}
FEATURES = ("catalogManaged", "vacuumProtocolCheck", "inCommitTimestamp")
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": list(FEATURES[:2]),
    "writerFeatures": list(FEATURES),
}
T0 = 1_763_700_000_000
"""The in-commit timestamp of version 0, in ms; those of later versions are a second apart."""

Lines = list[dict[str, Any]]


def dashed(protocol: dict[str, Any]) -> dict[str, Any]:
    """A protocol action's body as the API writes it."""
    return {
        "min-reader-version": protocol["minReaderVersion"],
        "min-writer-version": protocol["minWriterVersion"],
        "reader-features": protocol["readerFeatures"],
        "writer-features": protocol["writerFeatures"],
    }


def content(lines: Lines) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def commit_info(version: int, **fields: Any) -> dict[str, Any]:
    at = T0 + version * 1000
    usual = {
        "timestamp": at,
        "inCommitTimestamp": at,
        "operation": "WRITE",
        "operationParameters": {},
        "isBlindAppend": True,
        "engineInfo": "a stock engine",
        "txnId": str(uuid.uuid4()),
    }
    return {"commitInfo": {**usual, **fields}}


def add(path: str | None = None, **fields: Any) -> dict[str, Any]:
    usual = {
        "path": path or f"{uuid.uuid4()}.parquet",
        "partitionValues": {},
        "size": 300,
        "modificationTime": T0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": 2}),
    }
    return {"add": {**usual, **fields}}


def metadata(table_id: str, **configuration: str) -> dict[str, Any]:
    return {
        "metaData": {
            "id": str(uuid.uuid5(uuid.NAMESPACE_OID, table_id)),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(COLUMNS),
            "partitionColumns": [],
            "configuration": {
                "delta.enableInCommitTimestamps": "true",
                "io.unitycatalog.tableId": table_id,
                **configuration,
            },
            "createdTime": T0,
        }
    }


@dataclass
class Staged:
    """A staged commit: its file, and what is said of it."""

    name: str
    said: dict[str, Any]


@dataclass
class StockTable:
    """A table of catalog `main`, as a client that made it knows it."""

    client: "StockClient"
    name: str
    table_id: str
    location: str
    path: str = field(init=False)

    def __post_init__(self) -> None:
        self.path = f"{self.client.schema_path}/tables/{self.name}"

    @property
    def log(self) -> Path:
        return Path(self.location.removeprefix("file://")) / "_delta_log"

    def version(self, version: int) -> bytes:
        return (self.log / f"{version:020d}.json").read_bytes()

    def stage(self, version: int, lines: Lines | None = None, **info: Any) -> Staged:
        """Write a commit into `_staged_commits`; by default an append of one file."""
        lines = [commit_info(version, **info), *([add()] if lines is None else lines)]
        return self.stage_bytes(version, content(lines), lines[0]["commitInfo"])

    def stage_bytes(self, version: int, found: bytes, info: dict[str, Any]) -> Staged:
        name = f"{version:020d}.{uuid.uuid4()}.json"
        folder = self.log / "_staged_commits"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(found)
        said = {
            "version": version,
            "timestamp": info.get("inCommitTimestamp", T0),
            "file-name": name,
            "file-size": len(found),
            "file-modification-timestamp": T0,
        }
        return Staged(name, said)

    def propose(self, staged: Staged, *updates: dict[str, Any], **more: Any) -> httpx.Response:
        """Ask for the commit to become its version, `more` changing what is said of its file."""
        said = {name.replace("_", "-"): value for name, value in more.items()}
        commit = {"action": "add-commit", "commit": {**staged.said, **said}}
        return self.update(commit, *updates)

    def update(self, *updates: dict[str, Any], requirements: Lines | None = None) -> httpx.Response:
        required = [{"type": "assert-table-uuid", "uuid": self.table_id}]
        body = {
            "requirements": required if requirements is None else requirements,
            "updates": list(updates),
        }
        return self.client.http.post(self.path, json=body)

    def commit(self, version: int, lines: Lines | None = None, **info: Any) -> Staged:
        """Stage a commit and see it land."""
        staged = self.stage(version, lines, **info)
        answer = self.propose(staged)
        assert answer.status_code == 200, answer.text
        assert answer.json()["latest-table-version"] == version
        return staged

    def load(self) -> dict[str, Any]:
        answer = self.client.http.get(self.path)
        assert answer.status_code == 200, answer.text
        return answer.json()


class StockClient:
    """A client of one service, at whose place the warehouse is; its tables are of one schema of
    the catalog `main`."""

    def __init__(self, url: str, *, token: str = "some-token", schema: str = "air") -> None:
        self.schema_path = f"/delta/v1/catalogs/main/schemas/{schema}"
        self.http = httpx.Client(
            base_url=url + UNITY, headers={"Authorization": f"Bearer {token}"}, timeout=60
        )
        self.own = httpx.Client(
            base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=60
        )

    def stage_table(self, name: str | None = None) -> StockTable:
        """Ask for a place, and have the folder of a log there."""
        name = name or f"t{uuid.uuid4().hex}"
        answer = self.http.post(f"{self.schema_path}/staging-tables", json={"name": name})
        assert answer.status_code == 200, answer.text
        place = answer.json()
        table = StockTable(self, name, place["table-id"], place["location"])
        table.log.mkdir(parents=True)
        return table

    def first_lines(self, table: StockTable, **configuration: str) -> Lines:
        return [
            commit_info(0, operation="CREATE TABLE", isBlindAppend=True),
            {"protocol": PROTOCOL},
            metadata(table.table_id, **configuration),
        ]

    def create_staged(self, table: StockTable, **changes: Any) -> httpx.Response:
        body = {
            "name": table.name,
            "location": table.location,
            "table-type": "MANAGED",
            "columns": COLUMNS,
            "partition-columns": [],
            "protocol": dashed(PROTOCOL),
            "properties": {
                "delta.enableInCommitTimestamps": "true",
                "io.unitycatalog.tableId": table.table_id,
            },
            "last-commit-timestamp-ms": T0,
            **changes,
        }
        return self.http.post(f"{self.schema_path}/tables", json=body)

    def create(self, name: str | None = None) -> StockTable:
        table = self.stage_table(name)
        (table.log / f"{0:020d}.json").write_bytes(content(self.first_lines(table)))
        answer = self.create_staged(table)
        assert answer.status_code == 200, answer.text
        return table
