"""What the index has of the winners of a transaction, for a check without the table's lock."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from tidegate_protocol.proposal.transaction import WinningCommit


class WinnersIndex(Protocol):
    """Read past every lock: what is committed. A version stays what it is while the table's epoch
    and the database do."""

    async def row_id_high_water_mark(self, table_id: str) -> int:
        """As `core.ports.index.CommitSection.row_id_high_water_mark`."""
        ...

    def winner_pages(
        self, table_id: str, after: int, through: int, *, most_bytes: int
    ) -> AsyncGenerator[Sequence[WinningCommit], None]:
        """Versions `after + 1 .. through` in order, a page at a time, which ends early where one is
        missing. Raises `core.ports.index.TakesLong` where they have more bytes than `most_bytes` in
        memory, all pages together."""
        ...
