"""Schedules drawn at random: A starts, others commit, A commits. As lines of a log, so that our
rules, the oracle and Delta itself can each read them by themselves.

Paths, partitions, domains and applications are few, so that some of what the two sides do meets,
and most commits do little, so that not everything does.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

Line = dict[str, Any]
TABLE_ID = "11111111-2222-4333-8444-555555555555"
_METADATA_CHANGES = (
    *("description", "property", "dropped property", "vectors", "policy"),
    *("mapping", "row ids", "wider", "column"),
)
OPERATIONS = {"TRUNCATE": True, "Manual Update": False}
"""What A calls itself, and whether Delta says that this changes data."""
BACKFILL = "ROW TRACKING BACKFILL"
_FILES = {"a": "1", "b": "1", "c": "2", "d": "2", "e": None}
_DOMAINS = ("one", "two")
_APPLICATIONS = ("one", "two")
PREDICATES = (
    ("x = 1",),
    ("x = 2",),
    ("x IS NULL",),
    ("x > 1", "v = 5"),
    ("x IN (2, 3)",),
    ("v > 3",),
    ("x = 1 OR v = 5",),
    ("x = 3", "v < 3"),
    ("x <> 2",),
)
"""Scans, each as the parts that AND joins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """`start` is version 0, `winners` the versions after it, `actions` what A commits then, having
    read version 0. `isolation_level` is what A asks for."""

    start: Sequence[Line]
    winners: Sequence[Sequence[Line]]
    actions: Sequence[Line]
    operation: str
    predicates: Sequence[Sequence[str]] = ()
    files: Sequence[str] = ()
    whole_table: bool = False
    app_ids: Sequence[str] = ()
    isolation_level: str | None = None


def draw(rng: Random, *, winners: int = 1, for_delta: bool = False) -> Schedule:
    """A schedule. `for_delta` leaves out what only our rules know: properties and levels of ours,
    and actions of unknown kind."""
    table = _Table(rng, for_delta)
    start = table.start()
    others = [table.winner(version) for version in range(1, winners + 1)]
    reads = rng.choice(["nothing", "something", "something", "something", "everything"])
    some = reads == "something"
    return Schedule(
        start=start,
        winners=others,
        actions=table.own_actions(),
        operation=rng.choice(sorted(OPERATIONS)),
        predicates=rng.sample(PREDICATES, rng.choice([0, 1, 1, 2])) if some else (),
        files=sorted(rng.sample(sorted(_FILES), rng.choice([0, 1, 2]))) if some else (),
        whole_table=reads == "everything",
        app_ids=sorted(rng.sample(_APPLICATIONS, rng.choice([0, 0, 1]))),
        isolation_level=None if for_delta else rng.choice([None, None, "Serializable"]),
    )


class _Table:
    def __init__(self, rng: Random, for_delta: bool) -> None:
        self._rng = rng
        self._for_delta = for_delta
        self._partitioned = rng.random() < 0.7
        optional = [
            "deletionVectors",
            "columnMapping",
            "rowTracking",
            "v2Checkpoint",
            "typeWidening",
        ]
        self._features = {name for name in optional if rng.random() < 0.5}
        properties = {"delta.isolationLevel": rng.choice(["Serializable", "WriteSerializable"])}
        if rng.random() < 0.3:
            properties["custom"] = "1"
        self._gives_vectors = "deletionVectors" in self._features and rng.random() < 0.6
        if self._gives_vectors:
            properties["delta.enableDeletionVectors"] = "true"
        if "typeWidening" in self._features:
            properties["delta.enableTypeWidening"] = "true"
        if not for_delta and rng.random() < 0.3:
            properties["tidegate.statisticsDisjointness"] = "true"
        self._metadata: Line = {
            "id": TABLE_ID,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": _schema([_column("x"), _column("v")]),
            "partitionColumns": ["x"] if self._partitioned else [],
            "configuration": properties,
            "createdTime": 1,
        }
        self._live = dict(_FILES)
        self._ids = 0

    def start(self) -> list[Line]:
        lines = [_info(0, "CREATE TABLE", is_blind=False), self._protocol(), self._meta()]
        if "rowTracking" in self._features:
            mark = json.dumps({"rowIdHighWaterMark": 99})
            lines.append(_domain("delta.rowTracking", mark))
        return [*lines, *(self._add(path, x, 0) for path, x in sorted(_FILES.items()))]

    def winner(self, version: int) -> list[Line]:
        rng = self._rng
        if "rowTracking" in self._features and rng.random() < 0.1:
            again = [path for path in ("a", "c") if path in self._live]
            change = not self._for_delta and rng.random() < 0.2
            files = [self._add(path, _FILES[path], version, change=change) for path in again]
            return [_info(version, BACKFILL, is_blind=False), *files]
        lines = self._files(f"w{version}", version)
        if rng.random() < 0.3:
            lines.append(_txn(rng.choice(_APPLICATIONS)))
        if rng.random() < 0.3:
            lines.append(_domain(rng.choice(_DOMAINS), "{}"))
        if rng.random() < 0.25:
            lines.append(self._changed_metadata())
        elif rng.random() < 0.2:
            lines.append(self._changed_protocol())
        if not self._for_delta and rng.random() < 0.05:
            lines.append({"sorcery": {"what": "unknown"}})
        is_blind = rng.random() < 0.5
        if self._for_delta:
            is_blind = is_blind and all(line.keys() & {"add", "txn"} for line in lines)
        return [_info(version, "WRITE", is_blind=is_blind), *lines]

    def own_actions(self) -> list[Line]:
        rng = self._rng
        lines = self._files("m", None)
        if rng.random() < 0.2:
            lines.append(_txn(rng.choice(_APPLICATIONS)))
        if rng.random() < 0.2:
            lines.append(_domain(rng.choice(_DOMAINS), "{}"))
        if rng.random() < 0.1:
            first = self.first_metadata
            lines.append({"metaData": {**first, "description": "changed"}})
        if rng.random() < 0.05:
            lines.append(_features_line({*self.first_features, "checkConstraints"}))
        if not self._for_delta and rng.random() < 0.03:
            lines.append({"sorcery": {"what": "unknown"}})
        return lines

    # What a table is at first stays what A knows of it.

    def _meta(self) -> Line:
        self.first_metadata = dict(self._metadata)
        return {"metaData": self.first_metadata}

    def _protocol(self) -> Line:
        self.first_features = frozenset(self._features)
        return _features_line(self._features)

    def _files(self, prefix: str, version: int | None) -> list[Line]:
        """Adds, removes, and files that get a deletion vector."""
        rng = self._rng
        change = rng.random() < 0.7
        gone = rng.sample(sorted(_FILES), rng.choice([0, 0, 1, 1, 2]))
        if version is not None:
            gone = [path for path in gone if path in self._live]
        lines: list[Line] = []
        for path in gone:
            lines.append(self._remove(path, change=change))
            if self._gives_vectors and rng.random() < 0.4:
                vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
                vector |= {"offset": 4, "sizeInBytes": 40, "cardinality": 1}
                lines.append(
                    self._add(path, _FILES[path], version, change=change, deletionVector=vector)
                )
            elif version is not None:
                del self._live[path]
        if version is None and rng.random() < 0.2:
            again = rng.choice(sorted(_FILES.keys() - set(gone)))
            lines.append(self._add(again, _FILES[again], None, change=change))
        for number in range(rng.choice([0, 1, 1, 2])):
            x = rng.choice(["1", "2", "3", None])
            lines.append(self._add(f"{prefix}-{number}", x, version, change=change))
        return lines

    def _add(
        self, path: str, x: str | None, version: int | None, *, change: bool = True, **fields: Any
    ) -> Line:
        low = self._rng.choice([1, 3, 5])
        stats = {"numRecords": 10, "minValues": {"v": low}, "maxValues": {"v": low + 1}}
        stats |= {"nullCount": {"v": 0}, "tightBounds": "deletionVector" not in fields}
        body = {
            "path": path,
            "partitionValues": {"x": x} if self._partitioned else {},
            "size": 1,
            "modificationTime": 1,
            "dataChange": change,
            "stats": json.dumps(stats),
            **fields,
        }
        if version is not None and "rowTracking" in self._features:
            self._ids += 10
            body |= {"baseRowId": self._ids, "defaultRowCommitVersion": version}
        return {"add": body}

    def _remove(self, path: str, *, change: bool) -> Line:
        values = {"x": _FILES[path]} if self._partitioned else {}
        body = {"path": path, "deletionTimestamp": 1, "dataChange": change}
        return {
            "remove": {**body, "extendedFileMetadata": True, "partitionValues": values, "size": 1}
        }

    def _changed_metadata(self) -> Line:
        rng, before = self._rng, self._metadata
        properties = dict(before["configuration"])
        schema = before["schemaString"]
        change = rng.choice(_METADATA_CHANGES)
        fields: Line = {}
        match change:
            case "description":
                fields["description"] = "theirs"
            case "property":
                properties["custom"] = "2"
            case "dropped property":
                properties.pop("custom", None)
            case "vectors":
                properties["delta.enableDeletionVectors"] = rng.choice(["true", "false"])
            case "policy":
                properties["delta.checkpointPolicy"] = rng.choice(["v2", "classic"])
            case "mapping":
                properties["delta.columnMapping.mode"] = "name"
                properties["delta.columnMapping.maxColumnId"] = "2"
                schema = _schema([_column("x", mapped=1), _column("v", mapped=2)])
            case "row ids":
                properties["delta.enableRowTracking"] = "true"
                for name in ("Id", "CommitVersion"):
                    key = f"delta.rowTracking.materializedRow{name}ColumnName"
                    properties[key] = f"_row_{name}"
            case "wider":
                told = {"toType": "long", "fromType": "integer", "tableVersion": 1}
                wider = _column("v", "long", **{"delta.typeChanges": [told]})
                schema = _schema([_column("x"), wider])
            case "column":
                schema = _schema([_column("x"), _column("v"), _column("w")])
        after = {**before, **fields, "configuration": properties, "schemaString": schema}
        self._metadata = after
        return {"metaData": after}

    def _changed_protocol(self) -> Line:
        rng = self._rng
        since = "vacuumProtocolCheck" in self._features
        change = "dropped" if since else rng.choice(["same", "lenient", "strict", "dropped"])
        if change == "lenient":
            self._features |= {"vacuumProtocolCheck"}
        elif change == "strict":
            self._features |= {"checkConstraints"}
        elif change == "dropped":
            # What was added since A read is dropped first.
            self._features -= {"vacuumProtocolCheck" if since else "v2Checkpoint"}
        return _features_line(self._features)


_FOR_READERS = frozenset(
    {"deletionVectors", "columnMapping", "v2Checkpoint", "typeWidening", "vacuumProtocolCheck"}
)


def _features_line(names: set[str] | frozenset[str]) -> Line:
    writers = {"domainMetadata", "invariants", "appendOnly", *names}
    body = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": sorted(names & _FOR_READERS),
        "writerFeatures": sorted(writers),
    }
    return {"protocol": body}


def _info(version: int, operation: str, *, is_blind: bool) -> Line:
    body = {
        "timestamp": 1_800_000_000_000 + version,
        "operation": operation,
        "operationParameters": {},
        "isBlindAppend": is_blind,
    }
    return {"commitInfo": body}


def _txn(application: str) -> Line:
    return {"txn": {"appId": application, "version": 1, "lastUpdated": 1}}


def _domain(name: str, configuration: str) -> Line:
    body = {"domain": name, "configuration": configuration, "removed": False}
    return {"domainMetadata": body}


def _column(name: str, type_: str = "integer", *, mapped: int | None = None, **marks: Any) -> Line:
    metadata = dict(marks)
    if mapped is not None:
        metadata = {"delta.columnMapping.id": mapped, "delta.columnMapping.physicalName": name}
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def _schema(columns: list[Line]) -> str:
    return json.dumps({"type": "struct", "fields": columns})
