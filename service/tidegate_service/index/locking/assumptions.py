"""What transactions assume of live files, looked up in the index under the table's lock."""

from collections.abc import Collection, Mapping
from uuid import UUID

from tidegate_protocol.log.actions import LogicalFile
from tidegate_protocol.prepare.live_files import Assumed, FileAssumptions
from tidegate_service.index.locking.unit_of_work import UnitOfWork
from tidegate_service.index.reading.broken_assumptions import broken
from tidegate_service.index.rows.effects import Effects, file_key_of
from tidegate_service.index.rows.keys import key


class AssumptionsOfTable:
    """Which files break the assumptions of a table's transactions (`FileAssumptions.broken`).

    What is live at a version never changes. So what was looked up for all transactions when the
    lock was granted holds for as long as the index of the table is not made anew. What was live at
    the head of then is live at a later one where no commit since names the path.
    """

    def __init__(self, unit: UnitOfWork, table_id: UUID, head: int) -> None:
        self._unit = unit
        self._table_id = table_id
        self._head = head
        self._known: dict[str, tuple[Assumed, Collection[LogicalFile]]] = {}
        self._named: set[str] = set()

    def know(self, transaction_id: str, assumed: Assumed, files: Collection[LogicalFile]) -> None:
        self._known[transaction_id] = assumed, files

    def follow(self, effects: Effects) -> None:
        """See a commit of this section."""
        if self._known:
            self._named.update(path for path, _ in effects.files)
            self._named.update(file_key_of(action)[0] for action in effects.bulk)

    def clear(self) -> None:
        """The index of the table is made anew."""
        self._known.clear()
        self._head = -1

    async def broken(
        self, transaction_id: str, assumptions: FileAssumptions, version: int
    ) -> Collection[LogicalFile]:
        if transaction_id in self._known:
            assumed, files = self._known[transaction_id]
            if assumed == (assumptions, version):
                return files
            if assumed == (assumptions, self._head) and version > self._head:
                paths = {path for path, _ in assumptions.removed} | assumptions.added.keys()
                if self._named.isdisjoint(map(key, paths)):
                    return files
        if version > self._head:
            await self._unit.flush()
        (files,) = await broken(self._unit.ask, [(self._table_id, version, assumptions)])
        return files


async def look_up(
    unit: UnitOfWork,
    asked: Mapping[str, Mapping[str, Assumed]],
    tables: Mapping[str, AssumptionsOfTable],
) -> None:
    """Look up the assumptions of several tables' transactions, by table and transaction id."""
    each = [
        (table_id, transaction_id, assumed)
        for table_id, of_table in asked.items()
        for transaction_id, assumed in of_table.items()
    ]
    questions = [(UUID(table_id), version, known) for table_id, _, (known, version) in each]
    found = await broken(unit.ask, questions)
    for (table_id, transaction_id, assumed), files in zip(each, found, strict=True):
        tables[table_id].know(transaction_id, assumed, files)
