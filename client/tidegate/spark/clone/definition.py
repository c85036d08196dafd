"""What a clone takes over of its source, beside the rows."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tidegate.models import TableVersion
from tidegate.new_table import check_feed_columns, check_properties
from tidegate.spark.clone.source import CloneSource
from tidegate.spark.expressions.definitions import check_adds_no_constraint
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.write.protocol import raised
from tidegate_protocol.features.known import CATALOG_MANAGED, CLUSTERING
from tidegate_protocol.features.permanent_properties import PERMANENT
from tidegate_protocol.features.properties import (
    COLUMN_MAPPING_MAX_ID,
    IN_COMMIT_TIMESTAMPS,
    TableProperties,
    canonical,
    storable,
)
from tidegate_protocol.features.table_features import (
    implied_features,
    missing_features,
    protocol_for,
    supports,
    with_features,
)
from tidegate_protocol.log.actions import DomainMetadata, Metadata, Protocol
from tidegate_protocol.log.codec import encode, with_fields
from tidegate_protocol.scan.clustering import columns_at, domain_of
from tidegate_protocol.schema.table_schema import parse_schema

_ENABLEMENT = (
    "delta.inCommitTimestampEnablementTimestamp",
    "delta.inCommitTimestampEnablementVersion",
)
"""Since which of its own versions a table has these timestamps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneDefinition:
    """A clone's protocol and metadata, and what it is clustered by; None where neither it nor the
    table whose place it takes has to do with that."""

    protocol: Protocol
    metadata: Metadata
    clustering: DomainMetadata | None

    @property
    def actions(self) -> tuple[DomainMetadata, ...]:
        """What its commit says beside protocol, metadata and files."""
        return () if self.clustering is None else (self.clustering,)

    def body(self, *, location: str | None, catalog_managed: bool) -> dict[str, Any]:
        """As a creation has it."""
        body: dict[str, Any] = {
            "schema": self.metadata.schema_string,
            "partition_columns": list(self.metadata.partition_columns),
            "properties": dict(self.metadata.configuration),
            "catalog_managed": catalog_managed,
            "protocol": json.loads(encode(self.protocol))["protocol"],
        }
        if location is not None:
            body["location"] = location
        return body


def defined(
    source: CloneSource, properties: Mapping[str, str], *, before: TableVersion | None = None
) -> CloneDefinition:
    """The definition of a clone with these properties in the place of the source's, which may be
    one in the place of `before`, whose features and permanent properties stay. Raises
    `InvalidRequest` for properties that no table can have, and `InvalidCommand` for another mode of
    column mapping than either has, for features that are not known, and for a CHECK constraint that
    the source does not have."""
    check_properties(properties)
    given = canonical(properties)
    check_adds_no_constraint(given, source.metadata.configuration)
    if COLUMN_MAPPING_MAX_ID in given:
        raise InvalidCommand(
            "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            f"The Delta table configuration {COLUMN_MAPPING_MAX_ID} cannot be specified by the "
            "user",
        )
    configuration = dict(source.metadata.configuration)
    for name in (*PERMANENT, *_ENABLEMENT):
        configuration.pop(name, None)
    configuration |= storable(given)
    _check_mode(source.name, source.metadata, configuration)
    own: dict[str, Any] = {"id": str(uuid4()), "name": None, "description": None}
    if before is not None:
        old = before.metadata
        _check_mode(before.name, old, configuration)
        kept = (*PERMANENT, *_ENABLEMENT, IN_COMMIT_TIMESTAMPS)
        configuration |= {name: text for name in kept if (text := old.configuration.get(name))}
        marks = [each.get(COLUMN_MAPPING_MAX_ID) for each in (configuration, old.configuration)]
        if marks[0] is not None:
            # Ids that its columns had are nobody else's.
            highest = max(int(mark) for mark in marks if mark is not None)
            configuration[COLUMN_MAPPING_MAX_ID] = str(highest)
        own = {
            "id": old.id,
            "name": old.name,
            "description": old.description,
            "createdTime": old.created_time,
        }
    metadata = with_fields(source.metadata, {**own, "configuration": configuration})
    if before is None:
        check_feed_columns(metadata.schema_string, configuration)
    protocol = _protocol(source, given, metadata, before)
    columns = columns_at(parse_schema(metadata.schema_string), source.clustering)
    was_clustered = before is not None and supports(before.protocol, CLUSTERING)
    return CloneDefinition(
        protocol=protocol,
        metadata=metadata,
        clustering=domain_of(columns) if columns or was_clustered else None,
    )


def _check_mode(name: str, metadata: Metadata, configuration: Mapping[str, str]) -> None:
    modes = [
        TableProperties.parse(each).column_mapping_mode
        for each in (metadata.configuration, configuration)
    ]
    if modes[0] != modes[1]:
        raise InvalidCommand(
            "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            f"Changing column mapping mode from '{modes[0]}' to '{modes[1]}' is not supported: "
            f"{name} has the one, the clone is to have the other",
        )


def _protocol(
    source: CloneSource,
    given: Mapping[str, str],
    metadata: Metadata,
    before: TableVersion | None,
) -> Protocol:
    asked, schema = TableProperties.parse(given), parse_schema(metadata.schema_string)
    found = source.protocol or protocol_for(asked, schema, catalog_managed=False)
    if before is not None:
        further = implied_features(found) - implied_features(before.protocol) - {CATALOG_MANAGED}
        found = with_features(before.protocol, further) if further else before.protocol
    found = raised(found, asked)
    lacking = missing_features(found, TableProperties.parse(metadata.configuration), schema)
    return with_features(found, lacking) if lacking else found
