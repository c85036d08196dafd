"""What a transaction makes of the table's protocol and metadata.

Delta's `updateMetadataAndProtocolWithRequiredFeatures` and `prepareCommit`'s checks on protocol
and metaData actions, with the protocol upgrade that new metadata implies.
"""

from dataclasses import dataclass

from tidegate_protocol.base.memo import SMALL, remember
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features import table_features
from tidegate_protocol.features.known import CATALOG_MANAGED, UNITY_TABLE_ID
from tidegate_protocol.features.properties import (
    IN_COMMIT_TIMESTAMPS,
    MAX_PROPERTIES,
    InvalidProperty,
    TableProperties,
    canonical,
    check_new,
    storable,
)
from tidegate_protocol.log.actions import Metadata, Protocol, has_any
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.proposal import operations
from tidegate_protocol.proposal.demands import Demand
from tidegate_protocol.proposal.transaction import Invalid, Proposal, ReadState
from tidegate_protocol.schema import table_schema
from tidegate_protocol.schema.table_schema import (
    InvalidSchema,
    StructType,
    check_partition_columns,
    parse_schema,
    validate_table_schema,
)

MAX_METADATA_BYTES = 8 * 1024 * 1024
"""Of a metaData action, as it is in a log. Each lock of the table's row brings it along."""

_Definition = tuple[str, tuple[tuple[str, str], ...]]
"""A table's schemaString and properties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAfter:
    """The table as a transaction leaves it, and the completed actions that make it so.

    `own_protocol` and `own_metadata` are None where the transaction changes nothing there.
    `demands` are what must hold of every file for the change to be one.
    """

    protocol: Protocol
    metadata: Metadata
    properties: TableProperties
    schema: StructType
    own_protocol: Protocol | None
    own_metadata: Metadata | None
    demands: tuple[Demand, ...] = ()

    @property
    def changes(self) -> tuple[Protocol | Metadata, ...]:
        """The protocol and metaData actions to commit, in the order of the log."""
        both = (self.own_protocol, self.own_metadata)
        return tuple(change for change in both if change is not None)


def is_catalog_managed(protocol: Protocol | None) -> bool:
    """Whether the index, and not the log's folder, is where a commit of the table is ratified."""
    return protocol is not None and table_features.supports(protocol, CATALOG_MANAGED)


def define_table(proposal: Proposal, read: ReadState) -> TableAfter | Invalid:
    """The table after the proposal's protocol and metaData actions, checked and completed."""
    if not has_any(proposal.actions, Metadata, Protocol):
        invalid = _check_protocol(None, proposal=proposal, read=read)
        return _as_it_was(read, own_protocol=None) if invalid is None else invalid
    indexed = list(enumerate(proposal.actions))
    metadatas = [(at, action) for at, action in indexed if isinstance(action, Metadata)]
    protocols = [(at, action) for at, action in indexed if isinstance(action, Protocol)]
    if len(metadatas) > 1:
        return Invalid(
            code=Code.MULTIPLE_METADATA,
            detail=f"{len(metadatas)} metaData actions in one commit; expected at most one",
            action_index=metadatas[1][0],
        )
    if len(protocols) > 1:
        return Invalid(
            code=Code.MULTIPLE_PROTOCOL,
            detail=f"{len(protocols)} protocol actions in one commit; expected at most one",
            action_index=protocols[1][0],
        )
    own_protocol = protocols[0][1] if protocols else None
    invalid = _check_protocol(own_protocol, proposal=proposal, read=read)
    if invalid is not None:
        return invalid
    if metadatas:
        ((_, own_metadata),) = metadatas
        return _with_new_metadata(own_metadata, own_protocol, proposal=proposal, read=read)
    return _as_it_was(read, own_protocol=own_protocol)


def _as_it_was(read: ReadState, *, own_protocol: Protocol | None) -> TableAfter | Invalid:
    """The table after a proposal without a metaData action."""
    if read.metadata is None or read.protocol is None:
        return Invalid(
            code=Code.MISSING_METADATA,
            detail="the first commit of a table needs a metaData action",
        )
    known = _known((read.metadata.schema_string, tuple(read.metadata.configuration.items())))
    if isinstance(known, Invalid):
        return known
    properties, schema = known
    return TableAfter(
        protocol=own_protocol or read.protocol,
        metadata=read.metadata,
        properties=properties,
        schema=schema,
        own_protocol=own_protocol,
        own_metadata=None,
    )


def _check_protocol(own: Protocol | None, *, proposal: Proposal, read: ReadState) -> Invalid | None:
    """The protocol that the transaction names, or else the one that it finds. Whether a feature
    may be dropped is asked later (`feature_removal`)."""
    if read.protocol is None:
        return None if own is None else table_features.check_supported(own)
    if own is None:
        return table_features.check_supported(read.protocol)
    invalid = table_features.check_supported(own)
    if invalid is None and is_catalog_managed(own) != is_catalog_managed(read.protocol):
        return Invalid(
            code=Code.UNSUPPORTED_FEATURE,
            detail=f"the feature {CATALOG_MANAGED} can be chosen only when a table is created; "
            "it cannot be added to an existing table or taken from it",
        )
    if invalid is not None or proposal.operation == operations.DROP_FEATURE:
        return invalid
    return table_features.check_transition(read.protocol, own)


def _with_new_metadata(
    own: Metadata, own_protocol: Protocol | None, *, proposal: Proposal, read: ReadState
) -> TableAfter | Invalid:
    managed = is_catalog_managed(own_protocol or read.protocol)
    parsed = parse_metadata(own)
    if isinstance(parsed, Invalid):
        return parsed
    properties, schema = parsed
    if managed and not properties.in_commit_timestamps:
        # The feature needs in-commit timestamps not only supported but enabled.
        if IN_COMMIT_TIMESTAMPS in own.configuration:
            return _invalid(f"{IN_COMMIT_TIMESTAMPS} must be true on a catalog-managed table")
        enabled = {**own.configuration, IN_COMMIT_TIMESTAMPS: "true"}
        own = with_fields(own, {"configuration": enabled})
        properties = TableProperties.parse(own.configuration)
    invalid = (
        check_features(properties, schema)
        or _check_metadata(own, properties=properties, schema=schema, before=read.metadata)
        or _check_change(own, proposal=proposal, read=read)
    )
    if invalid is not None:
        return invalid
    protocol = own_protocol or _implied_protocol(read.protocol, properties, schema)
    lacking = table_features.missing_features(protocol, properties, schema)
    if lacking:
        return Invalid(
            code=Code.INVALID_PROTOCOL,
            detail=f"the metaData action uses {sorted(lacking)}, which the protocol action of the "
            "same commit does not list; list it, or send no protocol action and it is upgraded",
        )
    return TableAfter(
        protocol=protocol,
        metadata=own,
        properties=properties,
        schema=schema,
        own_protocol=None if own_protocol is None and protocol == read.protocol else protocol,
        own_metadata=own,
    )


def parse_metadata(metadata: Metadata) -> tuple[TableProperties, StructType] | Invalid:
    """What a metaData action says, typed."""
    if len(metadata.raw) > MAX_METADATA_BYTES:
        return _invalid(
            f"the metaData action has {len(metadata.raw)} bytes; no more than "
            f"{MAX_METADATA_BYTES} are taken"
        )
    options = metadata.format.options
    if len(options) > MAX_PROPERTIES:
        return _invalid(
            f"format.options has {len(options)} entries; no more than {MAX_PROPERTIES} are taken"
        )
    try:
        properties = TableProperties.parse(metadata.configuration)
    except InvalidProperty as error:
        return _invalid(str(error))
    try:
        return properties, parse_schema(metadata.schema_string)
    except InvalidSchema as error:
        return Invalid(code=Code.INVALID_SCHEMA, detail=str(error))


def _parse_known(definition: _Definition) -> tuple[TableProperties, StructType] | Invalid:
    """What the metaData of a table that is there says, checked."""
    schema_string, configuration = definition
    parsed = parse_metadata(
        Metadata(id="", schema_string=schema_string, configuration=dict(configuration))
    )
    return parsed if isinstance(parsed, Invalid) else check_features(*parsed) or parsed


def _size(definition: _Definition) -> int:
    schema_string, configuration = definition
    return len(schema_string) + sum([len(name) + len(text) for name, text in configuration])


_known = remember(_parse_known, weigh=_size)


def is_cheap(metadata: Metadata) -> bool:
    """Whether `prepare`, and whoever reads the schema after it, takes little time for a table's
    definition: it is small, or was checked not long ago. One of 64 KiB takes some ten
    milliseconds."""
    if len(metadata.raw) <= SMALL:
        return True
    definition = (metadata.schema_string, tuple(metadata.configuration.items()))
    return table_schema.is_cheap(metadata.schema_string) and _known.is_cheap(definition)


def check_features(properties: TableProperties, schema: StructType) -> Invalid | None:
    """A legacy protocol implies features that nobody here carries: harmless until used."""
    used = table_features.required_features(properties, schema, catalog_managed=False)
    unsupported = used - table_features.SUPPORTED_WRITER_FEATURES
    if not unsupported:
        return None
    return Invalid(
        code=Code.UNSUPPORTED_FEATURE,
        detail="the table's metaData uses features that are not supported: "
        + table_features.described(unsupported),
    )


def _check_metadata(
    own: Metadata, *, properties: TableProperties, schema: StructType, before: Metadata | None
) -> Invalid | None:
    """What a metaData action must be in itself; names of new properties must be known ones."""
    if own.format.provider != "parquet":
        return _invalid(f"format.provider is {own.format.provider!r}; expected 'parquet'")
    misspelled = sorted(own.configuration.keys() - canonical(own.configuration).keys())
    if misspelled:
        return _invalid(f"the properties {misspelled} are not spelled as Delta spells them")
    protocol_only = sorted(own.configuration.keys() - storable(own.configuration).keys())
    if protocol_only:
        return _invalid(
            f"the properties {protocol_only} ask for a protocol and are never stored; send a "
            "protocol action instead"
        )
    known = {} if before is None else before.configuration
    try:
        check_new({n: value for n, value in own.configuration.items() if known.get(n) != value})
    except InvalidProperty as error:
        return _invalid(str(error))
    try:
        # What a table of another writer has, it may keep.
        if before is None or own.schema_string != before.schema_string:
            validate_table_schema(schema, column_mapping=properties.column_mapping)
        columns = check_partition_columns(schema, own.partition_columns)
        if columns != own.partition_columns:
            raise InvalidSchema(
                f"partitionColumns are {list(own.partition_columns)}, but the schema spells them "
                f"{list(columns)}"
            )
    except InvalidSchema as error:
        return Invalid(code=Code.INVALID_SCHEMA, detail=str(error))
    return None


def _check_change(own: Metadata, *, proposal: Proposal, read: ReadState) -> Invalid | None:
    """What a metaData action may change on an existing table."""
    before = read.metadata
    if before is None:
        return None
    if own.partition_columns != before.partition_columns and not (
        operations.may_change_partitioning(proposal.operation, proposal.operation_parameters)
    ):
        return _invalid(
            f"the operation {proposal.operation!r} cannot change the partition columns from "
            f"{list(before.partition_columns)} to {list(own.partition_columns)}; replace the table"
        )
    # Delta gives a replaced table a new id unless a catalog knows it by the old one.
    if own.id != before.id and (
        is_catalog_managed(read.protocol) or not operations.replaces_table(proposal.operation)
    ):
        return _invalid(
            f"the operation {proposal.operation!r} cannot change the table's id from "
            f"{before.id!r} to {own.id!r}"
        )
    return _check_table_id(own, before) if is_catalog_managed(read.protocol) else None


def _check_table_id(own: Metadata, before: Metadata) -> Invalid | None:
    """The id that Unity Catalog's clients know a table by is given once."""
    known = before.configuration.get(UNITY_TABLE_ID)
    found = own.configuration.get(UNITY_TABLE_ID)
    if known is None or found == known:
        return None
    return _invalid(f"the property {UNITY_TABLE_ID} cannot be changed from {known!r} to {found!r}")


def _implied_protocol(
    before: Protocol | None, properties: TableProperties, schema: StructType
) -> Protocol:
    """The protocol of a commit that names none: as before, or as much higher as it needs."""
    if before is None:
        return table_features.protocol_for(properties, schema, catalog_managed=False)
    lacking = table_features.missing_features(before, properties, schema)
    return table_features.with_features(before, lacking) if lacking else before


def _invalid(detail: str) -> Invalid:
    return Invalid(code=Code.INVALID_ACTION, detail=detail)
