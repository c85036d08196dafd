"""What a machine draws: tables, changes of them, reads, and what others write past the service.

Draws are small values without a table. `lines` and the like apply them to a snapshot, so that
they mostly make sense there and shrink to what is simplest.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tidegate_protocol.features.table_features import with_features
from tidegate_protocol.log.actions import Add
from tidegate_protocol.log.codec import encode
from tidegate_protocol.proposal.transaction import Proposal, Reads
from tidegate_protocol.replay.snapshot import Snapshot

Line = Mapping[str, Any]

FILES = 6
NO_VALUE = FILES - 1
"""The file whose partition has none."""
COLUMNS = [
    {"name": name, "type": "integer", "nullable": True, "metadata": {}} for name in ("x", "v")
]
_VECTORS = ["vBn[lx{q8@P<9BNH/isA", "ab^-aqEH.-t@S}K{vb[*"]


@dataclass(frozen=True)
class TableDraw:
    managed: bool
    partitioned: bool
    isolation: str | None
    switches: frozenset[str]

    def body(self, name: str) -> dict[str, Any]:
        """The request that creates it."""
        properties = dict.fromkeys(sorted(self.switches), "true")
        if self.isolation is not None:
            properties["delta.isolationLevel"] = self.isolation
        properties["delta.feature.domainMetadata"] = "supported"
        return {
            "name": name,
            "schema": {"type": "struct", "fields": COLUMNS},
            "partition_columns": ["x"] if self.partitioned else [],
            "properties": properties,
            "catalog_managed": self.managed,
        }


@dataclass(frozen=True)
class Change:
    """What a commit does. `adds` are numbers of files, `removes` and `vector` picks among those
    that are live; `vector` gives a file another deletion vector."""

    adds: tuple[int, ...] = ()
    removes: tuple[int, ...] = ()
    vector: int | None = None
    txn: int | None = None
    domain: str | None = None
    metadata: str | None = None
    protocol: bool = False
    unknown: bool = False
    data_change: bool = True


@dataclass(frozen=True)
class ReadsDraw:
    """`files` are picks among those that are live."""

    whole_table: bool = False
    predicates: tuple[str, ...] = ()
    files: tuple[int, ...] = ()
    app: bool = False

    def of(self, snapshot: Snapshot) -> Reads:
        live = _live(snapshot)
        return Reads(
            whole_table=self.whole_table,
            predicates=self.predicates,
            files=frozenset(live[pick % len(live)].path for pick in self.files if live),
            app_ids=frozenset({"app"} if self.app else ()),
        )


@dataclass(frozen=True)
class Envelope:
    """The rest of a proposal. `lag` counts versions behind the head (None: no read version),
    and -1 is one ahead of it."""

    lag: int | None = 0
    operation: str = "WRITE"
    isolation: str | None = None
    skip_if_empty: bool = False
    note: str | None = None


@dataclass(frozen=True)
class Past:
    """A commit by another writer: `late_ms` after the table's latest version by its own clock
    (None: it says no time), `claims` the transaction id of a pick of ours, `torn` what it is
    instead of a commit; `twin` has it be what a catalog-managed table will put there itself."""

    change: Change
    late_ms: int | None
    blind: bool
    claims: int | None
    torn: bytes | None
    twin: bool = False


tables = st.builds(
    TableDraw,
    managed=st.booleans(),
    partitioned=st.booleans(),
    isolation=st.sampled_from([None, "Serializable", "WriteSerializable"]),
    switches=st.one_of(
        st.just(frozenset()),
        st.frozensets(
            st.sampled_from(
                [
                    "delta.enableDeletionVectors",
                    "delta.enableRowTracking",
                    "delta.enableInCommitTimestamps",
                    "delta.enableDeletionVectors",
                    "delta.appendOnly",
                ]
            ),
            max_size=3,
        ),
    ),
)

_files = st.integers(0, FILES - 1)
_appends = st.builds(Change, adds=st.lists(_files, min_size=1, max_size=2).map(tuple))
_moves = st.builds(
    Change,
    adds=st.lists(_files, max_size=1).map(tuple),
    removes=st.lists(_files, min_size=1, max_size=2).map(tuple),
    data_change=st.sampled_from([True, True, False]),
)
_vectors = st.builds(Change, vector=_files)
_others = st.builds(
    Change,
    adds=st.lists(_files, max_size=1).map(tuple),
    txn=st.none() | st.integers(0, 2),
    domain=st.sampled_from([None, "one", "two", "removed"]),
    metadata=st.sampled_from([None, None, "name", "property", "column", "append", "null"]),
    protocol=st.sampled_from([False, False, True]),
    unknown=st.sampled_from([False, False, False, True]),
)
changes = st.one_of(_appends, _moves, _vectors, _others, st.just(Change()))

reads = st.one_of(
    st.just(ReadsDraw()),
    st.builds(
        ReadsDraw,
        whole_table=st.sampled_from([False, False, True]),
        predicates=st.lists(
            st.sampled_from(["x = 0", "x = 1", "v > 25", "x IS NULL", "nope = 1"]), max_size=1
        ).map(tuple),
        files=st.lists(_files, max_size=1).map(tuple),
        app=st.booleans(),
    ),
)
envelopes = st.builds(
    Envelope,
    lag=st.sampled_from([0, 0, 1, 2, 3, 5, None, None, -1]),
    operation=st.sampled_from(["WRITE", "WRITE", "DELETE", "MERGE", "OPTIMIZE", "REPLACE TABLE"]),
    isolation=st.sampled_from([None, None, None, "Serializable", "SnapshotIsolation"]),
    skip_if_empty=st.sampled_from([False, False, True]),
    note=st.sampled_from([None, None, "ä\n\u2028"]),
)
lags = st.sampled_from([0, 0, 0, 1, 2, None, -1])
pasts = st.builds(
    Past,
    change=changes,
    late_ms=st.sampled_from([None, 0, 1, -100_000, 3_000]),
    blind=st.booleans(),
    claims=st.none() | st.integers(0, 5),
    torn=st.sampled_from(
        [None] * 12 + [b"torn", b"", b'{"protocol":{"minReaderVersion":9,"minWriterVersion":9}}\n']
    ),
    twin=st.booleans(),
)


def lines(change: Change, snapshot: Snapshot) -> list[Line]:
    """The actions of the log that the change is at the snapshot; maybe not valid ones."""
    live = _live(snapshot)
    found: list[Line] = []
    partitioned = snapshot.metadata is not None and bool(snapshot.metadata.partition_columns)
    if change.protocol and snapshot.protocol is not None:
        raised = with_features(snapshot.protocol, ["checkConstraints"])
        found.append(_line_of(raised))
    if change.metadata is not None and snapshot.metadata is not None:
        found.append(_changed_metadata(change.metadata, _line_of(snapshot.metadata)["metaData"]))
    if change.txn is not None:
        found.append({"txn": {"appId": "app", "version": change.txn, "lastUpdated": 5}})
    if change.domain is not None:
        gone = change.domain == "removed"
        body = {"domain": "ours", "configuration": change.domain, "removed": gone}
        found.append({"domainMetadata": body})
    if change.unknown:
        found.append({"sorcery": {"spell": 1.50}})
    found.extend(_removal(live, pick, change.data_change) for pick in change.removes)
    if change.vector is not None and live:
        add = live[change.vector % len(live)]
        found.append(_removal(live, change.vector, change.data_change))
        found.append(_with_vector(add))
    found.extend(_addition(number, partitioned, change.data_change) for number in change.adds)
    return found


def past_content(past: Past, snapshot: Snapshot, *, latest_ms: int, claimed: str | None) -> bytes:
    """The bytes that the other writer's file has."""
    if past.torn is not None:
        return past.torn
    info: dict[str, Any] = {"operation": "WRITE", "isBlindAppend": past.blind}
    if past.late_ms is not None:
        info["timestamp"] = max(latest_ms + past.late_ms, 0)
    if claimed is not None:
        info["txnId"] = claimed
    found = [{"commitInfo": info}, *lines(past.change, snapshot)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in found)


def _live(snapshot: Snapshot) -> Sequence[Add]:
    return [snapshot.files[key] for key in sorted(snapshot.files, key=str)]


def _line_of(action: Any) -> Any:
    return json.loads(encode(action))


def _addition(number: int, partitioned: bool, data_change: bool) -> Line:
    x = None if number == NO_VALUE else str(number % 2)
    low = number * 10
    statistics = {"numRecords": 2, "minValues": {"v": low}, "maxValues": {"v": low + 9}}
    body = {
        "path": f"f{number}%20ä.parquet",
        "partitionValues": {"x": x} if partitioned else {},
        "size": number + 1,
        "modificationTime": 1,
        "dataChange": data_change,
        "stats": json.dumps(statistics),
    }
    return {"add": body}


def _removal(live: Sequence[Add], pick: int, data_change: bool) -> Line:
    if not live:
        return {"remove": {"path": f"gone{pick}", "deletionTimestamp": 2, "dataChange": True}}
    add = _line_of(live[pick % len(live)])["add"]
    body = {"path": add["path"], "deletionTimestamp": 2, "dataChange": data_change}
    if pick % 2:
        body |= {"extendedFileMetadata": True, "partitionValues": add["partitionValues"], "size": 1}
    if "deletionVector" in add:
        body["deletionVector"] = add["deletionVector"]
    return {"remove": body}


def _with_vector(add: Add) -> Line:
    body = dict(_line_of(add)["add"])
    old = body.get("deletionVector", {}).get("pathOrInlineDv")
    new = _VECTORS[1] if old == _VECTORS[0] else _VECTORS[0]
    body["deletionVector"] = {
        "storageType": "u",
        "pathOrInlineDv": new,
        "offset": 1,
        "sizeInBytes": 40,
        "cardinality": 1,
    }
    body["stats"] = '{"numRecords":2,"tightBounds":false}'
    return {"add": body}


def _changed_metadata(how: str, body: dict[str, Any]) -> Line:
    match how:
        case "name":
            body["name"] = "renamed" if body.get("name") != "renamed" else "again"
        case "column":
            schema = json.loads(body["schemaString"])
            number = len(schema["fields"])
            added = {"name": f"c{number}", "type": "long", "nullable": True, "metadata": {}}
            body["schemaString"] = json.dumps({**schema, "fields": [*schema["fields"], added]})
        case "property":
            old = body["configuration"].get("ours")
            value = "2" if old == "1" else "1"
            body["configuration"] = {**body["configuration"], "ours": value}
        case "null":
            # What takes files without a partition value does not the next time.
            schema = json.loads(body["schemaString"])
            schema["fields"][0]["nullable"] = not schema["fields"][0]["nullable"]
            body["schemaString"] = json.dumps(schema)
        case "append":
            body["configuration"] = {**body["configuration"], "delta.appendOnly": "true"}
    return {"metaData": body}


def body(proposal: Proposal, *, ndjson: bool) -> tuple[bytes, str]:
    """The proposal as a request: its bytes and their media type."""
    reads = proposal.reads
    envelope = {
        "transaction_id": proposal.transaction_id,
        "operation": proposal.operation,
        "read_version": proposal.read_version,
        "reads": {
            "whole_table": reads.whole_table,
            "predicates": list(reads.predicates),
            "files": sorted(reads.files),
            "app_ids": sorted(reads.app_ids),
        },
        "isolation_level": proposal.isolation_level,
        "user_metadata": proposal.user_metadata,
        "engine_info": proposal.engine_info,
        "skip_if_empty": proposal.skip_if_empty,
    }
    actions = [encode(action) for action in proposal.actions]
    head = json.dumps(envelope).encode()
    if ndjson:
        return b"".join(line + b"\n" for line in (head, *actions)), "application/x-ndjson"
    return head[:-1] + b',"actions":[' + b",".join(actions) + b"]}", "application/json"
