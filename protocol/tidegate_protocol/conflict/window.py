"""The newest commits of a table, held so that many transactions can be checked against them."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidegate_protocol.conflict import checker
from tidegate_protocol.conflict.postings import tail
from tidegate_protocol.conflict.window_index import WinnerIndex, is_indexable, needs_every_winner
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction, WinningCommit

_CHARACTERS = 64
"""So many characters of predicates, evaluated for a partition, take about as long as an action."""


class CommitWindow:
    """The newest commits of one table, without a gap, as the conflict rules look at them.

    It holds the versions `after` + 1 to `through`, and is empty where the two are equal. It is
    mutable and belongs to one owner at a time.
    """

    def __init__(self, *, after: int) -> None:
        """An empty window, whose first winner is version `after` + 1."""
        self.after = after
        self._winners: list[WinningCommit] = []
        # Of all that was ever held, up to and with each winner, and what is forgotten of it.
        self._weights: list[int] = []
        self._forgotten_weight = 0
        self._table_changes: list[int] = []
        self._others: list[int] = []
        self._removing: list[int] = []
        self._index = WinnerIndex()
        # A commit is looked into when a transaction first asks: most only append.
        self._indexed = after

    @property
    def through(self) -> int:
        """The newest version that is held, `after` where there is none."""
        return self.after + len(self._winners)

    @property
    def weight(self) -> int:
        """That of all winners held."""
        return self.weight_after(self.after)

    def append(self, winner: WinningCommit) -> None:
        """Holds one more commit. Raises `ValueError` unless it is the next one."""
        if winner.version != self.through + 1:
            raise ValueError(f"expected winner {self.through + 1}, found version {winner.version}")
        self._winners.append(winner)
        self._weights.append(self._weight_through(self.through - 1) + winner.weight)
        if _changes_table(winner):
            self._table_changes.append(winner.version)
        if not is_indexable(winner):
            self._others.append(winner.version)
        if winner.removes:
            self._removing.append(winner.version)

    def weight_after(self, version: int) -> int:
        """That of the commits after this version."""
        return self._weight_through(self.through) - self._weight_through(version)

    def weight_of(self, txn: PreparedTransaction) -> int:
        """How much work it is to check the transaction, in actions: what its winners hold, and as
        many of its own as each of them is compared with. What is not indexed yet is, first.
        Raises as `check_conflicts`."""
        after = txn.checked_through
        self._check_reaches(after)
        newer = self.weight_after(after)
        if needs_every_winner(txn) or self.changes_table(after):
            each = len(txn.actions) + len(txn.demands)
            return newer * (1 + len(txn.demands)) + (self.through - after) * each
        others = len(tail(self._others, after))
        if _is_quiet(txn):
            by_others = newer + others * len(txn.actions) if others else 0
            if not self._removes_after(after):
                return by_others
            return max(self.weight_after(self._indexed) + len(txn.actions), by_others)
        predicates = newer * txn.proposal.reads.length // _CHARACTERS
        return max(self.weight_after(self._indexed), newer + others * len(txn.actions), predicates)

    def drop_after(self, version: int) -> None:
        """Takes back every commit after this version. Where that is below `after`, the window is
        empty then, and its next winner is `version` + 1."""
        kept = max(version - self.after, 0)
        self._index.drop_after(version)
        del self._winners[kept:], self._weights[kept:]
        self.after = min(self.after, version)
        self._indexed = min(self._indexed, version)
        for versions in (self._table_changes, self._others, self._removing):
            del versions[bisect_right(versions, version) :]

    def trim(self, *, commits: int, weight: int) -> None:
        """Forgets the oldest commits until at most so many commits and actions are held."""
        forgotten = 0
        for winner in self._winners:
            is_weight_kept = self.weight_after(winner.version - 1) <= weight
            if len(self._winners) - forgotten <= commits and is_weight_kept:
                break
            self._index.forget(winner.version)
            forgotten += 1
        if not forgotten:
            return
        self._forgotten_weight = self._weights[forgotten - 1]
        del self._winners[:forgotten], self._weights[:forgotten]
        self.after += forgotten
        self._indexed = max(self._indexed, self.after)
        for versions in (self._table_changes, self._others, self._removing):
            del versions[: bisect_right(versions, self.after)]

    def winners(self, after: int) -> Sequence[WinningCommit]:
        """The commits after this version, in order. Raises `ValueError` where the window begins
        too late to tell."""
        self._check_reaches(after)
        return self._winners[after - self.after :]

    def changes_table(self, after: int) -> bool:
        """Whether a commit after this version holds metaData or protocol. Raises as above."""
        self._check_reaches(after)
        return bool(self._table_changes) and self._table_changes[-1] > after

    def check_conflicts(self, txn: PreparedTransaction) -> PreparedTransaction | Conflict:
        """What `checker.check_conflicts` says of the transaction and the commits that it did not
        see, in less time than to ask each of them. Raises `ValueError` where the window begins too
        late to tell."""
        self._check_reaches(txn.checked_through)
        while txn.checked_through < self.through:
            if needs_every_winner(txn):
                return checker.check_conflicts(txn, self.winners(txn.checked_through))
            outcome = self._checked_by_candidates(txn)
            if isinstance(outcome, Conflict):
                return outcome
            txn = outcome
        return txn

    def _checked_by_candidates(self, txn: PreparedTransaction) -> PreparedTransaction | Conflict:
        """The transaction past every winner, or past one that gave it another table: then others
        may matter to it than before."""
        before = txn
        for version in self._candidates(txn):
            if version <= txn.checked_through:
                continue
            outcome = checker.check_conflicts(
                replace(txn, checked_through=version - 1),
                (self._winners[version - self.after - 1],),
            )
            if isinstance(outcome, Conflict):
                return outcome
            txn = outcome
            if txn.metadata is not before.metadata or txn.protocol is not before.protocol:
                return txn
        return replace(txn, checked_through=self.through)

    def _candidates(self, txn: PreparedTransaction) -> Iterator[int]:
        if _is_quiet(txn) and not self._removes_after(txn.checked_through):
            return iter(tail(self._others, txn.checked_through))
        for winner in self._winners[self._indexed - self.after :]:
            if is_indexable(winner):
                self._index.append(winner)
        self._indexed = self.through
        return self._index.candidates(txn, self._others)

    def _removes_after(self, after: int) -> bool:
        return bool(self._removing) and self._removing[-1] > after

    def _weight_through(self, version: int) -> int:
        return (
            self._weights[version - self.after - 1]
            if version > self.after
            else (self._forgotten_weight)
        )

    def _check_reaches(self, after: int) -> None:
        if after < self.after:
            raise ValueError(f"expected the commits after {after}, found those after {self.after}")


def _changes_table(winner: WinningCommit) -> bool:
    return winner.metadata is not None or winner.protocol is not None


def _is_quiet(txn: PreparedTransaction) -> bool:
    """Whether an indexable winner that removes no file cannot mean anything to the transaction."""
    return txn.is_blind_append and not txn.proposal.reads.app_ids
