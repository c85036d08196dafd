"""Iceberg compatibility (PROTOCOL.md, "Iceberg Compatibility"; Delta: IcebergCompat.scala).

The table's log must stay one that can be turned into Iceberg's. What the files hold (partition
values among their columns, timestamps as int64) is the writers' duty.
"""

from collections.abc import Iterator, Sequence

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features import table_features
from tidegate_protocol.features.column_mapping import NESTED_IDS
from tidegate_protocol.features.known import CURRENT_DEFAULT
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.features.row_tracking import row_count
from tidegate_protocol.features.type_widening import is_widening_in_iceberg, type_changes
from tidegate_protocol.log.actions import Action, Add
from tidegate_protocol.prepare.table import TableAfter
from tidegate_protocol.proposal.transaction import Invalid, Proposal, ReadState
from tidegate_protocol.schema.data_types import (
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    StructType,
    physical_name,
    type_name,
    walk,
)

_SWITCHES = {
    "delta.enableIcebergCompatV1": 1,
    "delta.enableIcebergCompatV2": 2,
    "delta.enableIcebergCompatV3": 3,
}
_LITERAL_STARTS = "'\"+-.0123456789"
_LITERAL_WORDS = ("null", "true", "false", "date", "timestamp", "x'", "interval")


def check_iceberg(table: TableAfter, *, proposal: Proposal, read: ReadState) -> Invalid | None:
    """What keeps the transaction from a table that is compatible with Iceberg; None for any
    other table."""
    before = table.properties
    versions = _versions(table.properties)
    if table.own_metadata is not None:
        known = {} if read.metadata is None else read.metadata.configuration
        before = TableProperties.parse(known)
    elif not versions:
        return None
    if 3 in _versions(before) and 3 not in versions:
        return _invalid("delta.enableIcebergCompatV3 cannot be switched off")
    if not versions:
        return None
    if len(versions) > 1:
        return _invalid(f"the versions {versions} of Iceberg compatibility exclude each other")
    (version,) = versions
    reason = (
        _about_protocol(version, table, proposal.operation, before)
        or _about_partitioning(table, read)
        or _about_schema(version, table)
        or _about_files(proposal.actions)
    )
    return None if reason is None else _invalid(f"Iceberg compatibility V{version} {reason}")


def _versions(properties: TableProperties) -> list[int]:
    return [version for name, version in _SWITCHES.items() if name in properties.enabled]


def _about_protocol(
    version: int, table: TableAfter, operation: str, before: TableProperties
) -> str | None:
    if not table.properties.column_mapping:
        return "needs delta.columnMapping.mode to be 'name' or 'id'"
    if version == 3:
        switched_on = 3 not in _versions(before)
        if switched_on and before.row_tracking and operation == "SET TBLPROPERTIES":
            return "cannot be switched on over row ids that are there already"
        return None if table.properties.row_tracking else "needs delta.enableRowTracking"
    if not table_features.supports(table.protocol, "deletionVectors"):
        return None
    # This one command writes the files anew as it switches deletion vectors off.
    until_now = before.deletion_vectors and operation != "REORG TABLE UPGRADE UNIFORM"
    if version == 1 or table.properties.deletion_vectors or until_now:
        return "excludes deletion vectors"
    return None


def _about_partitioning(table: TableAfter, read: ReadState) -> str | None:
    before = () if read.metadata is None else read.metadata.partition_columns
    if before and before != table.metadata.partition_columns:
        return f"keeps the partition columns as they are: {list(before)}"
    return None


def _about_schema(version: int, table: TableAfter) -> str | None:
    for path, field, _ in walk(table.schema):
        name = ".".join(path)
        refused = next((t for t in _types(field.type) if _is_refused(version, t)), None)
        if refused is not None:
            return f"has no type like {type_name(refused)}, which column {name!r} holds"
        for change in type_changes(field):
            if not is_widening_in_iceberg(change.from_type, change.to_type):
                return (
                    f"has no way from {type_name(change.from_type)} to "
                    f"{type_name(change.to_type)}, which column {name!r} went"
                )
        if version > 1 and not _has_nested_ids(field.type, physical_name(field), field.metadata):
            return f"needs {NESTED_IDS} for the elements, keys and values of column {name!r}"
    if version == 3:
        for field in table.schema.fields:
            if not _is_literal(field.metadata.get(CURRENT_DEFAULT, "NULL")):
                return f"takes literals only as defaults, which column {field.name!r} has not"
    return None


def _about_files(actions: Sequence[Action]) -> str | None:
    for action in actions:
        if isinstance(action, Add) and row_count(action) is None:
            return f"needs numRecords in the stats of {action.path!r}"
    return None


def _types(data_type: DataType) -> Iterator[DataType]:
    """The type and those inside, but for the fields of structs."""
    yield data_type
    match data_type:
        case ArrayType(element=element):
            yield from _types(element)
        case MapType(key=key, value=value):
            yield from _types(key)
            yield from _types(value)


def _is_refused(version: int, data_type: DataType) -> bool:
    if version == 1:
        return isinstance(data_type, ArrayType | MapType) or data_type == VOID
    return data_type == VOID or (version == 2 and data_type == VARIANT)


def _has_nested_ids(data_type: DataType, prefix: str, metadata: object) -> bool:
    assert isinstance(metadata, dict)
    ids = metadata.get(NESTED_IDS, {})

    def complete(inner: DataType, path: str) -> bool:
        match inner:
            case StructType():
                return True
            case ArrayType(element=element):
                parts = {"element": element}
            case MapType(key=key, value=value):
                parts = {"key": key, "value": value}
            case _:
                return True
        return all(
            f"{path}.{name}" in ids and complete(part, f"{path}.{name}")
            for name, part in parts.items()
        )

    return complete(data_type, prefix)


def _is_literal(default: object) -> bool:
    text = str(default).strip().lower()
    return text[:1] in _LITERAL_STARTS or text.startswith(_LITERAL_WORDS)


def _invalid(detail: str) -> Invalid:
    return Invalid(code=Code.INVALID_ACTION, detail=detail)
