"""Which tables this client leaves alone, because it cannot do what they ask for.

The service takes any well-formed commit: it never sees data, so rules about rows hold only if
every writer enforces them (PROTOCOL.md, "Writer Version Requirements").
"""

from collections.abc import Iterable

from tidegate.spark.errors import UnsupportedTable
from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.features.known import FIELD_FEATURES
from tidegate_protocol.features.table_features import (
    check_supported,
    implied_features,
    required_features,
)
from tidegate_protocol.log.actions import Add, Protocol
from tidegate_protocol.schema.data_types import TYPE_CHANGES, walk

# NOT NULL, the one invariant that is enforced here, is found in the columns themselves. Row ids are
# given out by the service, from the number of rows that every file of this client tells.
_DONE_BY_WRITERS = frozenset(
    {
        "appendOnly",
        "catalogManaged",
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
# What asks something of every writer as soon as the protocol has it.
_ASKED_BY_PROTOCOL = frozenset({"clustering"})
_LENGTH_LIMIT = "__CHAR_VARCHAR_TYPE_STRING"
_DONE_IN_FIELDS = {
    key: feature for key, feature in FIELD_FEATURES.items() if feature not in _DONE_BY_WRITERS
} | {"delta.invariants": "invariants", _LENGTH_LIMIT: "char and varchar lengths"}
# Values that Spark's reader would take for others, or for nothing: columns under other names, types
# that were others when older files were written, text that compares in other ways.
_READ_OTHERWISE = frozenset({"collations-preview", "columnMapping", "variantType"})


def check_writable(layout: TableLayout, protocol: Protocol) -> None:
    """Raise `UnsupportedTable`, naming what, unless this client may write rows to the table."""
    _check_protocol(layout, protocol)
    for path, field, _ in walk(layout.schema):
        for key in sorted(_DONE_IN_FIELDS.keys() & field.metadata.keys()):
            raise UnsupportedTable(
                f"column {'.'.join(path)} of table {layout.name} uses {_DONE_IN_FIELDS[key]} "
                f"({key}), which this client does not enforce"
            )
    if layout.properties.constraints:
        raise UnsupportedTable(
            f"table {layout.name} has the CHECK constraints "
            f"{sorted(layout.properties.constraints)}, which this client does not enforce"
        )
    used = required_features(layout.properties, layout.schema, catalog_managed=False)
    asked = implied_features(protocol) & _ASKED_BY_PROTOCOL
    if unknown := (used - _DONE_BY_WRITERS) | asked:
        raise UnsupportedTable(
            f"table {layout.name} uses the features {sorted(unknown)}, which this client does not "
            "write"
        )


def check_readable(layout: TableLayout, protocol: Protocol, files: Iterable[Add]) -> None:
    """Raise `UnsupportedTable`, naming what, unless the files' rows are the table's rows."""
    _check_protocol(layout, protocol)
    used = required_features(layout.properties, layout.schema, catalog_managed=False)
    if others := sorted(used & _READ_OTHERWISE):
        raise UnsupportedTable(
            f"table {layout.name} uses {', '.join(others)}, which this client does not read"
        )
    for path, field, _ in walk(layout.schema):
        if TYPE_CHANGES in field.metadata:
            raise UnsupportedTable(
                f"column {'.'.join(path)} of table {layout.name} had another type in older files "
                f"({TYPE_CHANGES}), which this client does not read"
            )
    for file in files:
        if file.deletion_vector is not None:
            raise UnsupportedTable(
                f"file {file.path} of table {layout.name} has a deletion vector, which this "
                "client does not apply"
            )


def _check_protocol(layout: TableLayout, protocol: Protocol) -> None:
    invalid = check_supported(protocol)
    if invalid is not None:
        raise UnsupportedTable(f"table {layout.name}: {invalid.detail}")
