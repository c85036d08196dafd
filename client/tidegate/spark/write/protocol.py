"""The protocol of a table as its definition and its properties have it."""

from collections.abc import Mapping
from typing import Any

from tidegate.spark.columns.definition import TableDefinition
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate_protocol.features.known import (
    CLUSTERING,
    FEATURES,
    READER_FEATURES_VERSION,
    SPELLING,
    WRITER_FEATURES_VERSION,
)
from tidegate_protocol.features.properties import TableProperties, canonical
from tidegate_protocol.features.table_features import (
    check_supported,
    implied_features,
    missing_features,
    supports,
    with_features,
)
from tidegate_protocol.log.actions import Protocol
from tidegate_protocol.schema.table_schema import parse_schema


def raised(protocol: Protocol, wanted: TableProperties) -> Protocol:
    """The protocol with the features that properties ask for, by name or by versions; itself where
    it has them. Raises `InvalidCommand` for features and versions that nobody knows, and for
    features that are not supported."""
    names = {SPELLING.get(name.lower(), name) for name in wanted.requested_features}
    if unknown := sorted(names - FEATURES.keys()):
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            f"Table feature(s) {', '.join(unknown)} are not known",
        )
    reader, writer = wanted.requested_versions or (1, 1)
    if reader > READER_FEATURES_VERSION or writer > WRITER_FEATURES_VERSION:
        known = (READER_FEATURES_VERSION, WRITER_FEATURES_VERSION)
        raise InvalidCommand(
            "DELTA_INVALID_PROTOCOL_VERSION",
            f"Unsupported protocol version: expected reader and writer versions up to {known}, "
            f"found {(reader, writer)}",
        )
    if writer < WRITER_FEATURES_VERSION:
        names |= implied_features(Protocol(min_reader_version=reader, min_writer_version=writer))
    lacking = names - implied_features(protocol)
    if not lacking:
        return protocol
    found = with_features(protocol, lacking)
    if (invalid := check_supported(found)) is not None:
        raise InvalidCommand("DELTA_UNSUPPORTED_FEATURES_FOR_WRITE", invalid.detail)
    return found


def protocol_in_place_of(
    protocol: Protocol, wanted: TableDefinition, changes: Mapping[str, Any]
) -> Protocol:
    """The protocol of a table once the definition has taken its place: with the features that its
    properties ask for, and with those that it, its clustering and the metadata's `changes` by it
    need. Raises as `raised` does."""
    found = raised(protocol, TableProperties.parse(canonical(wanted.properties)))
    lacking = missing_features(
        found,
        TableProperties.parse(changes["configuration"]),
        parse_schema(changes["schemaString"]),
    )
    if wanted.cluster_by and not supports(found, CLUSTERING):
        lacking |= {CLUSTERING, "domainMetadata"}
    return with_features(found, lacking) if lacking else found
