"""Judging a transaction against the commits that won (Delta: ConflictChecker.scala).

Each rule is a function of the transaction and one winner. It answers with the transaction as if
it had read that winner, or with the conflict. `RULES` is the order in which they are asked; the
first conflict is the answer. What no rule understands is a conflict, never "no conflict".
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from tidegate_protocol.base.problems import Code
from tidegate_protocol.conflict.answer import cannot_check, conflict, partition_hint
from tidegate_protocol.conflict.metadata import metadata_rule
from tidegate_protocol.conflict.protocol import protocol_rule
from tidegate_protocol.conflict.row_tracking import demands_rule, only_row_ids, row_tracking_rule
from tidegate_protocol.features import row_tracking
from tidegate_protocol.features.properties import TableProperties
from tidegate_protocol.features.table_features import may_have_vectors
from tidegate_protocol.log.actions import (
    Add,
    DomainMetadata,
    Metadata,
    UnknownAction,
    file_key,
    has_any,
)
from tidegate_protocol.log.codec import with_fields
from tidegate_protocol.log.paths import identity
from tidegate_protocol.proposal import isolation, operations
from tidegate_protocol.proposal.transaction import (
    Conflict,
    IsolationLevel,
    PreparedTransaction,
    WinningCommit,
)
from tidegate_protocol.scan.clustering import CLUSTERING_DOMAIN

Rule = Callable[[PreparedTransaction, WinningCommit], PreparedTransaction | Conflict]


def check_conflicts(
    txn: PreparedTransaction, winners: Iterable[WinningCommit]
) -> PreparedTransaction | Conflict:
    """The transaction past every winner, or its first conflict.

    `winners` are the commits that follow `txn.checked_through`, in order and without a gap.
    Raises `ValueError` where they are not: missing history must never look like no conflict.
    """
    through = txn.checked_through
    for winner in winners:
        if winner.version != through + 1:
            raise ValueError(f"expected winner {through + 1}, found version {winner.version}")
        for rule in RULES:
            outcome = rule(txn, winner)
            if isinstance(outcome, Conflict):
                return outcome
            txn = outcome
        through = winner.version
    return txn if through == txn.checked_through else replace(txn, checked_through=through)


def spares_by_statistics(metadata: Metadata) -> bool:
    """Whether the table has added files spared whose statistics prove that no row was read."""
    return TableProperties.parse(metadata.configuration).statistics_disjointness


def unknown_rule(txn: PreparedTransaction, winner: WinningCommit) -> PreparedTransaction | Conflict:
    """Actions of unknown kind may mean anything, on either side."""
    for unknown in winner.unknown:
        return cannot_check(winner, f"holds an action of unknown kind {unknown.kind!r}")
    if has_any(txn.actions, UnknownAction):
        kind = next(action.kind for action in txn.actions if isinstance(action, UnknownAction))
        what = f"was followed by a transaction with an action of unknown kind {kind!r}"
        return cannot_check(winner, what)
    return txn


def domain_rule(txn: PreparedTransaction, winner: WinningCommit) -> PreparedTransaction | Conflict:
    """Two commits that write one metadata domain conflict; which values does not matter. A table
    that is replaced loses the clustering that the winner gave it."""
    theirs = {domain.domain for domain in winner.domains if domain.domain != row_tracking.DOMAIN}
    if not theirs:
        return txn
    for action in txn.actions:
        if isinstance(action, DomainMetadata) and action.domain in theirs:
            what = (
                f"wrote the metadata domain {action.domain!r}, which this transaction writes, too"
            )
            return conflict(Code.CONCURRENT_TRANSACTION, winner, what, domain=action.domain)
    lost = [domain for domain in winner.domains if domain.domain == CLUSTERING_DOMAIN]
    if lost and operations.drops_clustering(txn.proposal.operation):
        removed = with_fields(lost[-1], {"removed": True})
        return replace(txn, actions=(*txn.actions, removed))
    return txn


def application_rule(
    txn: PreparedTransaction, winner: WinningCommit
) -> PreparedTransaction | Conflict:
    """An application id that was read must not have moved; its version does not matter."""
    for theirs in winner.txns:
        if theirs.app_id in txn.proposal.reads.app_ids:
            what = f"wrote the application transaction {theirs.app_id!r}, which was read"
            return conflict(Code.CONCURRENT_TRANSACTION, winner, what, app_id=theirs.app_id)
    return txn


def added_files_rule(
    txn: PreparedTransaction, winner: WinningCommit
) -> PreparedTransaction | Conflict:
    """A file that the transaction would have read, had it been there, was added.

    Files added without data change count: the transaction may have read what they replace.
    """
    if (
        not winner.adds
        or txn.is_blind_append
        or txn.isolation_level is IsolationLevel.SNAPSHOT_ISOLATION
    ):
        return txn
    if only_row_ids(winner.operation, (*winner.adds, *winner.removes)):
        return txn
    spared = (
        txn.isolation_level is IsolationLevel.WRITE_SERIALIZABLE
        and not txn.metadata_changed
        and isolation.is_blind_winner(winner)
    )
    if spared:
        return txn
    use_statistics = txn.made.of(txn.metadata, spares_by_statistics)
    match = txn.read_filter.first_match(winner.adds, use_statistics=use_statistics)
    if match is None:
        return txn
    return conflict(
        Code.CONCURRENT_APPEND,
        winner,
        f"added {match.path!r}, which this transaction should have read",
        path=match.path,
        partition=partition_hint(txn.read.metadata, match.partition_values),
    )


def removed_read_rule(
    txn: PreparedTransaction, winner: WinningCommit
) -> PreparedTransaction | Conflict:
    """A file that was read is gone. Any isolation level; matched by path alone, so that a new
    deletion vector on the file counts. Where the whole table was read, any removal counts."""
    if not winner.removes:
        return txn
    reads = txn.proposal.reads
    read_files = reads.file_identities()
    for removed in winner.removes if read_files else ():
        path = identity(removed.path)
        if path in read_files and path not in txn.excused_reads:
            what = f"removed {removed.path!r}, which this transaction read"
            return conflict(
                Code.CONCURRENT_DELETE_READ,
                winner,
                what,
                path=removed.path,
                read_file=removed.path,
                read_vector=file_key(removed)[1],
            )
    if reads.whole_table:
        removed = winner.removes[0]
        what = f"removed {removed.path!r} from the table, all of which this transaction read"
        return conflict(Code.CONCURRENT_DELETE_READ, winner, what, path=removed.path)
    return txn


def removed_twice_rule(
    txn: PreparedTransaction, winner: WinningCommit
) -> PreparedTransaction | Conflict:
    """A file is removed by both; matched by path alone, as above."""
    if not winner.removes:
        return txn
    mine = txn.removed_files()
    for removed in winner.removes if mine else ():
        own = mine.get(identity(removed.path))
        if own is not None:
            return conflict(
                Code.CONCURRENT_DELETE_DELETE,
                winner,
                f"removed {removed.path!r}, which this transaction removes, too",
                path=removed.path,
                partition=partition_hint(txn.read.metadata, own.partition_values),
            )
    return txn


def added_again_rule(
    txn: PreparedTransaction, winner: WinningCommit
) -> PreparedTransaction | Conflict:
    """A file that is committed again (its statistics, tags or row ids) is gone, or its path is live
    with another deletion vector. Delta has no such rule: there, the file comes back."""
    adds = winner.adds if may_have_vectors(txn.read.protocol, txn.protocol) else ()
    if not (winner.removes or adds):
        return txn
    mine = txn.added_files()
    left = {identity(added.path): file_key(added) for added in adds} if mine else {}
    for removed in winner.removes if mine else ():
        path = identity(removed.path)
        own = mine.get(path)
        if own is not None and left.get(path) != file_key(own):
            return conflict(
                Code.CONCURRENT_DELETE_READ,
                winner,
                f"removed {removed.path!r}, which this transaction adds again",
                path=removed.path,
                partition=partition_hint(txn.read.metadata, own.partition_values),
            )
    for path, file in left.items():
        own = mine.get(path)
        if own is not None and file != file_key(own) and path not in txn.removed_files():
            return conflict(
                Code.CONCURRENT_APPEND,
                winner,
                f"added {own.path!r} with another deletion vector than this transaction does",
                path=own.path,
                partition=partition_hint(txn.read.metadata, own.partition_values),
            )
    return txn


def vacuum_rule(txn: PreparedTransaction, winner: WinningCommit) -> PreparedTransaction | Conflict:
    """A RESTORE adds files again that were removed long ago, and a vacuum deletes these files.
    Delta has no such rule: there, the table names files that are gone."""
    is_vacuum = winner.operation in (operations.VACUUM_START, operations.VACUUM_END)
    if is_vacuum and txn.proposal.operation == operations.RESTORE and has_any(txn.actions, Add):
        what = "deletes files that were removed before, which this transaction may add again"
        return conflict(Code.CONCURRENT_DELETE_READ, winner, what)
    return txn


RULES: tuple[Rule, ...] = (
    unknown_rule,
    protocol_rule,
    metadata_rule,
    domain_rule,
    application_rule,
    row_tracking_rule,
    demands_rule,
    added_files_rule,
    removed_read_rule,
    removed_twice_rule,
    added_again_rule,
    vacuum_rule,
)
"""What one winner is asked, in Delta's order."""
