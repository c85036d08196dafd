"""Which table a reference means, remembered, so that a proposal need not ask the index first."""

from tidegate_service.core.ports.kinds import TableIdentity
from tidegate_service.core.ports.records import TableHead

CAPACITY = 10_000
"""Tables that an instance remembers, at about a kilobyte each; the one learnt first makes room."""


class TableCache:
    """References (a full name in any case, or an id) to tables, as this instance last saw them.

    An entry is wrong in one case only: the table was forgotten since. Then its name may be
    nobody's, or another table's that was made or registered under it (`forget` tells this
    instance of its own; of another instance's nobody tells it). A row never changes its id,
    name, location or kind, so no other entry can be wrong.

    So nothing here is an answer: it only says which row to lock. Who holds that lock compares
    id and name with the row; where there is no such row, it calls `forget` and finds the table
    anew in the index. Rights that are on names are checked against the name that the caller
    gave, or for an id against the index, and not against an entry.
    """

    def __init__(self, *, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        # Both keys of a table, its name in lower case and its id, stand in it side by side.
        self._known: dict[str, TableIdentity] = {}

    def known(self, ref: str) -> TableIdentity | None:
        """The table that the reference meant when it was learnt; None for one to look up."""
        # Postgres folds ASCII alone; Python would fold a Kelvin sign to a k.
        return self._known.get(ref.lower()) if ref.isascii() else None

    def learn(self, table: TableHead) -> TableIdentity:
        """Remember a table that the index has just shown."""
        identity = TableIdentity(
            id=table.id,
            name=table.name,
            location=table.location,
            catalog_managed=table.catalog_managed,
        )
        self.forget(table.id)
        self.forget(table.name)
        while len(self._known) >= 2 * self._capacity:
            self._remove(next(iter(self._known.values())))
        self._known[identity.name.lower()] = identity
        self._known[identity.id] = identity
        return identity

    def forget(self, ref: str) -> None:
        """Forget the table that the reference means, under its name and its id."""
        identity = self.known(ref)
        if identity is not None:
            self._remove(identity)

    def _remove(self, identity: TableIdentity) -> None:
        del self._known[identity.name.lower()]
        del self._known[identity.id]
