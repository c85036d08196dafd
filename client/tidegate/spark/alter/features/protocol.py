"""Features of the table's protocol: supported from now on, or not any more."""

from collections.abc import Mapping

from tidegate.models import Receipt
from tidegate.spark.alter.alteration import Alteration, as_json
from tidegate.spark.expressions.errors import InvalidCommand
from tidegate.spark.write.protocol import raised
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.log.actions import Protocol


def add_feature(alteration: Alteration, name: str) -> Receipt | None:
    """Have the protocol support a feature; None where it does. Raises `InvalidCommand`, and what
    `Transaction.commit` raises."""
    wanted = TableProperties(requested_features=frozenset({name}))
    return _upgrade(alteration, raised(alteration.protocol, wanted))


def upgrade_protocol(alteration: Alteration, reader: int, writer: int) -> Receipt | None:
    """Have the protocol support what these versions stand for; None where it does. Raises as
    `add_feature` does, also for versions below the table's."""
    protocol = alteration.protocol
    if reader < protocol.min_reader_version or writer < protocol.min_writer_version:
        versions = (protocol.min_reader_version, protocol.min_writer_version)
        raise InvalidCommand(
            "DELTA_INVALID_PROTOCOL_DOWNGRADE",
            f"Protocol version cannot be downgraded from {versions} to {(reader, writer)}",
        )
    wanted = TableProperties(requested_versions=(reader, writer))
    return _upgrade(alteration, raised(protocol, wanted))


def _upgrade(alteration: Alteration, protocol: Protocol) -> Receipt | None:
    if protocol == alteration.protocol:
        return None
    alteration.set_protocol(protocol)
    return alteration.commit("UPGRADE PROTOCOL", {"newProtocol": as_json(_shown(protocol))})


def _shown(protocol: Protocol) -> Mapping[str, object]:
    """As Delta's history has it."""
    shown: dict[str, object] = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    for name, features in (
        ("readerFeatures", protocol.reader_features),
        ("writerFeatures", protocol.writer_features),
    ):
        if features is not None:
            shown[name] = sorted(features)
    return shown
