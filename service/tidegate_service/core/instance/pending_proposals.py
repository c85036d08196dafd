"""Proposals that this instance is deciding, for whoever must not take away what they name."""

from itertools import count

from tidegate_protocol.log.actions import Add
from tidegate_protocol.proposal.transaction import Proposal

LEFT_S = 40.0
"""How long a proposal counts whose caller has gone: its decision goes on, and ends sooner."""
LEFT_WEIGHT = 50_000
"""Actions that are kept for that, of all tables: whoever sends much and leaves costs no memory."""


class PendingProposals:
    """Those of each table. Of one event loop."""

    def __init__(self) -> None:
        self._pending: dict[str, dict[int, Proposal]] = {}
        self._left: list[tuple[float, str, Proposal]] = []
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
        if proposal.weight + sum(each.weight for _, _, each in self._left) <= LEFT_WEIGHT:
            self._left.append((now_s + LEFT_S, table_id, proposal))

    def of(self, table_id: str, *, now_s: float) -> list[Proposal]:
        """Those of a table that may land."""
        self._forget(now_s)
        left = [proposal for _, of, proposal in self._left if of == table_id]
        return [*self._pending.get(table_id, {}).values(), *left]

    def _forget(self, now_s: float) -> None:
        self._left = [each for each in self._left if each[0] > now_s]


def adds_of(proposals: list[Proposal]) -> list[Add]:
    return [action for each in proposals for action in each.actions if isinstance(action, Add)]
