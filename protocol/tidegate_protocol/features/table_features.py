"""Table features and protocol transitions (PROTOCOL.md, "Table Features").

Three questions are kept apart. *Supported by a protocol*: it lists the feature, or has a legacy
version that implies it. *Used by a table*: its metadata makes the feature active
(`required_features`). *Supported by us*: `SUPPORTED_WRITER_FEATURES`. A protocol may support
more legacy features than we do, because legacy versions come in bundles and a feature that the
metadata does not use asks nothing of anybody; metadata that uses one of them is refused.
"""

from collections.abc import Iterable

from tidegate_protocol.base.memo import remember
from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.known import (
    CATALOG_MANAGED,
    COLUMN_MAPPING,
    FAILS_CONCURRENT_AT_UPGRADE,
    FEATURES,
    FIELD_FEATURES,
    IN_COMMIT_TIMESTAMP,
    LEGACY,
    NOT_CARRIED,
    PRESENT_FEATURES,
    PROPERTY_FEATURES,
    READER_FEATURES_VERSION,
    SPELLING,
    SUPPORTED_READER_FEATURES,
    SUPPORTED_WRITER_FEATURES,
    TYPE_FEATURES,
    WRITER_FEATURES_VERSION,
)
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Protocol
from tidegate_protocol.proposal.transaction import Invalid
from tidegate_protocol.schema.data_types import ArrayType, DataType, MapType, StructType, walk

__all__ = [
    "FAILS_CONCURRENT_AT_UPGRADE",
    "SUPPORTED_READER_FEATURES",
    "SUPPORTED_WRITER_FEATURES",
    "added_features",
    "check_supported",
    "check_transition",
    "described",
    "fails_concurrent",
    "implied_features",
    "missing_features",
    "protocol_for",
    "removes_features",
    "required_features",
    "supports",
    "with_features",
]


MAX_PROTOCOL_BYTES = 16 * 1024
"""Of a protocol action: each lock of the table's row brings it along, and it is read anew."""


def implied_features(protocol: Protocol) -> frozenset[str]:
    """Every feature the protocol supports: those it lists, and those its legacy versions imply."""
    return _remembered_features(protocol)


def _implied_features(protocol: Protocol) -> frozenset[str]:
    listed = (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())
    by_version = {
        name
        for name, (reader, writer) in LEGACY.items()
        if reader <= protocol.min_reader_version < READER_FEATURES_VERSION
        and writer <= protocol.min_writer_version < WRITER_FEATURES_VERSION
    }
    return listed | by_version


_remembered_features = remember(_implied_features, weigh=lambda protocol: len(protocol.raw))


def supports(protocol: Protocol, feature: str) -> bool:
    """Whether the protocol supports the feature, listed or implied."""
    return feature in implied_features(protocol)


def may_have_vectors(*protocols: Protocol | None) -> bool:
    """Whether files of a table that has, or had, these protocols may have deletion vectors."""
    return any(p is not None and supports(p, "deletionVectors") for p in protocols)


def check_supported(protocol: Protocol) -> Invalid | None:
    """What keeps a table from having this protocol here: `invalid-protocol` for one that
    contradicts itself, `unsupported-feature`, naming it, for one that asks for more than is
    supported. Legacy features pass; their use does not (`required_features`)."""
    return _remembered_support(protocol)


def _check_supported(protocol: Protocol) -> Invalid | None:
    if len(protocol.raw) > MAX_PROTOCOL_BYTES:
        return _invalid(f"it has {len(protocol.raw)} bytes; expected at most {MAX_PROTOCOL_BYTES}")
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader < 1 or writer < 1:
        return _invalid(f"versions are {reader} and {writer}; expected 1 or more")
    if reader > READER_FEATURES_VERSION or writer > WRITER_FEATURES_VERSION:
        return _unsupported(
            f"reader version {reader} and writer version {writer}; at most "
            f"{READER_FEATURES_VERSION} and {WRITER_FEATURES_VERSION} are known"
        )
    if reader == READER_FEATURES_VERSION and writer != WRITER_FEATURES_VERSION:
        return _invalid(
            f"reader version {reader} needs writer version {WRITER_FEATURES_VERSION}, not {writer}"
        )
    for field, features, of, version, first in (
        ("readerFeatures", protocol.reader_features, "reader", reader, READER_FEATURES_VERSION),
        ("writerFeatures", protocol.writer_features, "writer", writer, WRITER_FEATURES_VERSION),
    ):
        if features is None and version == first:
            return _invalid(f"{of} version {first} needs {field}, and there are none")
        if features is not None and version != first:
            return _invalid(f"{field} go with {of} version {first} alone, not with {version}")
    return _check_listed(protocol)


_remembered_support = remember(_check_supported, weigh=lambda protocol: len(protocol.raw))


def _check_listed(protocol: Protocol) -> Invalid | None:
    for_readers = protocol.reader_features or frozenset()
    for_writers = protocol.writer_features or frozenset()
    unsupported = (for_readers | for_writers) - SUPPORTED_WRITER_FEATURES - LEGACY.keys()
    if unsupported:
        return _unsupported(f"the features {described(unsupported)}")
    for name in sorted(for_readers | for_writers):
        feature = FEATURES[name]
        by_version = feature.legacy is not None and (
            feature.legacy[0] <= protocol.min_reader_version < READER_FEATURES_VERSION
        )
        if name not in for_writers:
            return _invalid(f"the feature {name} is in readerFeatures but not in writerFeatures")
        if name in for_readers and not feature.for_readers:
            return _invalid(f"the feature {name} is for writers only, but is in readerFeatures")
        if feature.for_readers and name not in for_readers and not by_version:
            return _invalid(f"the feature {name} is in writerFeatures but not in readerFeatures")
    if CATALOG_MANAGED in for_writers and IN_COMMIT_TIMESTAMP not in for_writers:
        return _invalid(f"the feature {CATALOG_MANAGED} needs the feature {IN_COMMIT_TIMESTAMP}")
    return None


def described(features: Iterable[str]) -> str:
    """Names for a message, with the reason where a feature is known and refused."""
    return ", ".join(
        f"{name!r} ({NOT_CARRIED[name]})" if name in NOT_CARRIED else repr(name)
        for name in sorted(features)
    )


def check_transition(old: Protocol, new: Protocol) -> Invalid | None:
    """What keeps a table from going from one protocol to the other: what `check_supported` says
    of the new one, or `protocol-downgrade` where it drops a feature of the old one."""
    invalid = check_supported(new)
    if invalid is None and removes_features(new, old):
        dropped = sorted(implied_features(old) - implied_features(new))
        return Invalid(
            code=Code.PROTOCOL_DOWNGRADE,
            detail=f"the protocol of a table cannot be lowered: the new one drops {dropped}",
        )
    return invalid


def removes_features(new: Protocol, old: Protocol) -> bool:
    """Delta's isProtocolRemovingFeatures; unlike there, unknown features count, too."""
    return not implied_features(old) <= implied_features(new)


def added_features(new: Protocol, old: Protocol) -> frozenset[str]:
    """What the new protocol supports and the old one does not."""
    return implied_features(new) - implied_features(old)


def fails_concurrent(features: Iterable[str]) -> bool:
    """True where adding any of these features must fail concurrent transactions; an unknown
    feature must."""
    return any(name not in FEATURES or name in FAILS_CONCURRENT_AT_UPGRADE for name in features)


def required_features(
    properties: TableProperties, schema: StructType, *, catalog_managed: bool
) -> frozenset[str]:
    """The features that these properties and this schema use, and those that these require."""
    used = {PROPERTY_FEATURES[name] for name in properties.enabled & PROPERTY_FEATURES.keys()}
    used |= {
        feature for name, feature in PRESENT_FEATURES.items() if name in properties.configuration
    }
    if properties.constraints:
        used.add("checkConstraints")
    if properties.column_mapping:
        used.add(COLUMN_MAPPING)
    if properties.configuration.get("delta.checkpointPolicy", "classic").lower() != "classic":
        used.add("v2Checkpoint")
    if catalog_managed:
        used.add(CATALOG_MANAGED)
    for _, field, _ in walk(schema):
        used |= {FIELD_FEATURES[key] for key in field.metadata.keys() & FIELD_FEATURES.keys()}
        used |= set(_type_features(field.type))
    return _with_requirements(used)


def _type_features(data_type: DataType) -> Iterable[str]:
    match data_type:
        case ArrayType(element=element):
            yield from _type_features(element)
        case MapType(key=key, value=value):
            yield from _type_features(key)
            yield from _type_features(value)
        case StructType():
            return
        case _ if data_type in TYPE_FEATURES:
            yield TYPE_FEATURES[data_type]


def missing_features(
    protocol: Protocol, properties: TableProperties, schema: StructType
) -> frozenset[str]:
    """Features that the metadata uses and the protocol does not support. A preview of a feature
    stands for the feature."""
    supported = implied_features(protocol)
    return frozenset(
        name
        for name in required_features(properties, schema, catalog_managed=False)
        if name not in supported and f"{name}-preview" not in supported
    )


def with_features(protocol: Protocol, features: Iterable[str]) -> Protocol:
    """The lowest protocol that supports what `protocol` does, these features and what they
    require (Delta: Protocol.merge): a legacy one where one says exactly that."""
    return _lowest(implied_features(protocol) | _with_requirements(features))


def protocol_for(
    properties: TableProperties, schema: StructType, *, catalog_managed: bool
) -> Protocol:
    """The lowest protocol that a new table needs (Delta: Protocol.forNewTable): what it uses and
    what its properties request, on top of reader version 1 and writer version 2. It may ask for
    more than is supported; `check_supported` checks it."""
    reader, writer = properties.requested_versions or (1, 2)
    if writer < WRITER_FEATURES_VERSION:
        reader = min(reader, READER_FEATURES_VERSION - 1)
    base = implied_features(Protocol(min_reader_version=reader, min_writer_version=writer))
    requested = {SPELLING.get(name.lower(), name) for name in properties.requested_features}
    return _lowest(
        base
        | _with_requirements(requested)
        | required_features(
            properties, schema, catalog_managed=catalog_managed or CATALOG_MANAGED in requested
        )
    )


def _with_requirements(features: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    open_ = list(features)
    while open_:
        name = open_.pop()
        if name not in found:
            found.add(name)
            open_.extend(FEATURES[name].requires if name in FEATURES else ())
    return frozenset(found)


def _lowest(features: frozenset[str]) -> Protocol:
    known = [FEATURES[name] for name in features if name in FEATURES]
    for_readers = frozenset(feature.name for feature in known if feature.for_readers)
    listed_readers = {name for name in for_readers if name not in LEGACY}
    reader = READER_FEATURES_VERSION if listed_readers else 2 if for_readers else 1
    legacy = [LEGACY.get(name, (0, WRITER_FEATURES_VERSION))[1] for name in features]
    writer = max(legacy, default=1)
    lowest = Protocol(min_reader_version=reader, min_writer_version=writer)
    if writer < WRITER_FEATURES_VERSION and implied_features(lowest) == features:
        return lowest
    return Protocol(
        min_reader_version=reader,
        min_writer_version=WRITER_FEATURES_VERSION,
        reader_features=for_readers if reader == READER_FEATURES_VERSION else None,
        writer_features=features,
    )


def _invalid(detail: str) -> Invalid:
    return Invalid(code=Code.INVALID_PROTOCOL, detail=f"the protocol is not valid: {detail}")


def _unsupported(what: str) -> Invalid:
    return Invalid(
        code=Code.UNSUPPORTED_FEATURE, detail=f"the protocol needs {what}, which is not supported"
    )
