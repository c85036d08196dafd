"""Bodies as the service words them, for the scripted server."""

TABLE_ID = "7d8c0c3a-0000-4000-8000-000000000001"
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "month", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "flight", "type": "string", "nullable": True, "metadata": {}},
    ],
}
SCHEMA_TEXT = (
    '{"type":"struct","fields":['
    '{"name":"month","type":"integer","nullable":true,"metadata":{}},'
    '{"name":"flight","type":"string","nullable":true,"metadata":{}}]}'
)
METADATA = {
    "id": "m-1",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": SCHEMA_TEXT,
    "partitionColumns": ["month"],
    "configuration": {"delta.appendOnly": "false", "owner": "ops"},
    "createdTime": 1700000000000,
    "fieldOfTheFuture": [1, 2],
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
METRICS = {
    "num_added_files": 1,
    "num_removed_files": 0,
    "bytes_added": 10,
    "bytes_removed": 0,
    "attempts": 1,
    "duration_ms": 3,
}


def head(name: str = "main.air.flights", version: int = 4, **changes: object) -> dict[str, object]:
    return {
        "id": TABLE_ID,
        "name": name,
        "location": "file:///lake/main/air/flights",
        "catalog_managed": False,
        "state": "active",
        "state_reason": None,
        "latest_version": version,
        "published_version": version,
        "latest_timestamp": 1700000000123,
        "num_files": 2,
        "size_bytes": 20,
        "protocol": PROTOCOL,
        "metadata": METADATA,
    } | changes


def scan(*files: dict[str, object], version: int = 4) -> dict[str, object]:
    return {
        "table": "main.air.flights",
        "table_id": TABLE_ID,
        "location": "file:///lake/main/air/flights",
        "version": version,
        "timestamp": 1700000000123,
        "protocol": PROTOCOL,
        "metadata": METADATA,
        "files": list(files),
    }


def receipt(transaction_id: str, version: int = 5, **changes: object) -> dict[str, object]:
    return {
        "table": "main.air.flights",
        "version": version,
        "read_version": 4,
        "transaction_id": transaction_id,
        "timestamp": 1700000000456,
        "isolation_level": "Serializable",
        "is_blind_append": False,
        "rebased_over": 0,
        "published": True,
        "replayed": False,
        "metrics": METRICS,
    } | changes


def commit(version: int) -> dict[str, object]:
    return {
        "version": version,
        "timestamp": 1700000000000 + version,
        "transaction_id": f"tx-{version}",
        "operation": "WRITE",
        "operation_parameters": {"mode": "Append"},
        "operation_metrics": {},
        "isolation_level": "Serializable",
        "is_blind_append": True,
        "read_version": version - 1,
        "rebased_over": 0,
        "engine_info": "Tidegate",
        "user_metadata": None,
        "tags": {},
        "foreign": False,
        "content_sha256": "ab",
        "metrics": METRICS,
    }


def history(*versions: int, next_to_version: int | None = None) -> dict[str, object]:
    return {
        "table": "main.air.flights",
        "commits": [commit(version) for version in versions],
        "next_to_version": next_to_version,
    }


def conflict(version: int = 5) -> dict[str, object]:
    return {
        "type": "urn:tidegate:problem:concurrent-append",
        "title": "Files were added",
        "status": 409,
        "code": "concurrent-append",
        "instance": "a-request",
        "retryable": False,
        "detail": "files were added to month=5",
        "error_class": "ConcurrentAppendException",
        "conflict": {"version": version, "operation": "WRITE", "timestamp": 1700000000400},
    }


def failure(code: str, status: int, **changes: object) -> dict[str, object]:
    return {"code": code, "status": status, "title": code, "detail": "it is so"} | changes


def aborted(transaction_id: str) -> dict[str, object]:
    return {"transaction_id": transaction_id, "state": "aborted", "version": None}
