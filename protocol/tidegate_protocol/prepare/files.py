"""What a transaction's file actions must be (Delta: prepareCommit and commitImpl's checks)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import some
from tidegate_protocol.features import table_features
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log import paths
from tidegate_protocol.log.actions import (
    Z85_UUID_LENGTH,
    Action,
    Add,
    AddCDCFile,
    DeletionVector,
    Metadata,
    PartitionValues,
    Remove,
)
from tidegate_protocol.log.spooled import SpooledAdd, SpooledRemove
from tidegate_protocol.log.statistics import FileStatistics, InvalidStatistics, is_statistics
from tidegate_protocol.prepare.table import TableAfter
from tidegate_protocol.proposal import operations
from tidegate_protocol.proposal.transaction import Invalid, ReadState
from tidegate_protocol.schema.partition_values import (
    InvalidValue,
    UnrepresentableValue,
    parse_value,
)
from tidegate_protocol.schema.table_schema import Field, parse_schema, physical_name


def check_files(
    actions: Sequence[Action], *, table: TableAfter, read: ReadState, operation: str
) -> Invalid | None:
    """The first thing wrong with the file actions, or None.

    `table` is the table as the transaction leaves it, `read` as it was read.
    """
    check = _FileCheck(table=table, read=read, operation=operation)
    for index, action in enumerate(actions):
        invalid = check.action(action)
        if invalid is not None:
            return Invalid(
                code=invalid.code, detail=invalid.detail, action_index=index, path=invalid.path
            )
    return check_duplicates(actions)


def check_duplicates(actions: Sequence[Action]) -> Invalid | None:
    """A path is added at most once and removed at most once, and what is added again is another
    logical file than what is removed: same path, other deletion vector."""
    files = [paths.identity(a.path) for a in actions if isinstance(a, Add | Remove)]
    if len(files) < 2 or len(set(files)) == len(files):
        return None
    added: dict[str, str | None] = {}
    removed: dict[str, str | None] = {}
    for index, action in enumerate(actions):
        if not isinstance(action, Add | Remove):
            continue
        path, vector = paths.identity(action.path), _vector_id(action)
        mine, other = (added, removed) if isinstance(action, Add) else (removed, added)
        if path in mine:
            what = "added" if mine is added else "removed"
            detail = f"{action.path!r} is {what} twice in one commit"
        elif path in other and other[path] == vector:
            detail = f"{action.path!r} is added and removed in one commit"
        else:
            mine[path] = vector
            continue
        return Invalid(
            code=Code.DUPLICATE_ACTION, detail=detail, action_index=index, path=action.path
        )
    return None


def check_adds_alone(actions: Sequence[Action]) -> Invalid | None:
    """What `check_files` finds wrong with the added files whatever the table is."""
    for index, action in enumerate(actions):
        # What a spooled action is in itself was seen when it was spooled.
        if not isinstance(action, Add) or isinstance(action, SpooledAdd):
            continue
        invalid = _check_add_alone(action)
        if invalid is not None:
            return replace(invalid, action_index=index)
    return check_duplicates(actions)


def _check_add_alone(add: Add) -> Invalid | None:
    vector = add.deletion_vector
    statistics = _statistics_of(add)
    return (
        _check_path(add.path, paths.check_anywhere)
        or _check_numbers(add)
        or (statistics if isinstance(statistics, Invalid) else None)
        or (None if vector is None else _check_vector(add.path, vector))
    )


class _FileCheck:
    """The checks of single file actions against one table."""

    def __init__(self, *, table: TableAfter, read: ReadState, operation: str) -> None:
        self._table = table
        self._operation = operation
        self._columns = {physical_name(column): column for column in _partition_fields(table)}
        self._keys = frozenset(self._columns)
        if read.metadata is None or read.metadata is table.metadata:
            old = self._keys
        else:
            old = _partition_keys(read.metadata)
        # A commit that changes the partitioning removes files of the old one.
        self._removable_keys = (self._keys, old)
        self._append_only = table.properties.append_only or (
            read.metadata is not None
            and read.metadata is not table.metadata
            and TableProperties.parse(read.metadata.configuration).append_only
        )
        # A commit's files share few partition values; each is parsed once.
        self._right_values: set[tuple[str, str | None]] = set()

    def action(self, action: Action) -> Invalid | None:
        # What a spooled action is in itself was seen when it was spooled.
        match action:
            case SpooledAdd():
                return self._partition(action)
            case Add():
                return (
                    _check_path(action.path, paths.check_anywhere)
                    or _check_numbers(action)
                    or self._partition(action)
                    or self._statistics_and_vector(action)
                )
            case SpooledRemove():
                return self._remove(action)
            case Remove():
                return _check_path(action.path, paths.check_anywhere) or self._remove(action)
            case AddCDCFile():
                return _check_path(action.path, paths.check) or self._change_data(action)
            case _:
                return None

    def _partition(self, add: Add) -> Invalid | None:
        if add.partition_values.keys() != self._keys:
            return self._mismatch(add.path, add.partition_values)
        for value in add.partition_values.items():
            if value in self._right_values:
                continue
            key, text = value
            wrong = _wrong_partition_value(self._columns[key], text)
            if wrong is not None:
                return Invalid(
                    code=Code.PARTITION_MISMATCH, detail=f"{add.path!r}: {wrong}", path=add.path
                )
            self._right_values.add(value)
        return None

    def _mismatch(self, path: str, values: PartitionValues) -> Invalid:
        return Invalid(
            code=Code.PARTITION_MISMATCH,
            detail=f"{path!r} has partition values of {some(values)}; "
            f"expected exactly {some(self._keys)}",
            path=path,
        )

    def _statistics_and_vector(self, add: Add) -> Invalid | None:
        if add.deletion_vector is None and (add.stats is None or is_statistics(add.stats)):
            return None
        statistics = _statistics_of(add)
        if isinstance(statistics, Invalid):
            return statistics
        if add.deletion_vector is None:
            return None
        return _check_vector(add.path, add.deletion_vector) or self._vector(add, statistics)

    def _vector(self, add: Add, statistics: FileStatistics | None) -> Invalid | None:
        allowed = table_features.supports(self._table.protocol, "deletionVectors") and (
            self._table.properties.deletion_vectors
            or operations.updates_files_in_place(self._operation)
        )
        if not allowed:
            return Invalid(
                code=Code.DELETION_VECTORS_DISALLOWED,
                detail=f"{add.path!r} has a deletion vector; the table needs the feature "
                "deletionVectors and the property delta.enableDeletionVectors = true",
                path=add.path,
            )
        if statistics is None or statistics.num_records is None:
            return Invalid(
                code=Code.DELETION_VECTOR_MISSING_NUM_RECORDS,
                detail=f"{add.path!r} has a deletion vector but no numRecords in its stats",
                path=add.path,
            )
        if statistics.tight_bounds and not operations.may_keep_tight_bounds(self._operation):
            return Invalid(
                code=Code.DELETION_VECTOR_TIGHT_BOUNDS,
                detail=f"{add.path!r} has a deletion vector; its stats must say "
                "tightBounds = false",
                path=add.path,
            )
        return None

    def _remove(self, remove: Remove) -> Invalid | None:
        if self._append_only and remove.data_change:
            return Invalid(
                code=Code.APPEND_ONLY,
                detail=f"{remove.path!r} cannot be removed: the table has delta.appendOnly = true",
                path=remove.path,
            )
        for name, value in (
            ("deletionTimestamp", remove.deletion_timestamp),
            ("size", remove.size),
        ):
            if value is not None and value < 0:
                return _invalid(remove.path, f"{name} is {value}")
        values = remove.partition_values
        if values and values.keys() not in self._removable_keys:
            return self._mismatch(remove.path, values)
        vector = remove.deletion_vector
        return None if vector is None else _check_vector(remove.path, vector)

    def _change_data(self, cdc: AddCDCFile) -> Invalid | None:
        if not table_features.supports(self._table.protocol, "changeDataFeed"):
            return Invalid(
                code=Code.UNSUPPORTED_FEATURE,
                detail=f"{cdc.path!r} is a change data file; the table's protocol does not have "
                "the feature changeDataFeed",
                path=cdc.path,
            )
        if not self._table.properties.change_data_feed:
            return _invalid(
                cdc.path, "is a change data file, but delta.enableChangeDataFeed is not true"
            )
        if cdc.data_change:
            return _invalid(cdc.path, "is a change data file; expected dataChange = false")
        if cdc.size < 0:
            return _invalid(cdc.path, f"size is {cdc.size}")
        if cdc.partition_values.keys() != self._keys:
            return self._mismatch(cdc.path, cdc.partition_values)
        return None


def _partition_keys(metadata: Metadata) -> frozenset[str]:
    schema = parse_schema(metadata.schema_string)
    fields = [schema.field(name) for name in metadata.partition_columns]
    return frozenset(physical_name(field) for field in fields if field is not None)


def _partition_fields(table: TableAfter) -> list[Field]:
    fields = [table.schema.field(name) for name in table.metadata.partition_columns]
    return [field for field in fields if field is not None]


def _wrong_partition_value(column: Field, text: str | None) -> str | None:
    try:
        value = parse_value(column.type, text)
    except UnrepresentableValue:
        return None
    except InvalidValue as error:
        return f"partition column {column.name!r}: {error}"
    if value is None and not column.nullable:
        return f"partition column {column.name!r} is NOT NULL and its value is null"
    return None


def _check_numbers(add: Add) -> Invalid | None:
    if add.size <= 0:
        return _invalid(add.path, f"size is {add.size}; expected a file with at least a byte")
    if add.modification_time < 0:
        return _invalid(add.path, f"modificationTime is {add.modification_time}")
    return None


def _statistics_of(add: Add) -> FileStatistics | Invalid | None:
    if add.stats is None:
        return None
    try:
        return FileStatistics.parse(add.stats)
    except InvalidStatistics as error:
        return _invalid(add.path, f"stats: {error}")


def _check_path(path: str, check: Callable[[str], None]) -> Invalid | None:
    try:
        check(path)
    except paths.InvalidPath as error:
        return Invalid(code=Code.INVALID_PATH, detail=str(error), path=path)
    return None


def _check_vector(path: str, vector: DeletionVector) -> Invalid | None:
    if vector.storage_type not in ("u", "i", "p"):
        return Invalid(
            code=Code.INVALID_PATH,
            detail=f"{path!r}: a deletion vector of storage type {vector.storage_type!r}; "
            "expected 'u' (a file inside the table), 'i' (inline) or 'p' (an absolute path)",
            path=path,
        )
    if vector.storage_type == "p":
        found = vector.path_or_inline_dv
        invalid = _check_path(found, paths.check_anywhere)
        if invalid is None and not paths.is_absolute(found):
            detail = f"{found!r} is not absolute, as the path of a deletion vector of type 'p' is"
            invalid = Invalid(code=Code.INVALID_PATH, detail=detail)
        if invalid is not None:
            return replace(invalid, detail=f"{path!r}: {invalid.detail}", path=path)
    if vector.storage_type == "u" and not vector.is_inside:
        return Invalid(
            code=Code.INVALID_PATH,
            detail=f"{path!r}: {vector.path_or_inline_dv!r} does not name a deletion vector "
            f"file; expected a prefix and {Z85_UUID_LENGTH} characters",
            path=path,
        )
    numbers = (vector.size_in_bytes, vector.cardinality, vector.offset or 0)
    if min(numbers) < 0:
        return _invalid(path, "the deletion vector has a negative size, offset or cardinality")
    return None


def _vector_id(action: Add | Remove) -> str | None:
    return None if action.deletion_vector is None else action.deletion_vector.unique_id


def _invalid(path: str, detail: str) -> Invalid:
    return Invalid(code=Code.INVALID_ACTION, detail=f"{path!r}: {detail}", path=path)
