"""Which tables this client leaves alone, because it cannot do what they ask for.

The service takes any well-formed commit: it never sees data, so rules about rows hold only if
every writer enforces them (PROTOCOL.md, "Writer Version Requirements").
"""

from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.tables.layout import TableLayout
from tidegate.spark.tables.schemas import is_untyped
from tidegate_protocol.features.known import (
    CURRENT_DEFAULT,
    FIELD_FEATURES,
    GENERATION_EXPRESSION,
    IDENTITY_START,
    IDENTITY_STEP,
    INVARIANTS,
)
from tidegate_protocol.features.table_features import (
    check_supported,
    required_features,
    supports,
)
from tidegate_protocol.log.actions import Protocol
from tidegate_protocol.schema.data_types import LENGTH_KEY, STRING, Field, walk

# NOT NULL, the one invariant that is enforced here, is found in the columns themselves. Row ids are
# given out by the service, from the number of rows that every file of this client tells. What adds
# and removes whole files needs no change data: the feed is read from the files.
_DONE_BY_WRITERS = frozenset(
    {
        "appendOnly",
        "catalogManaged",
        # What is added and removed by whole files is the feed of its commit.
        "changeDataFeed",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "inCommitTimestamp",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
_DONE_IN_PLANS = frozenset(
    {
        CURRENT_DEFAULT,
        GENERATION_EXPRESSION,
        IDENTITY_START,
        IDENTITY_STEP,
        INVARIANTS,
        LENGTH_KEY,
    }
)
_FEATURES_OF_PLANS = frozenset(
    {"allowColumnDefaults", "checkConstraints", "generatedColumns", "identityColumns"}
)
_PARTITIONS_IN_FILES = "materializePartitionColumns"
_BY_TABLE = "use Table.append or Table.overwrite, where Spark's plan enforces it"
_DONE_IN_FIELDS = {
    key: feature for key, feature in FIELD_FEATURES.items() if feature not in _DONE_BY_WRITERS
} | {INVARIANTS: "invariants", LENGTH_KEY: "char and varchar lengths"}
# Values that Spark's reader would take for others, or for nothing: text that compares in other
# ways, bytes that are variants.
_READ_OTHERWISE = frozenset({"collations-preview", "variantType"})


def check_writable(layout: TableLayout, protocol: Protocol) -> None:
    """Raise `UnsupportedTable`, naming what, unless Spark's own writer may write rows to the table:
    its plan checks what the table asks of each row (`tidegate.spark.columns.constraints`)."""
    _check_protocol(layout, protocol)
    _check_fields(layout, _DONE_IN_PLANS)
    _check_features(layout, protocol, _DONE_BY_WRITERS | _FEATURES_OF_PLANS)


def check_writable_by_arrow(layout: TableLayout, protocol: Protocol) -> None:
    """Raise `UnsupportedTable`, naming what, unless the Arrow writer of the data source, whose
    tasks see batches and no plan, may write rows to the table."""
    _check_protocol(layout, protocol)
    if layout.properties.constraints:
        raise UnsupportedTable(
            f"table {layout.name} has the CHECK constraints "
            f"{sorted(layout.properties.constraints)}, which the data source does not enforce",
            hint=_BY_TABLE,
        )
    _check_fields(layout, frozenset(), hint=_BY_TABLE)
    _check_features(layout, protocol, _DONE_BY_WRITERS)


def check_typed(layout: TableLayout) -> None:
    """Raise `UnsupportedTable` for a table whose rows would be written with a void column: in files
    integers stand for it, which no reader takes for another type later."""
    for field in layout.spark_schema.fields:
        if is_untyped(field.dataType):
            raise UnsupportedTable(
                f"column {field.name} of table {layout.name} is, or holds a field, of the type "
                "void; this client writes no rows to such a table",
                hint="append a DataFrame that has a type for it, with the option mergeSchema",
            )


def _check_fields(layout: TableLayout, done: frozenset[str], *, hint: str | None = None) -> None:
    """`done` are keys of a whole column's metadata that ask for nothing more."""
    for path, field, _ in walk(layout.schema):
        for key in sorted(_DONE_IN_FIELDS.keys() & field.metadata.keys()):
            if key in done and len(path) == 1 and _is_whole(key, field):
                continue
            raise UnsupportedTable(
                f"column {'.'.join(path)} of table {layout.name} uses {_DONE_IN_FIELDS[key]} "
                f"({key}), which this client does not enforce",
                hint=hint if len(path) == 1 and key in _DONE_IN_PLANS else None,
            )


def _is_whole(key: str, field: Field) -> bool:
    """Whether a length is that of the column, and not of something inside of it."""
    return key != LENGTH_KEY or field.type == STRING


def check_rewritable(layout: TableLayout) -> None:
    """Raise `UnsupportedTable` where rows that are written again, in files that change no data,
    would have other ids."""
    if layout.properties.row_tracking:
        raise UnsupportedTable(
            f"table {layout.name} tracks its rows, and rows that are written with dataChange false "
            "would have new ids",
            hint="rewrite files by table.optimize(spark=spark), which keeps them",
        )


def _check_features(layout: TableLayout, protocol: Protocol, done: frozenset[str]) -> None:
    used = required_features(layout.properties, layout.schema, catalog_managed=False)
    if layout.partition_columns and supports(protocol, _PARTITIONS_IN_FILES):
        # It binds writers whatever the table's property says.
        used |= {_PARTITIONS_IN_FILES}
    if unknown := used - done:
        raise UnsupportedTable(
            f"table {layout.name} uses the features {sorted(unknown)}, which this client does not "
            "write",
            error_class="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
        )


def check_readable(layout: TableLayout, protocol: Protocol) -> None:
    """Raise `UnsupportedTable`, naming what, unless the rows of files are the table's rows."""
    _check_protocol(layout, protocol)
    used = required_features(layout.properties, layout.schema, catalog_managed=False)
    if others := sorted(used & _READ_OTHERWISE):
        raise UnsupportedTable(
            f"table {layout.name} uses {', '.join(others)}, which this client does not read",
            error_class="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        )


def _check_protocol(layout: TableLayout, protocol: Protocol) -> None:
    invalid = check_supported(protocol)
    if invalid is not None:
        raise UnsupportedTable(f"table {layout.name}: {invalid.detail}")
