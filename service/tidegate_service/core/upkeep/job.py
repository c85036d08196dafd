"""One kind of upkeep, as the background runs it."""

from typing import Protocol

from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep import Done, UpkeepRecord


class Job(Protocol):
    """Run for one table at a time by whoever has claimed it. A claim can be lost while it runs, so
    two instances at once must do no harm."""

    @property
    def kind(self) -> str:
        """What its rows in the index are found by: an `UpkeepKind`, or `HOOK` and a name."""
        ...

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        """Do what is due, and say when it is due again; nothing where it turns out not to be due
        yet. A `Done` with a trouble says what hinders it. Raises `ServiceError` where it could not
        be done."""
        ...
