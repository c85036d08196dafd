"""What stock Delta Spark sent to Unity Catalog's own server, sent to the service.

Each answer has the shape and the meaning of the recorded one: its status, every field with a value
of the same kind, columns, partition columns, properties and version. Ids, times and places are the
service's own. The staged files are not in the recordings: they are made of what the requests say
of them.
"""

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.service.unity_catalog.stock import UNITY, StockClient, commit_info, content

FOLDER = Path(__file__).with_name("recordings")
ON_ONE_TABLE = (
    *("02-create-table", "03-insert", "03b-insert-second", "04-select", "05-update", "06-merge"),
    *("07-delete", "08-optimize", "09-alter-add-column", "10-set-tblproperties"),
    *("10b-unset-tblproperties", "10c-comment-on", "11-describe-history", "11b-describe-detail"),
    *("11c-time-travel", "11d-show-tblproperties", "11i-cluster-by"),
)
SESSIONS = {
    "one table": ON_ONE_TABLE,
    "replaced and dropped": ("12-ctas", "12e-create-or-replace", "16-drop-table"),
    "partitioned": ("12b-create-partitioned", "12c-insert-partitioned"),
    "clustered": ("12d-create-clustered",),
    "missing": ("12h-select-missing", "12l-path-read"),
    "conflicts": (
        *("17-setup-t4", "20-conflict-append-append", "21-conflict-update-update"),
        *("21b-conflict-update-append", "21c-conflict-alter-append"),
    ),
}
OPERATIONS = {
    "09": "ADD COLUMNS",
    "10": "SET TBLPROPERTIES",
    "11i": "CLUSTER BY",
    "12e": "CREATE OR REPLACE TABLE AS SELECT",
}
OWN_TIMES = re.compile(r"delta\.last|rowIdHighWaterMark|clusteringColumns")
"""Properties of the recorded answers that are the server's own, or that clients read in the log."""
PLACE = re.compile(r"file:///[^\"]*__unitystorage/tables/")


class Replay:
    """A service that gets the requests of one session."""

    def __init__(self, stock: StockClient) -> None:
        self.stock = stock
        self.catalog = f"c{uuid.uuid4().hex}"
        self.ids: dict[str, str] = {}
        self.places: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.definitions: dict[str, dict[str, Any]] = {}

    def exchange(self, recording: str, found: dict[str, Any]) -> None:
        path = found["path"].removeprefix(UNITY).replace("unity", self.catalog, 1)
        request = found["request"]
        if request is not None:
            request = self._as_ours(request)
            self._write(recording, path, request)
        answer = self.stock.http.request(
            found["method"], path, json=request, params=found["query"] or {}
        )
        assert answer.status_code == found["status"], (recording, path, answer.text)
        recorded = found["response"]
        if path.endswith("/staging-tables"):
            self.ids[recorded["table-id"]] = answer.json()["table-id"]
            self.places[recorded["table-id"]] = answer.json()["location"]
        if isinstance(recorded, dict):
            self._compare(recorded, answer.json(), recording)

    def _as_ours(self, request: Any) -> Any:
        text = json.dumps(request)
        for old, place in self.places.items():
            text = PLACE.sub("", text).replace(f'"location": "{old}"', f'"location": "{place}"')
        for old, new in self.ids.items():
            text = text.replace(old, new)
        return json.loads(text)

    def _write(self, recording: str, path: str, request: dict[str, Any]) -> None:
        """Write what the client has written before it sent this."""
        if path.endswith("/tables"):
            log = self._log(request["location"])
            log.mkdir(parents=True)
            self.definitions[f"{path}/{request['name']}"] = {
                "log": log,
                "protocol": request["protocol"],
                "columns": request["columns"],
                "partition-columns": request["partition-columns"],
                "configuration": dict(request["properties"]),
                "description": request.get("comment"),
            }
            defined = self.definitions[f"{path}/{request['name']}"]
            domains = request.get("domain-metadata", {})
            lines = [
                self._info(request["last-commit-timestamp-ms"], "CREATE TABLE"),
                self._protocol(defined),
                self._metadata(defined),
                *(domain(name, value) for name, value in domains.items()),
            ]
            (log / f"{0:020d}.json").write_bytes(content(lines))
        elif "updates" in request:
            self._stage(recording, path, request)

    def _stage(self, recording: str, path: str, request: dict[str, Any]) -> None:
        defined = self.definitions[path]
        said = {update["action"]: update for update in request["updates"]}
        commit = said["add-commit"]["commit"]
        number = recording.partition("-")[0]
        operation = OPERATIONS.get(number, OPERATIONS.get(number[:2], "WRITE"))
        lines = [self._info(commit["timestamp"], operation)]
        # Of one that loses, nothing becomes of the table.
        defined = dict(defined, configuration=dict(defined["configuration"]))
        if "set-protocol" in said:
            defined["protocol"] = said["set-protocol"]["protocol"]
            lines.append(self._protocol(defined))
        if "set-columns" in said:
            defined["columns"] = said["set-columns"]["columns"]
        if "set-table-comment" in said:
            defined["description"] = said["set-table-comment"]["comment"]
        defined["configuration"].update(said.get("set-properties", {}).get("updates", {}))
        for name in said.get("remove-properties", {}).get("removals", ()):
            del defined["configuration"][name]
        if set(said) - {"add-commit", "set-latest-backfilled-version", "set-domain-metadata"}:
            lines.append(self._metadata(defined))
        for name, value in said.get("set-domain-metadata", {}).get("updates", {}).items():
            if name != "delta.rowTracking":
                lines.append(domain(name, value))
        staged = defined["log"] / "_staged_commits" / commit["file-name"]
        staged.parent.mkdir(exist_ok=True)
        staged.write_bytes(content(lines))
        commit["file-size"] = staged.stat().st_size
        taken = self.stock.http.get(path).json()["latest-table-version"] >= commit["version"]
        if not taken:
            self.definitions[path] = defined

    def _log(self, location: str) -> Path:
        return Path(location.removeprefix("file://")) / "_delta_log"

    def _info(self, at: int, operation: str) -> dict[str, Any]:
        return commit_info(0, timestamp=at, inCommitTimestamp=at, operation=operation)

    def _protocol(self, defined: dict[str, Any]) -> dict[str, Any]:
        return {
            "protocol": {
                "minReaderVersion": defined["protocol"]["min-reader-version"],
                "minWriterVersion": defined["protocol"]["min-writer-version"],
                "readerFeatures": defined["protocol"]["reader-features"],
                "writerFeatures": defined["protocol"]["writer-features"],
            }
        }

    def _metadata(self, defined: dict[str, Any]) -> dict[str, Any]:
        body = {
            "id": str(uuid.uuid5(uuid.NAMESPACE_OID, str(defined["log"]))),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(defined["columns"]),
            "partitionColumns": defined["partition-columns"],
            "configuration": defined["configuration"],
            "createdTime": 1795336891111,
        }
        if defined["description"]:
            body["description"] = defined["description"]
        return {"metaData": body}

    def _compare(self, recorded: dict[str, Any], ours: dict[str, Any], where: str) -> None:
        recorded = json.loads(PLACE.sub("", json.dumps(recorded)))
        for old, new in self.ids.items():
            recorded = json.loads(json.dumps(recorded).replace(old, new))
        if "latest-table-version" in recorded:
            assert ours["latest-table-version"] == recorded["latest-table-version"]
            # The service publishes by itself, before it answers.
            assert ours["commits"] == []
            theirs, mine = recorded["metadata"], ours["metadata"]
            assert mine["columns"] == theirs["columns"]
            assert mine["partition-columns"] == theirs["partition-columns"]
            assert mine["table-uuid"] == theirs["table-uuid"]
            kept = {n: v for n, v in theirs["properties"].items() if not OWN_TIMES.search(n)}
            assert kept.items() <= mine["properties"].items()
        if "error" in recorded:
            # There are no schemas to be missing here.
            kind = recorded["error"]["type"].replace("NoSuchSchema", "NoSuchTable")
            assert ours["error"]["type"] == kind
            assert ours["error"]["code"] == recorded["error"]["code"]
        same_shape(recorded, ours, where)


def domain(name: str, value: Any) -> dict[str, Any]:
    """As Delta Spark writes it: with a name that it does not say."""
    configuration = json.dumps({**value, "domainName": name})
    return {"domainMetadata": {"domain": name, "configuration": configuration, "removed": False}}


LEFT_OUT = {
    *("stack", "storage_root", "storage_location", "view_definition", "view_dependencies"),
    *("type_interval_type", "details"),
}
"""Fields that no client reads."""
OTHER = {"properties", "commits", "required-properties", "suggested-properties"}
"""Their fields are compared by meaning, or are the service's to choose."""
CHOSEN = {"suggested-protocol", "required-protocol", "storage-credentials"}


def same_shape(recorded: Any, ours: Any, where: str) -> None:
    """Every field of the recorded answer, with a value of the same kind."""
    if isinstance(recorded, dict):
        assert isinstance(ours, dict), where
        for name, value in recorded.items():
            if name in LEFT_OUT - {"storage_location"} and value is None:
                continue
            if name in LEFT_OUT or (name == "storage_location" and value is None):
                continue
            assert name in ours, (where, name)
            if name in OTHER | CHOSEN:
                assert isinstance(ours[name], type(value)), (where, name)
            else:
                same_shape(value, ours[name], f"{where}/{name}")
    elif isinstance(recorded, list):
        assert isinstance(ours, list), where
        for mine, theirs in zip(ours, recorded, strict=False):
            same_shape(theirs, mine, f"{where}/0")
    elif recorded is not None and ours is not None:
        assert isinstance(ours, type(recorded)), (where, recorded, ours)


def test_there_is_a_session_for_each_recording():
    named = [name for names in SESSIONS.values() for name in names]
    assert sorted(named) == sorted(path.stem for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("session", SESSIONS)
def test_the_service_answers_as_the_recorded_server(shared_server, session):
    replay = Replay(StockClient(shared_server))
    count = 0
    for recording in SESSIONS[session]:
        for found in json.loads((FOLDER / f"{recording}.json").read_text()):
            replay.exchange(recording, found)
            count += 1
    assert count > 0
