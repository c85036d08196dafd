"""The protocol rule (Delta: ConflictChecker.checkProtocolCompatibility).

Delta's check of features that fail concurrent transactions at an upgrade, off by default there,
is on here: it only refuses more.
"""

from dataclasses import replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.answer import cannot_check, conflict
from tidegate_protocol.features import table_features
from tidegate_protocol.log.actions import Protocol
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction, WinningCommit


def protocol_rule(
    txn: PreparedTransaction, winner: WinningCommit
) -> PreparedTransaction | Conflict:
    """A winner's protocol is taken over if nothing the transaction did could violate it."""
    protocol = winner.protocol
    if protocol is None:
        return txn
    if any(isinstance(action, Protocol) for action in txn.actions):
        what = "changed the protocol, which this transaction changes, too"
        return conflict(Code.PROTOCOL_CHANGED, winner, what)
    unsupported = table_features.check_supported(protocol)
    if unsupported is not None:
        return cannot_check(winner, f"changed the protocol: {unsupported.detail}")
    # The transaction's protocol is that of the version before the winner: what earlier winners
    # added was checked when they were.
    if table_features.removes_features(protocol, txn.protocol):
        return conflict(Code.PROTOCOL_CHANGED, winner, "dropped features from the protocol")
    added = table_features.added_features(protocol, txn.protocol)
    if table_features.fails_concurrent(added):
        what = f"added the features {sorted(added)}, which concurrent transactions may violate"
        return conflict(Code.PROTOCOL_CHANGED, winner, what)
    return replace(txn, protocol=protocol)
