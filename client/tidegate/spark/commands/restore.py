"""RESTORE: the table as an earlier version had it, by a new version. No row is read or written:
files that were removed since are added again, and those that came since are removed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from time import monotonic, time
from typing import Any

from pyspark.sql import SparkSession

from tidegate.active import check_none_active
from tidegate.errors import InvalidRequest, VersionNotFound
from tidegate.handle import TableHandle
from tidegate.models import DataFile, Receipt, Scan, TableVersion
from tidegate.spark.application import table_of
from tidegate.spark.commands.logical_files import check_there, ignores_missing, without
from tidegate.spark.commands.target import size_of
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.jobs.passes import Passes
from tidegate.spark.read.times import milliseconds_of, scan_at, shown
from tidegate.spark.session_settings import metadata_of
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.clustering import clustering_at
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.refusals import check_writable
from tidegate.spark.write.repeats import repeated
from tidegate.spark.write.write import check_removable
from tidegate.transaction_handle import TransactionHandle
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.computed_columns import identity as identity_of
from tidegate_protocol.features.known import (
    CLUSTERING,
    IDENTITY_HIGH_WATER_MARK,
)
from tidegate_protocol.features.permanent_properties import PERMANENT
from tidegate_protocol.features.properties import ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN
from tidegate_protocol.features.table_features import implied_features, supports, with_features
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.proposal.operations import RESTORE, VACUUM_END, VACUUM_START
from tidegate_protocol.scan.clustering import columns_at, domain_of
from tidegate_protocol.schema.data_types import physical_name
from tidegate_protocol.schema.table_schema import parse_schema

_OPERATION = RESTORE
_VACUUM_MS = 2 * 86_400_000
"""A vacuum of the service ends within twice `long_deadline_seconds`, which is a day at most."""
_COMPLETED = "COMPLETED"
_COMMITS = 1_000
"""Of the history, read at a time."""
_MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
_OF_ROW_IDS = (ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """The commit of a RESTORE, the version that the table is as again, and Delta's metrics by its
    names."""

    receipt: Receipt
    version: int
    metrics: Mapping[str, int]


def restore(
    table: TableHandle,
    spark: SparkSession,
    *,
    version: int | None = None,
    timestamp: datetime | int | str | None = None,
    user_metadata: str | None = None,
    retries: int = 0,
) -> Restored:
    """Make the table what it was at a version, or at the latest one not after a timestamp, in one
    commit: rows, columns, clustering, properties and comment.

    The protocol is not lowered. Identity columns do not go back to numbers that the latest version
    says they gave out.
    Everything that others commit meanwhile is a conflict.

    Raises `ValueError` unless one of version and timestamp is given, `VersionNotFound`,
    `InvalidCommand` for a timestamp outside of the table's history and for another mode of column
    mapping, `InvalidRequest` for files that are not there any more unless the session has
    `spark.sql.files.ignoreMissingFiles`, `UnsupportedTable`, `InvalidProposal` for an append-only
    table, and what `Transaction.commit` raises. After a `ConflictError` it is done anew, at most
    `retries` times.
    """
    if (version is None) == (timestamp is None):
        raise ValueError(f"expected a version or a timestamp, found {version} and {timestamp}")
    check_none_active(table.id)
    table = table_of(table, spark)
    instant = None if timestamp is None else milliseconds_of(timestamp, spark)

    def once() -> Restored:
        transaction = TransactionHandle(table)
        found = (
            _scan(table, version)
            if instant is None
            else scan_at(
                table,
                instant,
                spark,
                latest=transaction.head.timestamp,
                too_late=_too_late,
                too_early=_too_early,
            )
        )
        parameters = {
            "version": None if version is None else str(version),
            "timestamp": None if instant is None else shown(instant, spark),
        }
        return _Restore(transaction, found, spark).run(parameters, user_metadata=user_metadata)

    return repeated(once, retries=retries, clock_s=monotonic)


def _scan(table: TableHandle, version: int | None) -> Scan:
    try:
        return table.scan(version=version)
    except VersionNotFound as error:
        error.error_class = "DELTA_CANNOT_RESTORE_TABLE_VERSION"
        raise


def _too_late(asked: str, latest: str) -> InvalidCommand:
    return InvalidCommand(
        "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
        f"Cannot restore table to timestamp ({asked}) as it is after the latest version "
        f"available. Please use a timestamp before ({latest})",
    )


def _too_early(asked: str, why: str) -> InvalidCommand:
    return InvalidCommand(
        "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
        f"Cannot restore table to timestamp ({asked}) as it is before the earliest version "
        f"available: {why}",
    )


class _Restore:
    """One attempt, in a transaction at the latest version."""

    def __init__(self, transaction: TransactionHandle, found: Scan, spark: SparkSession) -> None:
        self._transaction = transaction
        self._head = transaction.head
        self._found = found
        self._spark = spark
        metadata = _restored(found.metadata, self._head.metadata)
        layouts = [
            TableLayout.of(name=self._head.name, location=self._head.location, metadata=each)
            for each in (self._head.metadata, metadata)
        ]
        for layout in layouts:
            check_removable(layout)
        before, self._layout = layouts
        check_writable(self._layout, self._head.protocol)
        modes = [each.properties.column_mapping_mode for each in layouts]
        if modes[0] != modes[1]:
            raise InvalidCommand(
                "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
                f"Changing column mapping mode from '{modes[0]}' to '{modes[1]}' is not supported: "
                f"version {found.version} of table {before.name} has the one, the latest the other",
            )
        self._metadata = metadata
        physical = clustering_at(transaction.table, found.version, found.protocol)
        self._clustering = columns_at(self._layout.schema, physical)

    def run(self, parameters: Mapping[str, str | None], *, user_metadata: str | None) -> Restored:
        transaction = self._transaction
        live = transaction.filter_files()
        then = self._found.files
        restored = without(then, live)
        removed = without(live, then)
        with Passes(self._spark, operation=_OPERATION, table=self._head.name) as passes:
            return self._restored(removed, restored, passes, parameters, user_metadata)

    def _restored(
        self,
        removed: Sequence[DataFile],
        restored: Sequence[DataFile],
        passes: Passes,
        parameters: Mapping[str, str | None],
        user_metadata: str | None,
    ) -> Restored:
        transaction, then = self._transaction, self._found.files
        if not ignores_missing(self._spark):
            if restored:
                _check_no_vacuum(transaction.table, self._head, self._found.timestamp)
            what = f"version {self._found.version} of table {self._head.name}"
            passes.looks_for(len(restored))
            check_there(restored, store_at(self._layout.location, self._spark), what=what)
        metrics = {
            "tableSizeAfterRestore": size_of(then),
            "numOfFilesAfterRestore": len(then),
            "numRemovedFiles": len(removed),
            "numRestoredFiles": len(restored),
            "removedFilesSize": size_of(removed),
            "restoredFilesSize": size_of(restored),
        }
        features = implied_features(self._found.protocol) - implied_features(self._head.protocol)
        if features:
            transaction.action(with_features(self._head.protocol, features))
        if self._clustering or supports(self._head.protocol, CLUSTERING):
            transaction.action(domain_of(self._clustering))
        transaction.action(self._metadata)
        changes: dict[str, object] = {"dataChange": True}
        if _gives_other_ids(self._found.metadata, self._metadata):
            changes |= {"baseRowId": None, "defaultRowCommitVersion": None}
        passes.commits(len(removed) + len(restored))
        receipt = transaction.commit_large(
            chain(transaction.removals(removed), (with_fields(file, changes) for file in restored)),
            _OPERATION,
            parameters=parameters,
            metrics={name: str(number) for name, number in metrics.items()},
            user_metadata=metadata_of(user_metadata, self._spark),
        )
        return Restored(receipt=receipt, version=self._found.version, metrics=metrics)


def _check_no_vacuum(table: TableHandle, head: TableVersion, since_ms: int) -> None:
    """Raise `InvalidRequest` while a vacuum may yet delete files that are there now: it has begun
    and not ended, as far as the history tells, and its retention is shorter than the time since
    `since_ms`, when all of the files were live. One that was cut off is forgotten after two days,
    and so is one that failed: the store may get to its last deletes later.

    An end does not say which vacuum's it is. So it counts as that of the last start before, and
    where a start is left without one, any that came since may be the one."""
    began_ms = time() * 1000 - _VACUUM_MS
    ends, may_delete = 0, False
    last = head.version
    while last >= 0:
        commits = table.history(limit=_COMMITS, to_version=last)
        for commit in commits:
            if commit.timestamp < began_ms:
                return
            if commit.operation == VACUUM_END:
                ends += commit.operation_parameters.get("status") == _COMPLETED
            if commit.operation != VACUUM_START:
                continue
            kept_since_ms = commit.timestamp - _retention_ms(commit.operation_parameters)
            may_delete = may_delete or kept_since_ms > since_ms
            if ends:
                ends -= 1
            elif may_delete:
                raise InvalidRequest(
                    f"a vacuum of table {head.name} began at version {commit.version} and has not "
                    "ended: it may delete files that RESTORE would add again",
                    code=Code.INVALID_REQUEST,
                    definite=True,
                    hint="restore once the history has its VACUUM END; where it was cut off or "
                    "failed, in two days, or with spark.sql.files.ignoreMissingFiles once nothing "
                    "deletes files any more",
                )
        if len(commits) < _COMMITS:
            return
        last = commits[-1].version - 1


def _retention_ms(parameters: Mapping[str, Any]) -> int:
    """Of a vacuum, by its start; 0 where that does not say."""
    for name in ("specifiedRetentionMillis", "defaultRetentionMillis"):
        text = str(parameters.get(name))
        if text.isdecimal():
            return int(text)
    return 0


def _restored(then: Metadata, now: Metadata) -> Metadata:
    """The metadata of a version, with what it cannot take back of the latest."""
    configuration = {
        name: text for name, text in then.configuration.items() if name not in _OF_ROW_IDS
    }
    configuration |= {
        name: now.configuration[name] for name in PERMANENT if name in now.configuration
    }
    marks = [each.configuration.get(_MAX_COLUMN_ID) for each in (then, now)]
    if marks[0] is not None:
        configuration[_MAX_COLUMN_ID] = str(max(int(mark) for mark in marks if mark is not None))
    changes = {
        "id": now.id,
        "schemaString": _with_marks(then.schema_string, now.schema_string),
        "configuration": configuration,
    }
    return with_fields(then, changes)


def _gives_other_ids(then: Metadata, restored: Metadata) -> bool:
    """Whether row ids may have begun anew since: the feature was dropped, and the ids that files
    had are, or will be, those of other rows. Of a version without the column's name, whose ids
    nobody could read, nothing tells."""
    known = then.configuration.get(ROW_ID_COLUMN)
    return known is None or known != restored.configuration.get(ROW_ID_COLUMN)


def _with_marks(then: str, now: str) -> str:
    """The schema `then`, in which identity columns have come as far as in either one, in the
    direction and the steps of `then`."""
    schema = json.loads(then)
    # A column may have had another name.
    latest = {physical_name(field): identity_of(field) for field in parse_schema(now).fields}
    moved = False
    for old, field in zip(parse_schema(then).fields, schema["fields"], strict=True):
        own, known = identity_of(old), latest.get(physical_name(old))
        if own is None or known is None or known.mark is None:
            continue
        begun = own.start - own.step if own.mark is None else own.mark
        ahead = -((begun - known.mark) // own.step)
        if ahead > 0:
            field["metadata"][IDENTITY_HIGH_WATER_MARK] = begun + ahead * own.step
            moved = True
    return json.dumps(schema) if moved else then
