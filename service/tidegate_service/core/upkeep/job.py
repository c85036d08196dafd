"""One kind of upkeep, as the background runs it."""

from typing import Protocol

from tidegate_service.core.ports.records import TableRecord
from tidegate_service.core.ports.upkeep.upkeep import Done, UpkeepRecord


class Job(Protocol):
    """Run for one table at a time, by the instance that has claimed the table. A claim can be lost
    during a run, so two instances that run it at once must do no harm."""

    @property
    def kind(self) -> str:
        """What its rows in the index are found by: an `UpkeepKind`, or `HOOK` and a name."""
        ...

    async def run(self, table: TableRecord, record: UpkeepRecord) -> Done:
        """Do what is due, if anything is, and say when the job is due again. A `Done` with a
        trouble says what hinders it. Raises `ServiceError` where it could not be done."""
        ...
