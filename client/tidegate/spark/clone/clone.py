"""CLONE: a new table, or what takes the place of one, in one commit."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from time import monotonic
from typing import Generic, TypeVar
from uuid import uuid4

from pyspark.sql import SparkSession

from tidegate.active import check_none_active
from tidegate.errors import TableAlreadyExists
from tidegate.handle import TableHandle
from tidegate.models import DataFile
from tidegate.spark.application import table_of
from tidegate.spark.clone.deep import deep_files
from tidegate.spark.clone.definition import CloneDefinition, defined
from tidegate.spark.clone.shallow import shallow_files
from tidegate.spark.clone.source import CloneSource
from tidegate.spark.commands.creation import create_by, head_named
from tidegate.spark.commands.logical_files import without
from tidegate.spark.commands.making import Making, check_name, check_place, exists, missing
from tidegate.spark.commands.target import size_of
from tidegate.spark.data_files.staging import (
    TransactionFolder,
    created_with_files,
    private_folder,
)
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.session_settings import metadata_of
from tidegate.spark.storage.locations import place_url
from tidegate.spark.storage.opening import store_at
from tidegate.spark.tables.layout import TableLayout, new_folder
from tidegate.spark.tables.refusals import check_writable
from tidegate.spark.write.repeats import repeated
from tidegate.spark.write.write import check_removable
from tidegate.transaction_handle import TransactionHandle
from tidegate.wire.connection import Connection
from tidegate.wire.tables import default_location

T = TypeVar("T", bound=TableHandle)
_OPERATION = "CLONE"


class CloneKind(Enum):
    """What becomes of the source's files, by Delta's words."""

    SHALLOW = "SHALLOW"
    DEEP = "DEEP"


@dataclass(frozen=True, kw_only=True)
class Cloned(Generic[T]):
    """The clone, the version that it was made as, which is None where there was nothing to do, and
    Delta's metrics by its names."""

    table: T
    version: int | None
    metrics: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a clone is to be: the name, where it may stand in the place of a table, and what of its
    source it is not to have."""

    name: str
    kind: CloneKind
    making: Making = Making.CREATE
    properties: Mapping[str, str]
    location: str | None = None


def clone(
    connection: Connection,
    spark: SparkSession,
    source: Callable[[], CloneSource],
    target: Target,
    *,
    handle: type[T],
    user_metadata: str | None = None,
    retries: int = 0,
) -> Cloned[T]:
    """Make the target what the source is: columns, partitioning, properties, constraints and rows.
    Its comment, and in the place of a table also id and history, stay its own. It is
    catalog-managed where the source is, or where the table is whose place it takes.

    The service chooses a new one's location unless one is given. Row ids are new. The clone is
    handed out as a `handle`.

    Raises `InvalidCommand`, `UnsupportedTable` for what this client does not write, what `source`
    raises, `InvalidProposal` for a table to replace that is append-only, and what
    `Lake.create_table` and `Transaction.commit` raise. Where it fails, no version and no file of a
    clone stays. After a `ConflictError` of a table that is replaced it is done anew, `retries`
    times at most.
    """
    user_metadata = metadata_of(user_metadata, spark)
    check_name(target.name, of="the target of CLONE", error_class="DELTA_INVALID_CLONE_PATH")
    found = _found(connection, target.name, handle)
    match target.making:
        case Making.CREATE if found is not None:
            raise exists(target.name, found)
        case Making.CREATE_IF_NOT_EXISTS if found is not None:
            return Cloned(table=found, version=None, metrics={})
        case Making.REPLACE if found is None:
            raise missing(target.name)
    if found is None:
        return _created(
            connection, spark, source(), target, handle=handle, user_metadata=user_metadata
        )
    if target.location is not None:
        check_place(found, place_url(target.location))
    check_none_active(found.id)

    def once() -> Cloned[T]:
        return _replaced(found, spark, source(), target, user_metadata=user_metadata)

    return repeated(once, retries=retries, clock_s=monotonic)


def _found(connection: Connection, name: str, handle: type[T]) -> T | None:
    head = head_named(connection, name)
    return None if head is None else handle(connection, head)


def _created(
    connection: Connection,
    spark: SparkSession,
    source: CloneSource,
    target: Target,
    *,
    handle: type[T],
    user_metadata: str | None,
) -> Cloned[T]:
    definition, managed = defined(source, target.properties), source.catalog_managed
    location = None if target.location is None else place_url(target.location)

    def raced(error: TableAlreadyExists) -> Cloned[T]:
        faster = _found(connection, target.name, handle)
        if faster is None:
            raise error
        if target.making is Making.CREATE_IF_NOT_EXISTS:
            return Cloned(table=faster, version=None, metrics={})
        raise exists(target.name, faster) from error

    def create(files: Sequence[DataFile]) -> Cloned[T]:
        metrics = _metrics(source, target.kind, files)
        head, told = create_by(
            connection,
            _OPERATION,
            {"name": target.name} | definition.body(location=location, catalog_managed=managed),
            [*files, *definition.actions],
            parameters=_parameters(source),
            metrics=_texts(metrics),
            user_metadata=user_metadata,
        )
        for warning in told:
            warnings.warn(warning, stacklevel=2)
        return Cloned(table=handle(connection, head), version=0, metrics=metrics)

    try:
        if target.kind is CloneKind.SHALLOW:
            # Its place is the service's to say.
            _check_target(definition, source.files, target.name, location or source.location)
            return create(shallow_files(source, location, spark))
        # Its files are there before it is.
        place = location or default_location(connection, target.name)
        layout = _check_target(definition, source.files, target.name, place)
        folder = TransactionFolder(layout, new_folder(str(uuid4())), store_at(place, spark))
        return created_with_files(
            folder,
            lambda: deep_files(source, folder, spark, now_ms=connection.now_ms()),
            create,
        )
    except TableAlreadyExists as error:
        return raced(error)


def _replaced(
    found: T,
    spark: SparkSession,
    source: CloneSource,
    target: Target,
    *,
    user_metadata: str | None,
) -> Cloned[T]:
    if source.table_id == found.id:
        return _onto_itself(found, source, target)
    transaction = TransactionHandle(table_of(found, spark))
    head = transaction.head
    definition = defined(source, target.properties, before=head)
    check_removable(TableLayout.of(name=head.name, location=head.location, metadata=head.metadata))
    layout = _check_target(definition, source.files, head.name, head.location)
    if definition.protocol != head.protocol:
        transaction.action(definition.protocol)
    transaction.action(definition.metadata)
    for action in definition.actions:
        transaction.action(action)
    live = transaction.filter_files()
    with private_folder(transaction, layout, spark) as folder:
        if target.kind is CloneKind.SHALLOW:
            files = shallow_files(source, head.location, spark)
        else:
            now_ms = found.connection.now_ms()
            files = deep_files(source, folder, spark, now_ms=now_ms)
        removed = without(live, files)
        metrics = _metrics(source, target.kind, files, removed)
        receipt = transaction.commit_large(
            chain(transaction.removals(removed), without(files, live)),
            _OPERATION,
            parameters=_parameters(source),
            metrics=_texts(metrics),
            user_metadata=user_metadata,
        )
    return Cloned(table=found, version=receipt.version, metrics=metrics)


def _onto_itself(found: T, source: CloneSource, target: Target) -> Cloned[T]:
    """A table is a shallow clone of itself already."""
    is_same = source.is_latest and not target.properties
    if target.kind is CloneKind.DEEP or not is_same:
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE",
            f"You tried to REPLACE an existing table ({found.name}) with CLONE of itself",
            hint="RESTORE brings an earlier version back; ALTER TABLE sets properties",
        )
    metrics = _metrics(source, target.kind, source.files)
    return Cloned(table=found, version=None, metrics=metrics)


def _check_target(
    definition: CloneDefinition, files: Sequence[DataFile], name: str, location: str
) -> TableLayout:
    """The clone's layout. Raises `UnsupportedTable`, and `InvalidCommand` for deletion vectors in a
    table that is not to have any."""
    layout = TableLayout.of(name=name, location=location, metadata=definition.metadata)
    check_writable(layout, definition.protocol)
    marked = next((file for file in files if file.deletion_vector is not None), None)
    if marked is not None and not layout.properties.deletion_vectors:
        raise InvalidCommand(
            "DELTA_ADDING_DELETION_VECTORS_DISALLOWED",
            f"table {name} is to have delta.enableDeletionVectors off, and the file {marked.path} "
            "of its source has a deletion vector",
            hint="purge the source (REORG TABLE ... APPLY (PURGE)) before",
        )
    return layout


def _parameters(source: CloneSource) -> dict[str, object]:
    return {"source": source.name, "sourceVersion": source.version}


def _metrics(
    source: CloneSource,
    kind: CloneKind,
    files: Sequence[DataFile],
    removed: Sequence[DataFile] = (),
) -> dict[str, int]:
    copied = files if kind is CloneKind.DEEP else ()
    return {
        "sourceTableSize": size_of(source.files),
        "sourceNumOfFiles": len(source.files),
        "numRemovedFiles": len(removed),
        "numCopiedFiles": len(copied),
        "removedFilesSize": size_of(removed),
        "copiedFilesSize": size_of(copied),
    }


def _texts(metrics: Mapping[str, int]) -> dict[str, str]:
    return {name: str(number) for name, number in metrics.items()}
