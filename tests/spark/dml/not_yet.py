"""What the client does not do of the vectors, each with its reason."""

from collections.abc import Mapping

_COMMANDS = "the client has no such command"

MISSING_OPERATIONS: Mapping[str, str] = {
    "alter": _COMMANDS,
    "read_stream": "nothing here starts a stream from a table",
    "restore": _COMMANDS,
}
"""Kinds of operations -> why there are none. Vectors with one of them are skipped."""

_FAILING: Mapping[str, tuple[str, ...]] = {
    "a column that is given twice is refused, also where only the case differs": (
        "gen-merge-insert-case-duplicate-allowed-without-generated",
    ),
    "commands write no deletion vectors": (
        "update-repeated-with-deletion-vectors",
        "cdc-update-with-deletion-vectors",
    ),
    "columns go by name, never by position": ("insert-missing-column-by-position",),
    "values are cast to the table's types, as by Delta's writeTo; no way of writing never does": (
        "insert-implicit-cast-not-in-save",
    ),
    "values are stored by ANSI assignment, whatever the session's policy is": (
        "sink-cast-overflow-strict",
        "sink-cast-overflow-legacy",
    ),
    "the service reads expressions, but does not compute their types": (
        "gen-create-error-nondeterministic",
        "gen-create-error-current-timestamp",
        "gen-create-error-type-mismatch-long",
        "default-create-error-wrong-type",
    ),
}

EXPECTED_FAILURES: Mapping[str, str] = {
    name: reason for reason, names in _FAILING.items() for name in names
}
"""Vectors -> why they fail. One that passes has to be taken off."""
