"""What a table is to be, and what that makes of one whose place it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql.types import StructType

from tidegate.spark.tables.layout import TableLayout
from tidegate_protocol.features.column_mapping import assign
from tidegate_protocol.features.permanent_properties import PERMANENT
from tidegate_protocol.features.properties import (
    COLUMN_MAPPING_MAX_ID,
    TableProperties,
    canonical,
    storable,
)
from tidegate_protocol.log.actions import Metadata
from tidegate_protocol.schema.table_schema import parse_schema, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """What a table is to be; `schema` as the log has it, and `cluster_by` names as SQL has them."""

    schema: StructType
    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str] = ()
    properties: Mapping[str, str]
    comment: str | None = None

    def in_place_of(self, metadata: Metadata, layout: TableLayout) -> dict[str, Any]:
        """The fields of the metadata that it changes, by the log's names; None takes one away.
        Columns that are to be mapped get ids that the table never had."""
        asked = TableProperties.parse(canonical(self.properties))
        before = metadata.configuration
        kept = {name: before[name] for name in PERMANENT if name in before}
        configuration = storable(self.properties) | kept
        schema = parse_schema(self.schema.json())
        if asked.column_mapping:
            highest = layout.properties.max_column_id or 0
            schema, highest = assign(schema, max_id=highest, new_name=lambda: f"col-{uuid4()}")
            configuration[COLUMN_MAPPING_MAX_ID] = str(highest)
        # A new table's are matched in any case, too.
        fields = [(name, schema.field(name)) for name in self.partition_by]
        return {
            "schemaString": to_json(schema),
            "partitionColumns": [name if field is None else field.name for name, field in fields],
            "configuration": configuration,
            "description": self.comment,
        }
