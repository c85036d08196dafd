"""An oracle for conflicts: one table of what the loser read or did against what the winner did.

It was written from Delta's PROTOCOL.md and its checker's semantics, and from `docs/conflicts.md`;
it imports nothing of ours and reads the lines of the log by itself. Rows of `TIDEGATE` are where
we are stricter, and nothing else may be.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from tests.conflict_schedules import BACKFILL, OPERATIONS, Line, Schedule


class Level(Enum):
    """Isolation levels."""

    SERIALIZABLE = "Serializable"
    WRITE_SERIALIZABLE = "WriteSerializable"
    SNAPSHOT = "SnapshotIsolation"


class Won(Enum):
    """What a winner did."""

    ANYTHING = auto()
    UNKNOWN_ACTION = auto()
    PROTOCOL = auto()
    DROPPED_FEATURE = auto()
    DROPPED_SINCE = auto()
    ADDED_FENCING_FEATURE = auto()
    METADATA = auto()
    UNSAFE_METADATA = auto()
    DOMAIN = auto()
    APPLICATION = auto()
    ADDED = auto()
    ADDED_BLINDLY = auto()
    CLAIMED_BLIND = auto()
    ADDED_FOR_ROW_IDS = auto()
    REMOVED = auto()


class Lost(Enum):
    """What the loser read or did, in view of the winner."""

    ANYTHING = auto()
    UNKNOWN_ACTION = auto()
    PROTOCOL = auto()
    METADATA = auto()
    SAME_DOMAIN = auto()
    READ_APPLICATION = auto()
    COVERED = auto()
    COVERED_AND_METADATA = auto()
    READ_FILE = auto()
    READ_ALL = auto()
    REMOVED_SAME = auto()
    ADDED_SAME = auto()


class Judge(Enum):
    """Whose rule a row is."""

    DELTA = "Delta"
    TIDEGATE = "Tidegate"


@dataclass(frozen=True, slots=True)
class Row:
    won: Won
    lost: Lost
    levels: frozenset[Level]
    error: str
    by: Judge = Judge.DELTA


_ALL = frozenset(Level)
_BOTH = frozenset({Level.SERIALIZABLE, Level.WRITE_SERIALIZABLE})
_STRICT = frozenset({Level.SERIALIZABLE})
_WEAK = frozenset({Level.WRITE_SERIALIZABLE})
TABLE = (
    Row(Won.UNKNOWN_ACTION, Lost.ANYTHING, _ALL, "protocol-changed", Judge.TIDEGATE),
    Row(Won.ANYTHING, Lost.UNKNOWN_ACTION, _ALL, "protocol-changed", Judge.TIDEGATE),
    Row(Won.PROTOCOL, Lost.PROTOCOL, _ALL, "protocol-changed"),
    Row(Won.DROPPED_FEATURE, Lost.ANYTHING, _ALL, "protocol-changed"),
    Row(Won.DROPPED_SINCE, Lost.ANYTHING, _ALL, "protocol-changed", Judge.TIDEGATE),
    Row(Won.ADDED_FENCING_FEATURE, Lost.ANYTHING, _ALL, "protocol-changed", Judge.TIDEGATE),
    Row(Won.METADATA, Lost.METADATA, _ALL, "metadata-changed"),
    Row(Won.UNSAFE_METADATA, Lost.ANYTHING, _ALL, "metadata-changed"),
    Row(Won.DOMAIN, Lost.SAME_DOMAIN, _ALL, "concurrent-transaction"),
    Row(Won.APPLICATION, Lost.READ_APPLICATION, _ALL, "concurrent-transaction"),
    Row(Won.ADDED, Lost.COVERED, _BOTH, "concurrent-append"),
    Row(Won.ADDED_BLINDLY, Lost.COVERED, _STRICT, "concurrent-append"),
    Row(Won.ADDED_BLINDLY, Lost.COVERED_AND_METADATA, _WEAK, "concurrent-append"),
    Row(Won.CLAIMED_BLIND, Lost.COVERED, _WEAK, "concurrent-append", Judge.TIDEGATE),
    Row(Won.ADDED_FOR_ROW_IDS, Lost.COVERED, _BOTH, "concurrent-append", Judge.TIDEGATE),
    Row(Won.REMOVED, Lost.READ_FILE, _ALL, "concurrent-delete-read"),
    Row(Won.REMOVED, Lost.READ_ALL, _ALL, "concurrent-delete-read"),
    Row(Won.REMOVED, Lost.REMOVED_SAME, _ALL, "concurrent-delete-delete"),
    Row(Won.REMOVED, Lost.ADDED_SAME, _ALL, "concurrent-delete-read", Judge.TIDEGATE),
)
"""In Delta's order: the first row that applies to the first winner is the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The first row that refuses, Tidegate's own among them, and the first of Delta's: None where
    there is none. `spared` is whether Delta refuses files that statistics prove to be unread."""

    ours: Row | None
    deltas: Row | None
    spared: bool


def verdict(schedule: Schedule) -> Verdict:
    """What is to become of A."""
    loser = _Loser(schedule)
    ours: Row | None = None
    for winner in schedule.winners:
        rows = list(loser.rows(winner, spare=loser.spares))
        ours = ours or next(iter(rows), None)
        deltas = next((row for row in rows if row.by is Judge.DELTA), None)
        if deltas is not None:
            return Verdict(ours=ours, deltas=deltas, spared=False)
        loser.passed(winner)
    spared = False
    if loser.spares:
        again = _Loser(schedule)
        for winner in schedule.winners:
            spared |= any(row.by is Judge.DELTA for row in again.rows(winner, spare=False))
            again.passed(winner)
    return Verdict(ours=ours, deltas=None, spared=spared)


def _bodies(lines: Sequence[Line], kind: str) -> list[Any]:
    return [line[kind] for line in lines if kind in line]


_KINDS = {"add", "remove", "cdc", "metaData", "protocol", "txn", "domainMetadata", "commitInfo"}


class _Loser:
    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        (self._metadata,) = _bodies(schedule.start, "metaData")
        (protocol,) = _bodies(schedule.start, "protocol")
        self._read_features = self._features = frozenset(protocol["writerFeatures"])
        self._is_partitioned = bool(self._metadata["partitionColumns"])
        self.spares = (
            self._metadata["configuration"].get("tidegate.statisticsDisjointness") == "true"
        )
        actions = schedule.actions
        own = _bodies(actions, "metaData")
        self._changes_metadata = bool(own)
        self._metadata = own[0] if own else self._metadata
        for changed in _bodies(actions, "protocol"):
            self._features = frozenset(changed["writerFeatures"])
        reads = schedule.predicates or schedule.files or schedule.whole_table
        adds_data = all(add["dataChange"] for add in _bodies(actions, "add"))
        self._is_blind = not reads and adds_data and not _bodies(actions, "remove")
        self._level = self._level_of(actions)

    def _level_of(self, actions: Sequence[Line]) -> Level:
        table = Level(self._metadata["configuration"].get("delta.isolationLevel", "Serializable"))
        asked = self._schedule.isolation_level
        level = table if asked is None else Level(asked)
        quiet = all(
            kind in ("add", "remove", "cdc") and not body["dataChange"]
            for line in actions
            for kind, body in line.items()
        )
        changes = OPERATIONS[self._schedule.operation]
        if quiet and not (changes and Level.WRITE_SERIALIZABLE in (table, level)):
            return Level.SNAPSHOT
        return level

    def rows(self, winner: Sequence[Line], *, spare: bool) -> Iterator[Row]:
        """The rows that refuse, in order."""
        won, adds = self._won(winner)
        lost = self._lost(winner, adds, spare=spare)
        for row in TABLE:
            if row.won in won and row.lost in lost and self._level in row.levels:
                yield row

    def passed(self, winner: Sequence[Line]) -> None:
        """Go on as if the winner had been read."""
        for protocol in _bodies(winner, "protocol"):
            self._features = frozenset(protocol["writerFeatures"])
        for metadata in _bodies(winner, "metaData"):
            self._metadata = metadata

    def _won(self, winner: Sequence[Line]) -> tuple[set[Won], list[Line]]:
        found = {Won.ANYTHING}
        (info,) = _bodies(winner, "commitInfo")
        adds, removes = _bodies(winner, "add"), _bodies(winner, "remove")
        if any(not line.keys() <= _KINDS for line in winner):
            found.add(Won.UNKNOWN_ACTION)
        for protocol in _bodies(winner, "protocol"):
            found.add(Won.PROTOCOL)
            theirs = frozenset(protocol["writerFeatures"])
            if not self._read_features <= theirs:
                found.add(Won.DROPPED_FEATURE)
            if not self._features <= theirs:
                found.add(Won.DROPPED_SINCE)
            if "checkConstraints" in theirs - self._features:
                found.add(Won.ADDED_FENCING_FEATURE)
        for metadata in _bodies(winner, "metaData"):
            found.add(Won.METADATA)
            if not _is_safe(self._metadata, metadata, self._features):
                found.add(Won.UNSAFE_METADATA)
        if _bodies(winner, "domainMetadata"):
            found.add(Won.DOMAIN)
        if _bodies(winner, "txn"):
            found.add(Won.APPLICATION)
        if removes:
            found.add(Won.REMOVED)
        if info["operation"] == BACKFILL:
            quiet = not removes and not any(add["dataChange"] for add in adds)
            found |= set() if quiet else {Won.ADDED_FOR_ROW_IDS}
            return found, adds
        believed = not removes and not found & {Won.METADATA, Won.PROTOCOL, Won.UNKNOWN_ACTION}
        if adds and info["isBlindAppend"]:
            found |= {Won.ADDED_BLINDLY} if believed else {Won.ADDED_BLINDLY, Won.CLAIMED_BLIND}
        elif adds:
            found.add(Won.ADDED)
        return found, adds

    def _lost(self, winner: Sequence[Line], adds: list[Line], *, spare: bool) -> set[Lost]:
        schedule, found = self._schedule, {Lost.ANYTHING}
        actions = schedule.actions
        if any(not line.keys() <= _KINDS for line in actions):
            found.add(Lost.UNKNOWN_ACTION)
        if _bodies(actions, "protocol"):
            found.add(Lost.PROTOCOL)
        if self._changes_metadata:
            found.add(Lost.METADATA)
        theirs = {each["domain"] for each in _bodies(winner, "domainMetadata")}
        if theirs & {each["domain"] for each in _bodies(actions, "domainMetadata")}:
            found.add(Lost.SAME_DOMAIN)
        if {each["appId"] for each in _bodies(winner, "txn")} & set(schedule.app_ids):
            found.add(Lost.READ_APPLICATION)
        if not self._is_blind and any(self._covers(add, spare=spare) for add in adds):
            found.add(Lost.COVERED)
            if self._changes_metadata:
                found.add(Lost.COVERED_AND_METADATA)
        removed = {each["path"] for each in _bodies(winner, "remove")}
        if removed & set(schedule.files):
            found.add(Lost.READ_FILE)
        if schedule.whole_table:
            found.add(Lost.READ_ALL)
        if removed & {each["path"] for each in _bodies(actions, "remove")}:
            found.add(Lost.REMOVED_SAME)
        if removed & {each["path"] for each in _bodies(actions, "add")}:
            found.add(Lost.ADDED_SAME)
        return found

    def _covers(self, add: Line, *, spare: bool) -> bool:
        """Whether A would have read the file, had it been there."""
        schedule = self._schedule
        if schedule.whole_table:
            return True
        scans = schedule.predicates
        if not self._is_partitioned and not (spare and scans):
            return True
        x = add["partitionValues"].get("x")
        partition = None if x is None else int(x)
        for scan in scans:
            of_partition = [_TRUTH[part] for part in scan if "v" not in part]
            if self._is_partitioned and not all(is_true(partition, 0) for is_true in of_partition):
                continue
            if not spare or self._may_hold_rows(scan, add, partition):
                return True
        return False

    def _may_hold_rows(self, scan: Sequence[str], add: Line, partition: int | None) -> bool:
        """Whether a row that the file may hold, by its statistics, is one that the scan keeps."""
        stats = json.loads(add["stats"])
        values = range(stats["minValues"]["v"], stats["maxValues"]["v"] + 1)
        # Of an unpartitioned table, nothing is known of x.
        xs = (partition,) if self._is_partitioned else (None, 0, 1, 2, 3, 4)
        return any(all(_TRUTH[part](x, v) for part in scan) for x in xs for v in values)


_TRUTH: dict[str, Callable[[int | None, int], bool]] = {
    "x = 1": lambda x, v: x == 1,
    "x = 2": lambda x, v: x == 2,
    "x = 3": lambda x, v: x == 3,
    "x IS NULL": lambda x, v: x is None,
    "x > 1": lambda x, v: x is not None and x > 1,
    "x IN (2, 3)": lambda x, v: x in (2, 3),
    "x <> 2": lambda x, v: x is not None and x != 2,
    "x = 1 OR v = 5": lambda x, v: x == 1 or v == 5,
    "v = 5": lambda x, v: v == 5,
    "v > 3": lambda x, v: v > 3,
    "v < 3": lambda x, v: v < 3,
}
"""Whether a row is kept; SQL's null is not true."""


def _is_safe(before: Line, after: Line, features: frozenset[str]) -> bool:
    """Whether metadata that a winner put in place changes nothing that A relied on."""
    fields = before.keys() | after.keys()
    if any(before.get(f) != after.get(f) for f in fields - {"configuration", "schemaString"}):
        return False
    old, new = before["configuration"], after["configuration"]
    if not old.keys() <= new.keys():
        return False
    maps = old.get("delta.columnMapping.mode", "none") == "none" and (
        new.get("delta.columnMapping.mode", "none") == "name"
    )
    tracks = new.get("delta.enableRowTracking") == "true"
    safe = {
        "delta.enableDeletionVectors": ("deletionVectors", {"true"}),
        "delta.checkpointPolicy": ("v2Checkpoint", {"v2"}),
        "delta.enableRowTracking": ("rowTracking", {"true"}),
    }
    for name in (name for name in new if old.get(name) != new[name]):
        if name in safe:
            feature, values = safe[name]
            if feature not in features or new[name] not in values:
                return False
        elif name == "delta.columnMapping.mode":
            if not maps or "columnMapping" not in features:
                return False
        elif name.startswith("delta.rowTracking.materialized"):
            if not tracks:
                return False
        elif name != "delta.columnMapping.maxColumnId":
            return False
    if before["schemaString"] == after["schemaString"]:
        return True
    unmapped = [_unmapped(metadata["schemaString"]) for metadata in (before, after)]
    return maps and unmapped[0] == unmapped[1]


def _unmapped(schema: str) -> list[Line]:
    columns = json.loads(schema)["fields"]
    for column in columns:
        for mark in ("id", "physicalName"):
            column["metadata"].pop(f"delta.columnMapping.{mark}", None)
    return columns
