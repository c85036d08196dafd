"""Proposals that this instance is deciding, for whoever must not take away what they name."""

from itertools import count

from tidegate_protocol.log.actions import Add
from tidegate_protocol.proposal.transaction import Proposal

LEFT_S = 40.0
"""How long a proposal counts whose caller has gone: its decision goes on, and ends sooner."""
LEFT_WEIGHT = 50_000
"""Actions that are kept for that, of all tables: whoever sends much and leaves costs no memory.
Of a table with more, it is known for as long that not all is known."""


class PendingProposals:
    """Those of each table. Of one event loop."""

    def __init__(self, *, left_weight: int = LEFT_WEIGHT) -> None:
        self._left_weight = left_weight
        self._pending: dict[str, dict[int, Proposal]] = {}
        self._left: list[tuple[float, str, Proposal]] = []
        self._not_kept: dict[str, float] = {}
        self._turns = count()

    def begin(self, table_id: str, proposal: Proposal) -> int:
        """What to end it by; copies of a proposal are each pending."""
        turn = next(self._turns)
        self._pending.setdefault(table_id, {})[turn] = proposal
        return turn

    def end(self, table_id: str, turn: int) -> Proposal:
        """It is decided."""
        of_table = self._pending[table_id]
        proposal = of_table.pop(turn)
        if not of_table:
            del self._pending[table_id]
        return proposal

    def leave(self, table_id: str, turn: int, *, now_s: float) -> None:
        """Nobody waits for it any more; it may be decided yet."""
        proposal = self.end(table_id, turn)
        self._forget(now_s)
        if proposal.weight + sum(each.weight for _, _, each in self._left) <= self._left_weight:
            self._left.append((now_s + LEFT_S, table_id, proposal))
        else:
            self._not_kept[table_id] = now_s + LEFT_S

    def of(self, table_id: str, *, now_s: float) -> list[Proposal] | None:
        """Those of a table that may land; None where there may be others, too, which were not
        kept."""
        self._forget(now_s)
        if table_id in self._not_kept:
            return None
        left = [proposal for _, of, proposal in self._left if of == table_id]
        return [*self._pending.get(table_id, {}).values(), *left]

    def _forget(self, now_s: float) -> None:
        self._left = [each for each in self._left if each[0] > now_s]
        self._not_kept = {of: until for of, until in self._not_kept.items() if until > now_s}


def adds_of(proposals: list[Proposal]) -> list[Add]:
    return [action for each in proposals for action in each.actions if isinstance(action, Add)]
