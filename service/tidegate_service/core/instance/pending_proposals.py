"""Proposals that this instance is deciding, for whoever must not take away what they name."""

from tidegate_protocol.log.actions import Add
from tidegate_protocol.proposal.transaction import Proposal

LEFT_S = 120.0
"""How long a proposal counts whose caller has gone: its decision goes on, and ends sooner."""


class PendingProposals:
    """Those of each table. Of one event loop."""

    def __init__(self) -> None:
        self._pending: dict[str, dict[int, Proposal]] = {}
        self._left: list[tuple[float, str, Proposal]] = []

    def begin(self, table_id: str, proposal: Proposal) -> None:
        self._pending.setdefault(table_id, {})[id(proposal)] = proposal

    def end(self, table_id: str, proposal: Proposal) -> None:
        """It is decided."""
        of_table = self._pending[table_id]
        of_table.pop(id(proposal), None)
        if not of_table:
            del self._pending[table_id]

    def leave(self, table_id: str, proposal: Proposal, *, now_s: float) -> None:
        """Nobody waits for it any more; it may be decided yet."""
        self.end(table_id, proposal)
        self._left.append((now_s + LEFT_S, table_id, proposal))

    def of(self, table_id: str, *, now_s: float) -> list[Proposal]:
        """Those of a table that may land."""
        self._left = [each for each in self._left if each[0] > now_s]
        left = [proposal for _, of, proposal in self._left if of == table_id]
        return [*self._pending.get(table_id, {}).values(), *left]


def adds_of(proposals: list[Proposal]) -> list[Add]:
    return [action for each in proposals for action in each.actions if isinstance(action, Add)]
