"""The examples of the OpenAPI document. Tests send them to a running service.

Sent as they are, none makes a table unreadable: an action that names a data file has a place for
its path, which is no URI, so that the service refuses it.
"""

import json
from typing import Any

Example = dict[str, Any]

_FLIGHTS_SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "month", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "carrier", "type": "string", "nullable": True, "metadata": {}},
        {"name": "dep_delay", "type": "double", "nullable": True, "metadata": {}},
    ],
}
_OWN_FILE = "<the file that you wrote>"
"""In the place of a data file's name."""
_ADD = {
    "path": "month=5/part-00000.parquet",
    "partitionValues": {"month": "5"},
    "size": 1024,
    "modificationTime": 1763700000000,
    "dataChange": True,
    "stats": '{"numRecords":120}',
}

CREATE_TABLE: dict[str, Example] = {
    "partitioned": {
        "summary": "A plain table, partitioned by a column",
        "value": {
            "name": "main.air.flights",
            "schema": _FLIGHTS_SCHEMA,
            "partition_columns": ["month"],
        },
    },
    "catalog_managed": {
        "summary": "A catalog-managed table with a property",
        "value": {
            "name": "main.air.delays",
            "schema": _FLIGHTS_SCHEMA,
            "partition_columns": ["month"],
            "properties": {"delta.appendOnly": "true"},
            "comment": "Delays by flight",
            "catalog_managed": True,
        },
    },
}

CHECKPOINT: dict[str, Example] = {
    "latest": {"summary": "Of the latest version", "value": {}},
    "version": {"summary": "Of one version", "value": {"version": 2}},
}
REGISTER_TABLE: dict[str, Example] = {
    "existing": {
        "summary": "A table that Spark wrote, at a location that the service may use",
        "value": {"name": "main.air.flights", "location": "file:///lake/air/flights"},
    },
    "forgotten": {
        "summary": "A catalog-managed table that was forgotten here",
        "value": {
            "name": "main.air.delays",
            "location": "file:///lake/air/delays",
            "catalog_managed": True,
        },
    },
}

_OWN_PATH = f"month=5/{_OWN_FILE}.parquet"
_OWN_ADD = {**_ADD, "path": _OWN_PATH}
_OLD_PATH = "month=5/<the file that it replaces>.parquet"
PROPOSALS: dict[str, Example] = {
    "progress": {
        "summary": "How far an application has come: no rows, and lands as it is",
        "value": {
            "operation": "STREAMING UPDATE",
            "actions": [{"txn": {"appId": "an-example", "version": 41}}],
        },
    },
    "append": {
        "summary": "An append that read nothing, checked at the head; put your file's path in",
        "value": {"operation": "WRITE", "actions": [{"add": _OWN_ADD}]},
    },
    "overwrite": {
        "summary": "Replaces one month, which it has read at version 2; put your files' paths in",
        "value": {
            "transaction_id": "0f0c7c1e-6f0b-4f5e-9d55-7f6f2b8a4c11",
            "read_version": 2,
            "reads": {"predicates": ["month = 5"], "files": [_OLD_PATH]},
            "operation": "WRITE",
            "operation_parameters": {"mode": "Overwrite", "predicate": "month = 5"},
            "actions": [
                {
                    "remove": {
                        "path": _OLD_PATH,
                        "deletionTimestamp": 1763700060000,
                        "dataChange": True,
                        "partitionValues": {"month": "5"},
                        "size": 1024,
                    }
                },
                {"add": _OWN_ADD},
            ],
        },
    },
}

PROPOSAL_NDJSON = (
    '{"operation":"WRITE"}\n'
    f'{{"add":{{"path":"month=6/{_OWN_FILE}.parquet","partitionValues":{{"month":"6"}},"size":2048,'
    '"modificationTime":1763700000000,"dataChange":true}}\n'
)

INVENTORY_NDJSON = (
    '{"dry_run":true}\n'
    '{"path":"month=5/part-00009.parquet","length":512,"modificationTime":1763700000000}\n'
)
VACUUMS: dict[str, Example] = {
    "dry_run": {"summary": "What would go", "value": {"dry_run": True}},
    "longer": {"summary": "Keep removed files for 30 days", "value": {"retain_ms": 2_592_000_000}},
}
SCANS: dict[str, Example] = {
    "latest": {"summary": "The whole latest version", "value": {}},
    "pruned": {
        "summary": "One month, as of version 1",
        "value": {"version": 1, "predicates": ["month = 5"]},
    },
}

_ID = "0f0c7c1e-6f0b-4f5e-9d55-7f6f2b8a4c11"
_MOMENT = 1763700000000
_METRICS = {
    "num_added_files": 1,
    "num_removed_files": 1,
    "bytes_added": 1024,
    "bytes_removed": 1024,
    "attempts": 1,
    "duration_ms": 9,
}
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
_METADATA = {
    "id": "5a27ad05-0116-4157-a02d-d8c5261620d4",
    "name": "flights",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": json.dumps(_FLIGHTS_SCHEMA),
    "partitionColumns": ["month"],
    "configuration": {},
    "createdTime": _MOMENT,
}
_HEAD = {
    "id": "611927dc-76f5-458a-9e6a-909358cc2f9a",
    "name": "main.air.flights",
    "location": "file:///srv/lake/main/air/flights",
    "catalog_managed": False,
    "state": "active",
    "state_reason": None,
    "first_version": 0,
    "latest_version": 2,
    "published_version": 2,
    "latest_timestamp": _MOMENT,
    "num_files": 12,
    "size_bytes": 12288,
    "protocol": _PROTOCOL,
    "metadata": _METADATA,
}
_DECISION = {
    "table": "main.air.flights",
    "version": 2,
    "read_version": 1,
    "transaction_id": _ID,
    "isolation_level": "Serializable",
    "is_blind_append": False,
    "rebased_over": 0,
}

_COMMIT = {
    **_DECISION,
    "timestamp": _MOMENT,
    "published": True,
    "replayed": False,
    "metrics": _METRICS,
    "check_ms": 1,
    "totals": {"version": 2, "num_files": 12, "size_bytes": 12288},
}

_OPENING: Example = {
    "checkpoint_version": 40,
    "checkpoint_bytes": 18_204,
    "commits": 2,
    "commit_bytes": 1_460,
}

ANSWERS: dict[str, Example] = {
    "OpeningAnswer": _OPENING,
    "TableAnswer": _HEAD,
    "CreatedAnswer": _HEAD,
    "RebuiltAnswer": {**_HEAD, "lost": [], "unknown_ids": None},
    "UpkeepAnswer": {
        "table": "main.air.flights",
        "checkpoint_version": 40,
        "checkpoint_at": _MOMENT,
        "commits_after_checkpoint": 2,
        "checksum_version": 42,
        "checksum_at": _MOMENT,
        "cleaned_up_before": 20,
        "clean_up_at": _MOMENT,
        "compaction_version": None,
        "compaction_at": None,
        "dropped_before": None,
        "dropped_at": _MOMENT,
        "vacuum_version": None,
        "vacuum_at": None,
        "opening": _OPENING,
        "hooks": {},
        "troubles": {},
    },
    "HookAnswer": {"version": 41, "at": _MOMENT, "commits_behind": 1, "failures": 0},
    "ManifestsAnswer": {
        "table": "main.air.flights",
        "version": 2,
        "manifests": 12,
        "files": 40,
        "removed": 0,
    },
    "UnknownIdsAnswer": {"first_version": 9, "last_version": 11},
    "LostAnswer": {"version": 13, "transaction_id": "0f0c7c1e-6f0b-4f5e-9d55-7f6f2b8a4c11"},
    "CheckpointAnswer": {
        "table": "main.air.flights",
        "version": 2,
        "kind": "classic",
        "files": 1,
        "bytes": 21803,
        "files_written": 1,
        "bytes_written": 21803,
        "num_actions": 14,
        "seconds": 0.031,
    },
    "TablesAnswer": {"tables": [_HEAD], "next_cursor": None},
    "ForgottenTablesAnswer": {
        "tables": [
            {
                "id": _HEAD["id"],
                "name": _HEAD["name"],
                "location": _HEAD["location"],
                "catalog_managed": False,
                "latest_version": 2,
                "forgotten_at": _MOMENT,
            }
        ],
        "next_cursor": None,
    },
    "CommitAnswer": _COMMIT,
    "ConflictCheckAnswer": {**_DECISION, "committed": False},
    "HistoryAnswer": {
        "table": "main.air.flights",
        "commits": [
            {
                "version": 2,
                "timestamp": _MOMENT,
                "transaction_id": _ID,
                "operation": "WRITE",
                "operation_parameters": {"mode": "Overwrite", "predicate": "month = 5"},
                "operation_metrics": {},
                "isolation_level": "Serializable",
                "is_blind_append": False,
                "read_version": 1,
                "rebased_over": 0,
                "engine_info": "a-writer/1.0",
                "user_metadata": None,
                "tags": {},
                "foreign": False,
                "content_sha256": "9f86d081884c7d659a2feaa0c55ad015"
                "a3bf4f1b2b0b822cd15d6c15b0f00a08",
                "metrics": _METRICS,
            }
        ],
        "next_to_version": 1,
    },
    "TransactionAnswer": {
        "transaction_id": _ID,
        "state": "committed",
        "version": 2,
        "commit": {**_COMMIT, "replayed": True, "check_ms": None, "totals": None},
    },
    "AppTransactionAnswer": {"app_id": "stream-1", "version": 41, "last_updated": _MOMENT},
    "DefaultLocationAnswer": {"location": "file:///srv/lake/main/air/flights"},
    "DomainAnswer": {
        "domain": "delta.clustering",
        "configuration": '{"clusteringColumns":[["month"]],"domainName":"delta.clustering"}',
    },
    "VerificationAnswer": {
        "table": "main.air.flights",
        "consistent": True,
        "from_version": 0,
        "through_version": 2,
        "next_version": None,
        "cleaned_up": 0,
        "not_ingested": 0,
        "differences": [],
    },
    "ScanAnswer": {
        "table": "main.air.flights",
        "table_id": _HEAD["id"],
        "location": _HEAD["location"],
        "version": 2,
        "timestamp": _MOMENT,
        "protocol": _PROTOCOL,
        "metadata": _METADATA,
        "files": [{"add": _ADD}],
    },
}
