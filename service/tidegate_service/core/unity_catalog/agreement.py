"""Whether what a client says of a table agrees with the commit that it says it beside.

The log is the truth: nothing that is said becomes part of the table. What does not agree is a
client's mistake, or a file that is not the one it wrote.
"""

from collections.abc import Mapping, Sequence

import msgspec

from tidegate_protocol.base.problems import Code
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.features.row_tracking import DOMAIN
from tidegate_protocol.features.table_features import implied_features
from tidegate_protocol.log.actions import Action, DomainMetadata, Metadata, Protocol
from tidegate_protocol.schema.table_schema import InvalidSchema, parse_schema
from tidegate_service.core.errors import Refused
from tidegate_service.core.unity_catalog.requests import Definition

_DOMAIN_NAME = "domainName"
_OF_PROTOCOL = (
    "delta.feature.",
    "delta.minReaderVersion",
    "delta.minWriterVersion",
    "delta.lastUpdateVersion",
    "delta.lastCommitTimestamp",
)
"""Among the properties that this API answers, what is made of the protocol and the version. No
metaData has them."""


def check_agreement(
    said: Definition,
    actions: Sequence[Action],
    *,
    before: Metadata | None,
    protocol_before: Protocol | None,
) -> None:
    """Raise `Refused` unless the commit's actions make the table what is said of it. `before` and
    `protocol_before` are the table's at the version before, None for its first version."""
    own = next((action for action in actions if isinstance(action, Metadata)), None)
    metadata = own or before
    protocol = next((a for a in actions if isinstance(a, Protocol)), protocol_before)
    if metadata is None or protocol is None:
        raise _refused("the first commit of a table has a protocol and a metaData action")
    if said.columns is not None and _struct(said.columns) != _struct_of(metadata):
        raise _refused("the columns are not those of the commit's metaData")
    if said.partition_columns is not None and said.partition_columns != metadata.partition_columns:
        raise _refused(
            f"the partition columns are {list(said.partition_columns)}, and those of the commit's "
            f"metaData are {list(metadata.partition_columns)}"
        )
    if said.comment_is_said and (said.comment or None) != (metadata.description or None):
        raise _refused("the comment is not the description of the commit's metaData")
    if said.protocol is not None and _features(said.protocol) != _features(protocol):
        raise _refused("the protocol is not that of the commit")
    _check_properties(said, metadata.configuration)
    _check_domains(said, actions)


def _check_properties(said: Definition, configuration: Mapping[str, str]) -> None:
    for name, value in said.set_properties.items():
        if name.startswith(_OF_PROTOCOL):
            continue
        if configuration.get(name) != value:
            raise _refused(
                f"the property {excerpt(name)} is set to {excerpt(value)}, and in the commit's "
                f"metaData it is {excerpt(str(configuration.get(name)))}"
            )
    kept = sorted(name for name in said.removed_properties if name in configuration)
    if kept:
        raise _refused(f"the properties {kept} are removed, and the commit's metaData has them")


def _check_domains(said: Definition, actions: Sequence[Action]) -> None:
    """Row tracking's domain is not compared: of a commit that met a winner, Delta Spark says what
    the winner has made of it, not what the commit does."""
    written = {action.domain: action for action in actions if isinstance(action, DomainMetadata)}
    for name, value in said.set_domains.items():
        if name == DOMAIN:
            continue
        action = written.get(name)
        if action is None or action.removed:
            raise _refused(f"the metadata domain {excerpt(name)} is not set by the commit")
        if _unnamed(_json(action.configuration)) != _unnamed(value):
            raise _refused(
                f"the metadata domain {excerpt(name)} is set to "
                f"{excerpt(msgspec.json.encode(value))}, and in the commit it is "
                f"{excerpt(action.configuration)}"
            )
    for name in sorted(said.removed_domains):
        action = written.get(name)
        if action is None or not action.removed:
            raise _refused(f"the metadata domain {excerpt(name)} is not removed by the commit")


def _struct(columns: str) -> object:
    try:
        return parse_schema(columns)
    except InvalidSchema as error:
        raise Refused(f"the columns: {error}", code=Code.INVALID_SCHEMA) from None


def _struct_of(metadata: Metadata) -> object:
    try:
        return parse_schema(metadata.schema_string)
    except InvalidSchema as error:
        raise Refused(f"the commit's metaData: {error}", code=Code.INVALID_SCHEMA) from None


def _features(protocol: Protocol) -> tuple[int, int, frozenset[str]]:
    return protocol.min_reader_version, protocol.min_writer_version, implied_features(protocol)


def _json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None


def _unnamed(configuration: object) -> object:
    """A domain's configuration without `domainName`, which Delta Spark writes into the log and
    leaves out of what it tells a catalog."""
    if not isinstance(configuration, Mapping):
        return configuration
    return {key: value for key, value in configuration.items() if key != _DOMAIN_NAME}


def _refused(detail: str) -> Refused:
    return Refused(detail, code=Code.INVALID_REQUEST)
