"""Which winners a transaction has to be checked against, and which it cannot conflict with.

A winner is indexable where it does nothing but add and remove files and write application
transactions. An indexable winner meets a transaction only over what it holds: a file of a partition
that was read, a path, an application id. Every other winner may mean anything to anybody.

What is named here is more than what conflicts, never less: the rules (`conflicts`) are asked of
every winner that is named, and of no other. Whoever adds a rule has to ask what of a winner it
looks at, and whether that is named here.
"""

from collections.abc import Collection, Iterator, Sequence
from heapq import merge
from typing import NamedTuple

from tidegate_protocol.conflict.checker import spares_by_statistics
from tidegate_protocol.conflict.postings import Postings, tail
from tidegate_protocol.conflict.row_tracking import only_row_ids
from tidegate_protocol.features import table_features
from tidegate_protocol.features.known import ROW_TRACKING
from tidegate_protocol.features.table_features import may_have_vectors
from tidegate_protocol.log.actions import Partition, UnknownAction, has_any
from tidegate_protocol.log.paths import identity
from tidegate_protocol.proposal import isolation, operations
from tidegate_protocol.proposal.transaction import (
    IsolationLevel,
    PreparedTransaction,
    WinningCommit,
    gives_vectors_alone,
)


def is_indexable(winner: WinningCommit) -> bool:
    """Whether a winner is one that a `WinnerIndex` knows its way about."""
    if winner.metadata or winner.protocol or winner.domains or winner.unknown:
        return False
    return not winner.gives_vectors_alone


def needs_every_winner(txn: PreparedTransaction) -> bool:
    """Whether even an indexable winner may change the transaction, or conflict with it over more
    than partitions, paths and application ids."""
    return (
        bool(txn.demands)
        or txn.proposal.operation == operations.RESTORE
        or table_features.supports(txn.protocol, ROW_TRACKING)
        or (not txn.is_blind_append and has_any(txn.actions, UnknownAction))
        or (
            may_have_vectors(txn.read.protocol, txn.protocol)
            and txn.made.of(txn.actions, gives_vectors_alone)
        )
    )


class _Entry(NamedTuple):
    """The keys of a winner. They are kept, since making them from its paths takes long."""

    added_by: Postings[Partition]
    partitions: Collection[Partition]
    removed: Collection[str]
    app_ids: Collection[str]


class WinnerIndex:
    """The indexable winners of some versions without a gap, by what a transaction may meet them
    over."""

    def __init__(self) -> None:
        self._blindly_added = Postings[Partition]()
        self._added = Postings[Partition]()
        self._removed = Postings[str]()
        self._applications = Postings[str]()
        self._entries: dict[int, _Entry] = {}

    def append(self, winner: WinningCommit) -> None:
        """Takes in the next winner, an indexable one."""
        is_blind = isolation.is_blind_winner(winner)
        entry = _Entry(
            added_by=self._blindly_added if is_blind else self._added,
            partitions=_partitions(winner),
            removed=_removed_paths(winner),
            app_ids=_app_ids(winner),
        )
        self._entries[winner.version] = entry
        entry.added_by.append(winner.version, entry.partitions)
        self._removed.append(winner.version, entry.removed)
        self._applications.append(winner.version, entry.app_ids)

    def drop_after(self, version: int) -> None:
        """Takes back every winner after this version."""
        dropped = [newer for newer in self._entries if newer > version]
        if not dropped:
            return
        for newest in reversed(dropped):
            entry = self._entries.pop(newest)
            entry.added_by.drop(newest, entry.partitions)
            self._removed.drop(newest, entry.removed)
            self._applications.drop(newest, entry.app_ids)
        for postings in (self._blindly_added, self._added):
            postings.restore_order()

    def forget(self, version: int) -> None:
        """Forgets a winner, the oldest one, if it was taken in."""
        entry = self._entries.pop(version, None)
        if entry is None:
            return
        entry.added_by.forget(version, entry.partitions)
        self._removed.forget(version, entry.removed)
        self._applications.forget(version, entry.app_ids)

    def candidates(self, txn: PreparedTransaction, others: Sequence[int]) -> Iterator[int]:
        """The versions after `txn.checked_through` that it has to be checked against, in order,
        some more than once. `others` are the winners that are not indexable. Not to be asked about
        a transaction that needs every winner."""
        after = txn.checked_through
        found = [tail(others, after)]
        app_ids = txn.proposal.reads.app_ids
        if app_ids and self._applications.any_after(after):
            found += [
                tail(self._applications.of(app_id), after)
                for app_id in self._applications.held(app_ids)
            ]
        found += self._added_to_reads(txn)
        found += self._removed_from(txn)
        return merge(*(versions for versions in found if versions))

    def _added_to_reads(self, txn: PreparedTransaction) -> Iterator[Sequence[int]]:
        """The winners that the rule on added files does not pass over."""
        after = txn.checked_through
        if txn.is_blind_append or txn.isolation_level is IsolationLevel.SNAPSHOT_ISOLATION:
            return
        spares_blind = (
            txn.isolation_level is IsolationLevel.WRITE_SERIALIZABLE and not txn.metadata_changed
        )
        looked_at = [self._added] if spares_blind else [self._added, self._blindly_added]
        use_statistics = txn.made.of(txn.metadata, spares_by_statistics)
        everything = txn.read_filter.covers_everything(use_statistics=use_statistics)
        for postings in looked_at:
            if everything:
                yield tail(postings.versions, after)
                continue
            for partition in txn.read_filter.covered(postings.keys_after(after)):
                yield tail(postings.of(partition), after)

    def _removed_from(self, txn: PreparedTransaction) -> Iterator[Sequence[int]]:
        """The winners that the rules on removed files may not pass over."""
        after = txn.checked_through
        reads = txn.proposal.reads
        if not self._removed.any_after(after):
            return
        if reads.whole_table:
            yield tail(self._removed.versions, after)
            return
        own = (txn.removed_files().keys(), txn.added_files().keys())
        for mine in (*own, reads.file_identities()):
            for path in self._removed.held(mine):
                yield tail(self._removed.of(path), after)


def _partitions(winner: WinningCommit) -> Collection[Partition]:
    if only_row_ids(winner.operation, (*winner.adds, *winner.removes)):
        return ()
    if len(winner.adds) == 1:
        return (tuple(winner.adds[0].partition_values.items()),)
    return {tuple(add.partition_values.items()) for add in winner.adds}


def _removed_paths(winner: WinningCommit) -> Collection[str]:
    return {identity(removed.path) for removed in winner.removes} if winner.removes else ()


def _app_ids(winner: WinningCommit) -> Collection[str]:
    return {txn.app_id for txn in winner.txns} if winner.txns else ()
