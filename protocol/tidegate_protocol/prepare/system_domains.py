"""Metadata domains that belong to table features (PROTOCOL.md, "Domain Metadata").

Their names start with `delta.`; who may write them, and what, is the feature's matter.
"""

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features import row_tracking, table_features
from tidegate_protocol.features.known import CLUSTERING, ROW_TRACKING
from tidegate_protocol.log.actions import DomainMetadata
from tidegate_protocol.prepare.table import TableAfter
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_protocol.scan.clustering import CLUSTERING_DOMAIN, physical_paths
from tidegate_protocol.schema.data_types import (
    VARIANT,
    VOID,
    DataType,
    DecimalType,
    PrimitiveType,
    StructType,
    physical_name,
)

MAX_CLUSTERING_COLUMNS = 1_000
_PREFIX = "delta."
_UNCLUSTERED = (VARIANT, VOID)


def check_domain(action: DomainMetadata, table: TableAfter) -> Invalid | None:
    """What is wrong with a domain that a transaction writes, but for its feature
    `domainMetadata`; `table` is the table after it."""
    if not action.domain.startswith(_PREFIX):
        return None
    if action.domain == row_tracking.DOMAIN:
        return _check_row_tracking(action, table)
    if action.domain != CLUSTERING_DOMAIN:
        return Invalid(
            code=Code.UNSUPPORTED_FEATURE,
            detail=f"the metadata domain {action.domain!r} belongs to a table feature that is "
            "not supported; domains of users do not start with 'delta.'",
        )
    if action.removed:
        return None
    if not table_features.supports(table.protocol, CLUSTERING):
        return Invalid(
            code=Code.UNSUPPORTED_FEATURE,
            detail=f"the metadata domain {action.domain!r} needs the feature {CLUSTERING} in the "
            "protocol",
        )
    return _check_clustering(action, table)


def _check_row_tracking(action: DomainMetadata, table: TableAfter) -> Invalid | None:
    if action.removed and not table_features.supports(table.protocol, ROW_TRACKING):
        return None
    return _invalid(
        f"the metadata domain {action.domain!r} cannot be set: row ids are given out when the "
        "transaction lands; send the files without them"
    )


def _check_clustering(action: DomainMetadata, table: TableAfter) -> Invalid | None:
    try:
        paths = physical_paths(action.configuration)
    except ValueError as error:
        return _invalid(f"the metadata domain {action.domain!r}: {error}")
    if paths and table.metadata.partition_columns:
        return _invalid(
            "a table cannot be clustered and partitioned; it is partitioned by "
            f"{list(table.metadata.partition_columns)}"
        )
    if len(paths) > MAX_CLUSTERING_COLUMNS:
        return _invalid(
            f"there are {len(paths)} clustering columns; at most {MAX_CLUSTERING_COLUMNS} are taken"
        )
    orderable = _Orderable(table.schema)
    seen: set[tuple[str, ...]] = set()
    for path in paths:
        if not orderable.has(path):
            return _invalid(
                f"the clustering column {excerpt(str(list(path)))} is not the (physical) name of a "
                "column whose values can be ordered"
            )
        if path in seen:
            return _invalid(f"the clustering column {excerpt(str(list(path)))} is named twice")
        seen.add(path)
    return None


class _Orderable:
    """The columns of a schema whose values can be ordered. Each struct is gone through once, for
    however many columns."""

    def __init__(self, schema: StructType) -> None:
        self._schema = schema
        self._types: dict[int, dict[str, DataType]] = {}

    def has(self, physical_path: tuple[str, ...]) -> bool:
        found: DataType | None = self._schema
        for name in physical_path:
            if not isinstance(found, StructType):
                return False
            found = self._types_in(found).get(name)
        return isinstance(found, PrimitiveType | DecimalType) and found not in _UNCLUSTERED

    def _types_in(self, struct: StructType) -> dict[str, DataType]:
        if id(struct) not in self._types:
            # The first of two fields of one name counts.
            types = {physical_name(field): field.type for field in reversed(struct.fields)}
            self._types[id(struct)] = types
        return self._types[id(struct)]


def _invalid(detail: str) -> Invalid:
    return Invalid(code=Code.INVALID_ACTION, detail=detail)
