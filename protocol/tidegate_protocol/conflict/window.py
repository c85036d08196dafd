"""The newest commits of a table, held so that many transactions can be checked against them."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tidegate_protocol.conflict import checker
from tidegate_protocol.conflict.postings import tail
from tidegate_protocol.conflict.window_index import WinnerIndex, is_quiet, needs_every_winner
from tidegate_protocol.log.actions import Action
from tidegate_protocol.log.spooled import SpooledAdd, SpooledRemove
from tidegate_protocol.proposal.transaction import Conflict, PreparedTransaction, WinningCommit

_NOTHING: Mapping[str, str | None] = {}


class CommitWindow:
    """The newest commits of one table, without a gap, as the conflict rules look at them.

    It holds the versions `after` + 1 to `through`, and is empty where the two are equal. It is
    mutable and belongs to one owner at a time. `weight` is the number of actions held, and of the
    kilobytes that they are.
    """

    def __init__(self, *, after: int) -> None:
        """An empty window, whose first winner is version `after` + 1."""
        self.after = after
        self.weight = 0
        self._winners: list[WinningCommit] = []
        self._table_changes: list[int] = []
        self._others: list[int] = []
        self._index = WinnerIndex()
        # A commit is looked into when a transaction first asks: most only append.
        self._indexed = after

    @property
    def through(self) -> int:
        """The newest version that is held, `after` where there is none."""
        return self.after + len(self._winners)

    def append(self, winner: WinningCommit) -> None:
        """Holds one more commit. Raises `ValueError` unless it is the next one."""
        if winner.version != self.through + 1:
            raise ValueError(f"expected winner {self.through + 1}, found version {winner.version}")
        self._winners.append(winner)
        self.weight += _weight(winner)
        if _changes_table(winner):
            self._table_changes.append(winner.version)
        if not is_quiet(winner):
            self._others.append(winner.version)

    def weight_after(self, version: int) -> int:
        """The number of actions in the commits after this version."""
        return sum(map(_weight, self._winners[max(version - self.after, 0) :]))

    def drop_after(self, version: int) -> None:
        """Takes back every commit after this version. Where that is below `after`, the window is
        empty then, and its next winner is `version` + 1."""
        kept = max(version - self.after, 0)
        dropped = self._winners[kept:]
        self.weight -= sum(map(_weight, dropped))
        indexed = [w for w in dropped if w.version <= self._indexed and is_quiet(w)]
        if indexed:
            self._index.drop(indexed)
        del self._winners[kept:]
        self.after = min(self.after, version)
        self._indexed = min(self._indexed, version)
        for versions in (self._table_changes, self._others):
            del versions[bisect_right(versions, version) :]

    def trim(self, *, commits: int, weight: int) -> None:
        """Forgets the oldest commits until at most so many commits and actions are held."""
        forgotten = 0
        for winner in self._winners:
            if len(self._winners) - forgotten <= commits and self.weight <= weight:
                break
            self.weight -= _weight(winner)
            if winner.version <= self._indexed and is_quiet(winner):
                self._index.forget(winner)
            forgotten += 1
        if not forgotten:
            return
        del self._winners[:forgotten]
        self.after += forgotten
        self._indexed = max(self._indexed, self.after)
        for versions in (self._table_changes, self._others):
            del versions[: bisect_right(versions, self.after)]

    def winners(self, after: int) -> Sequence[WinningCommit]:
        """The commits after this version, in order. Raises `ValueError` where the window begins
        too late to tell."""
        self._check_holds(after)
        return self._winners[after - self.after :]

    def changes_table(self, after: int) -> bool:
        """Whether a commit after this version holds metaData or protocol. Raises as above."""
        self._check_holds(after)
        return bool(self._table_changes) and self._table_changes[-1] > after

    def check_conflicts(self, txn: PreparedTransaction) -> PreparedTransaction | Conflict:
        """What `checker.check_conflicts` says of the transaction and the commits that it did not
        see, in less time than to ask each of them. Raises `ValueError` where the window begins too
        late to tell."""
        self._check_holds(txn.checked_through)
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
        if txn.is_blind_append and not txn.proposal.reads.app_ids:
            return iter(tail(self._others, txn.checked_through))
        for winner in self._winners[self._indexed - self.after :]:
            if is_quiet(winner):
                self._index.append(winner)
        self._indexed = self.through
        return self._index.candidates(txn, self._others)

    def _check_holds(self, after: int) -> None:
        if after < self.after:
            raise ValueError(f"expected the commits after {after}, found those after {self.after}")


def _changes_table(winner: WinningCommit) -> bool:
    return winner.metadata is not None or winner.protocol is not None


def _weight(winner: WinningCommit) -> int:
    lists = (winner.adds, winner.removes, winner.txns, winner.domains, winner.unknown)
    singles = (winner.metadata, winner.protocol, winner.commit_info)
    weight = sum(single is not None for single in singles)
    for actions in lists:
        weight += len(actions) + sum(map(_kilobytes, actions))
    return weight + sum(_kilobytes(single) for single in singles if single is not None)


def _kilobytes(action: Action) -> int:
    """The whole ones that an action holds."""
    if not isinstance(action, SpooledAdd | SpooledRemove):
        return len(action.raw) >> 10
    # Its bytes are elsewhere.
    held = len(action.path)
    for texts in (action.tags, action.partition_values):
        for name, value in (texts or _NOTHING).items():
            held += len(name) + len(value or "")
    return held >> 10
