"""What the client does not do of the vectors, each with its reason."""

from collections.abc import Mapping

_COMMANDS = "the client has no such command"

MISSING_OPERATIONS: Mapping[str, str] = {
    "alter": _COMMANDS,
    "create_as_select": _COMMANDS,
    "insert_values": _COMMANDS,
    "read_changes": "the client does not read change data",
    "read_stream": "the client has no source of streams",
    "restore": _COMMANDS,
}
"""Kinds of operations -> why there are none. Vectors with one of them are skipped."""

_FAILING: Mapping[str, tuple[str, ...]] = {
    "Spark's and Delta's error classes are not told": (
        "append-missing-partition-column",
        "replace-where-error-only-partition-columns-in-data",
        "replace-where-error-empty-predicate",
        "replace-where-subquery-in-rejected",
        "replace-where-cannot-change-partitioning",
        "dynamic-with-overwrite-schema-fails",
        "append-new-column-rejected",
        "overwrite-new-column-rejected",
        "replace-where-with-overwrite-schema-rejected",
        "insert-extra-nested-field-rejected",
        "insert-missing-column-by-position",
        "insert-implicit-cast-not-in-save",
        "constraint-values-in-message",
        "not-null-column-missing",
        "not-null-nested",
        "not-null-nested-null-parent",
        "gen-append-wrong-value",
        "gen-null-source-nonnull-value",
        "gen-stream-wrong-value",
        "sink-update-mode-rejected",
        "sink-new-column-rejected",
        "sink-null-type-rejected",
        "sink-cast-overflow-ansi",
        "sink-array-into-struct",
    ),
    "the client does not write identity columns": (
        "identity-append",
        "identity-append-negative-step",
        "identity-append-large-start",
        "identity-overwrite",
        "identity-overwrite-negative-start",
        "identity-single-rows-in-order",
        "identity-start-and-step",
        "identity-stream-append",
        "identity-always-explicit-overwrite-rejected",
        "identity-always-stream-explicit-rejected",
        "identity-replace-where-explicit-rejected",
        "identity-partition-column-rejected",
        "identity-non-bigint-rejected",
    ),
    "replace_where takes partition columns alone": (
        "replace-where-sequence",
        "replace-where-less-than",
        "replace-where-backticks-mismatch",
        "replace-where-and-dynamic-allowed-without-partitions",
        "replace-where-metrics-whole-file",
    ),
    "session settings of Delta have no effect": (
        "replace-where-error-nonconforming-row",
        "dynamic-by-session-conf",
        "append-new-column-with-session-conf",
        "append-option-false-beats-session-conf",
        "overwrite-merge-conf-unions-columns",
        "overwrite-cannot-add-partitioning-by-conf",
        "sink-then-batch-type-conflict",
        "sink-cast-overflow-strict",
        "sink-cast-overflow-legacy",
        "sink-cast-with-evolution",
    ),
    "defaults are not written": ("default-missing-column-df-append",),
    "the service says it in words of its own": (
        "not-null-within-array-rejected-on-create",
        "not-null-within-map-key-rejected-on-create",
        "not-null-within-map-value-rejected-on-create",
        "not-null-within-nested-array-rejected-on-create",
        "gen-create-error-unknown-column",
        "gen-create-error-refers-to-generated",
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
