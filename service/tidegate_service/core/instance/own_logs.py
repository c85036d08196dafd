"""Which logs of catalog-managed tables whoever publishes has seen to be their tables' own."""

from collections import OrderedDict

from tidegate_service.core.instance.log_checks import TABLES


class OwnLogs:
    """The tables whose logs were seen to be their own: for each, the database and the
    version that it was published to. A table that goes back behind that version is looked at
    again."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def has(self, table_id: str, through: int, *, database: str) -> bool:
        """Whether the log was seen to be the table's, at `through` or an earlier version."""
        seen = self._seen.get(table_id)
        return seen is not None and seen[0] == database and seen[1] <= through

    def remember(self, table_id: str, through: int, *, database: str) -> None:
        self._seen[table_id] = (database, through)
        self._seen.move_to_end(table_id)
        while len(self._seen) > TABLES:
            self._seen.popitem(last=False)
