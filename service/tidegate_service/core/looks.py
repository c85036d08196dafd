"""When an instance last found the heads of plain tables in their logs (`core.hidden`)."""

from collections import OrderedDict

from tidegate_service.core.records import TableRecord

YOUNG_S = 10.0
"""So long after it a look need not be made again. Whatever can hide within it can hide within as
long after a commit, too."""
TABLES = 10_000
"""So many are remembered; those that were looked at longest ago make room."""


class Looks:
    """Those of one instance, of one event loop."""

    def __init__(self) -> None:
        # The epoch that the table was in, and when.
        self._made: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def is_young(self, table: TableRecord, now_s: float) -> bool:
        """Whether the table was looked at within `YOUNG_S`, and not made anew since."""
        epoch, at = self._made.get(table.id, (None, 0.0))
        return epoch == table.epoch and now_s - at < YOUNG_S

    def note(self, table: TableRecord, at_s: float) -> None:
        """The head was found where it belongs, by a look that began then."""
        self._made[table.id] = (table.epoch, at_s)
        self._made.move_to_end(table.id)
        while len(self._made) > TABLES:
            self._made.popitem(last=False)
