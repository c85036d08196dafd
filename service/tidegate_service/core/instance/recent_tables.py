"""Tables with their protocol and metadata, as this instance last read or committed them."""

from collections import OrderedDict

from tidegate_service.core.ports.records import LONG_METADATA, TableRecord

MOST = 256
"""Tables that are remembered, with 64 KiB of protocol and metadata each, at most."""


class RecentTables:
    """Tables of which the next version was asked for, or may be soon.

    An entry may be old: another instance has committed since, or the table was forgotten. So it
    serves a commit to the version behind it alone, which lands only where the locked row is at the
    entry's version still; nothing else is answered from it.
    """

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._known: OrderedDict[str, TableRecord] = OrderedDict()

    def before(self, table_id: str, version: int) -> TableRecord | None:
        """The table at the version before this one; None where that is not known."""
        table = self._known.get(table_id)
        return table if table is not None and table.latest_version == version - 1 else None

    def remember(self, table: TableRecord) -> None:
        defined = (table.protocol, table.metadata)
        length = sum(len(action.raw) for action in defined if action is not None)
        if length > LONG_METADATA:
            return
        self._known[table.id] = table
        self._known.move_to_end(table.id)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
