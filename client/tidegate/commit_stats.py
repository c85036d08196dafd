"""What became of a commit in numbers, by the names of Delta's `CommitStats`."""

from collections.abc import Iterable, Iterator
from typing import Self

from msgspec import Struct

from tidegate_protocol.log.actions import Action, Add, AddCDCFile, DomainMetadata, Remove, Txn
from tidegate_protocol.log.paths import is_absolute
from tidegate_protocol.proposal.transaction import IsolationLevel


class CommitStats(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a commit did, and what its table holds since. As JSON, the names are Delta's.

    The transaction began at `start_version` and landed as `commit_version`. `read_version` is the
    latest version as the commit was saved, later than its own where others landed together with it,
    and `num_files_total` and `size_in_bytes_total` are of that one; the three are None of a commit
    that an earlier copy of its proposal had landed, and so is `conflict_check_duration_ms`, which
    the service measured. Other durations are this process's: since the transaction began, and from
    the call of `commit` to the answer. `bytes_new` counts files that change data.
    """

    start_version: int
    commit_version: int
    read_version: int | None
    txn_duration_ms: int
    commit_duration_ms: int
    conflict_check_duration_ms: int | None
    num_add: int
    num_remove: int
    num_set_transaction: int
    bytes_new: int
    num_files_total: int | None
    size_in_bytes_total: int | None
    num_cdc_files: int
    cdc_bytes_new: int
    num_absolute_paths_in_add: int
    num_distinct_partitions_in_add: int
    num_partition_columns_in_table: int
    isolation_level: IsolationLevel
    num_of_domain_metadatas: int
    txn_id: str


class CommitTally:
    """Counts what a commit consists of, action by action, so that no list of them is needed."""

    def __init__(self) -> None:
        self.actions = 0
        self.adds = 0
        self.removes = 0
        self.set_transactions = 0
        self.bytes_new = 0
        self.cdc_files = 0
        self.cdc_bytes = 0
        self.absolute_paths = 0
        self.domains = 0
        self._partitions: set[tuple[tuple[str, str | None], ...]] = set()

    @classmethod
    def of(cls, actions: Iterable[Action]) -> Self:
        """The counts of these actions."""
        tally = cls()
        for action in actions:
            tally.count(action)
        return tally

    def counted(self, actions: Iterable[Action]) -> Iterator[Action]:
        """The actions, each counted as it is taken."""
        for action in actions:
            self.count(action)
            yield action

    def count(self, action: Action) -> None:
        """Count a further action."""
        self.actions += 1
        match action:
            case Add():
                self.adds += 1
                self.bytes_new += action.size if action.data_change else 0
                self.absolute_paths += is_absolute(action.path)
                self._partitions.add(tuple(sorted(action.partition_values.items())))
            case Remove():
                self.removes += 1
            case AddCDCFile():
                self.cdc_files += 1
                self.cdc_bytes += action.size
            case Txn():
                self.set_transactions += 1
            case DomainMetadata():
                self.domains += 1

    @property
    def partitions(self) -> int:
        """In how many partitions files are added."""
        return len(self._partitions)
