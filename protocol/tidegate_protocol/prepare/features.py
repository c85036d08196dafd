"""What the table's features ask of a transaction that changes metadata or protocol.

The table after the transaction comes in as its actions say, and goes out as it will be: completed
where a feature leaves no choice, refused where one forbids it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import UUID, uuid5

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features import (
    column_mapping,
    computed_columns,
    table_features,
    type_widening,
)
from tidegate_protocol.features.known import CHECKPOINT_PROTECTION_FEATURE, ROW_TRACKING
from tidegate_protocol.features.properties import (
    CHECKPOINT_PROTECTION,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
    TableProperties,
)
from tidegate_protocol.features.row_tracking import is_suspended
from tidegate_protocol.log.actions import Add, AddCDCFile, Metadata, Remove
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.prepare import schema_change
from tidegate_protocol.prepare.expressions import check_expressions, new_rules
from tidegate_protocol.prepare.feature_removal import (
    check_left_over,
    check_removal,
    demands_of,
    protects_history,
)
from tidegate_protocol.prepare.iceberg_compat import check_iceberg
from tidegate_protocol.prepare.manifests import check_manifests
from tidegate_protocol.prepare.table import TableAfter
from tidegate_protocol.proposal import operations
from tidegate_protocol.proposal.demands import Demand, FileDemand
from tidegate_protocol.proposal.transaction import Invalid, Proposal, ReadState
from tidegate_protocol.scan.predicates import go_on
from tidegate_protocol.schema.table_schema import (
    InvalidSchema,
    StructType,
    feed_columns,
    parse_schema,
    physical_name,
)

_NAMES = UUID("0a1c7c4e-55a4-4a35-b6e3-7f0b8f6d9f20")
_MATERIALIZED = {
    ROW_ID_COLUMN: "_row-id-col-",
    ROW_COMMIT_VERSION_COLUMN: "_row-commit-version-col-",
}


def complete_features(
    table: TableAfter,
    *,
    proposal: Proposal,
    read: ReadState,
    pause: Callable[[], None] = go_on,
) -> TableAfter | Invalid:
    """The table after the proposal as its features complete it, or what they forbid. `pause` is
    that of `prepare.prepare`."""
    try:
        checked = _protocol(table, proposal=proposal, read=read)
        if not isinstance(checked, Invalid) and checked.own_metadata is not None:
            checked = _metadata(checked, proposal=proposal, read=read, pause=pause)
        if not isinstance(checked, Invalid):
            checked = check_manifests(checked, read=read)
        if isinstance(checked, Invalid):
            return checked
        if checked.properties.row_tracking and is_suspended(checked.protocol, checked.metadata):
            return _invalid(
                "delta.enableRowTracking and delta.rowTrackingSuspended are both true; one of them "
                "has to go"
            )
        return check_iceberg(checked, proposal=proposal, read=read) or checked
    except InvalidSchema as error:
        return Invalid(code=Code.INVALID_SCHEMA, detail=str(error))


def _protocol(table: TableAfter, *, proposal: Proposal, read: ReadState) -> TableAfter | Invalid:
    """Where features are dropped: that they may be, and the history that still needs them."""
    if read.protocol is None or table.own_protocol is None:
        return table
    dropped = table_features.added_features(read.protocol, table.protocol)
    if proposal.operation != operations.DROP_FEATURE:
        return table
    invalid = check_removal(
        read.protocol, table.protocol, proposal.operation_parameters
    ) or check_left_over(dropped, table, _before(read)[1])
    if invalid is not None:
        return invalid
    if protects_history(dropped) and table_features.supports(
        table.protocol, CHECKPOINT_PROTECTION_FEATURE
    ):
        table = _configured(table, {CHECKPOINT_PROTECTION: str(read.version + 1)})
    return replace(table, demands=(*table.demands, *demands_of(dropped)))


def _metadata(
    table: TableAfter, *, proposal: Proposal, read: ReadState, pause: Callable[[], None]
) -> TableAfter | Invalid:
    before, properties_before, schema_before = _before(read)
    replaces = operations.replaces_table(proposal.operation)
    brings_back = operations.brings_columns_back(proposal.operation)
    column_mapping.check_change(
        before,
        properties_before,
        schema_before,
        properties=table.properties,
        schema=table.schema,
        replaces=replaces,
        removes_mapping=proposal.operation == operations.REMOVE_COLUMN_MAPPING,
        brings_back=brings_back,
    )
    if before is None or before.schema_string != table.metadata.schema_string:
        computed_columns.check_columns(table.schema)
        type_widening.check_recorded(table.schema)
    overwrites = operations.overwrites_schema(proposal.operation, proposal.operation_parameters)
    if column_mapping.is_removed(properties_before, table.properties, table.schema):
        if not replaces and column_mapping.asks_for_rewriting(properties_before, schema_before):
            table = replace(table, demands=(*table.demands, FileDemand.REWRITTEN))
        schema_before = column_mapping.without_marks(schema_before)
    if not overwrites:
        computed_columns.check_identity_change(
            schema_before,
            table.schema,
            sets_marks=not operations.changes_data(proposal.operation),
        )
        type_widening.check_change(
            schema_before,
            table.schema,
            supported=_knows_widening(table),
            enabled=table.properties.type_widening,
        )
        if not (properties_before.column_mapping and table.properties.column_mapping):
            schema_change.check_kept(schema_before, table.schema)
    if not brings_back:
        change = (properties_before, schema_before, table.properties, table.schema)
        check_expressions(*change, pause=pause)
        if before is not None:
            of_rows = _of_rows(*change, proposal=proposal, overwrites=overwrites)
            table = replace(table, demands=(*table.demands, *of_rows))
    invalid = _check_change_data(table, properties_before, schema_before, proposal=proposal)
    if invalid is not None:
        return invalid
    return _with_row_tracking(table, before, properties_before, read_version=read.version)


def _of_rows(
    properties_before: TableProperties,
    schema_before: StructType,
    properties: TableProperties,
    schema: StructType,
    *,
    proposal: Proposal,
    overwrites: bool,
) -> Iterator[Demand]:
    """What a change of columns and rules asks of the rows in the files that stay. Whoever stages a
    commit for the next version has read the one before."""
    has_read = proposal.reads.whole_table
    if not (overwrites and has_read):
        yield from schema_change.no_nulls(schema_before, schema)
    if not has_read and proposal.staged is None:
        yield from new_rules(properties_before, schema_before, properties, schema)


def _before(read: ReadState) -> tuple[Metadata | None, TableProperties, StructType]:
    if read.metadata is None:
        return None, TableProperties(), StructType(fields=())
    return (
        read.metadata,
        TableProperties.parse(read.metadata.configuration),
        parse_schema(read.metadata.schema_string),
    )


def _knows_widening(table: TableAfter) -> bool:
    return any(
        table_features.supports(table.protocol, name)
        for name in ("typeWidening", "typeWidening-preview")
    )


def _check_change_data(
    table: TableAfter,
    properties_before: TableProperties,
    schema_before: StructType,
    *,
    proposal: Proposal,
) -> Invalid | None:
    if not table.properties.change_data_feed:
        return None
    if taken := feed_columns(table.schema):
        return Invalid(
            code=Code.INVALID_SCHEMA,
            detail=f"the columns {taken} have names that the change data feed uses",
        )
    remaps = column_mapping.changes_columns(
        schema_before,
        table.schema,
        was_mapped=properties_before.column_mapping,
        is_mapped=table.properties.column_mapping,
    )
    has_files = any(isinstance(a, Add | Remove | AddCDCFile) for a in proposal.actions)
    if remaps and has_files:
        return _invalid(
            "columns cannot be mapped, renamed or dropped in a commit that changes files, as the "
            "table has a change data feed"
        )
    return None


def _with_row_tracking(
    table: TableAfter,
    before: Metadata | None,
    properties_before: TableProperties,
    *,
    read_version: int,
) -> TableAfter | Invalid:
    """Row ids that writers keep stand in columns whose names belong to the table for ever. A table
    that the feature was dropped from gets other names the next time: files still have the columns,
    and ids that are given out anew."""
    if not table_features.supports(table.protocol, ROW_TRACKING):
        return table
    names: dict[str, str] = {}
    known = {} if before is None else before.configuration
    for property_name, prefix in _MATERIALIZED.items():
        if property_name in known:
            names[property_name] = known[property_name]
        elif table.properties.row_tracking and property_name not in table.metadata.configuration:
            since = "" if before is None else f" {read_version}"
            names[property_name] = f"{prefix}{uuid5(_NAMES, prefix + table.metadata.id + since)}"
    table = _configured(table, names)
    chosen = [
        table.metadata.configuration[name]
        for name in _MATERIALIZED
        if name in table.metadata.configuration
    ]
    columns = {name for f in table.schema.fields for name in (f.name, physical_name(f))}
    if columns.intersection(chosen) or len(set(chosen)) != len(chosen):
        return _invalid(f"row ids are kept in the columns {chosen}, whose names are taken")
    if before is not None and table.properties.row_tracking and not properties_before.row_tracking:
        return replace(table, demands=(*table.demands, FileDemand.ROW_IDS))
    return table


def _configured(table: TableAfter, properties: dict[str, str]) -> TableAfter:
    """The table with these properties set in its metaData, committed where they are new."""
    configuration = {**table.metadata.configuration, **properties}
    if configuration == table.metadata.configuration:
        return table
    metadata = with_fields(table.metadata, {"configuration": configuration})
    return replace(
        table,
        metadata=metadata,
        own_metadata=metadata,
        properties=TableProperties.parse(configuration),
    )


def _invalid(detail: str) -> Invalid:
    return Invalid(code=Code.INVALID_ACTION, detail=detail)
