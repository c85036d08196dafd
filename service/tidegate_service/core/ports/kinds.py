"""The two kinds of table, and what never changes of a table's row."""

from dataclasses import dataclass

from tidegate_service.core.observe.faults import CATALOG_MANAGED_STEPS, PLAIN_STEPS, CommitSteps


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKind:
    """What rooms below `core.commit` have to know of a kind of table.

    `log_first`: a commit's file is in the log before its rows are in the index. So the log is the
    truth, and other writers may write to it. `shares_groups`: a commit waits for no store, so it
    may be decided in one group with those to other tables.
    """

    steps: CommitSteps
    log_first: bool
    shares_groups: bool


PLAIN = TableKind(steps=PLAIN_STEPS, log_first=True, shares_groups=False)
CATALOG_MANAGED = TableKind(steps=CATALOG_MANAGED_STEPS, log_first=False, shares_groups=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIdentity:
    """What never changes of a table's row while the row is there; `location` is a canonical URL
    without a trailing slash."""

    id: str
    name: str
    location: str
    catalog_managed: bool

    @property
    def kind(self) -> TableKind:
        return CATALOG_MANAGED if self.catalog_managed else PLAIN
