"""Which files a scan needs: those that any of its predicates may match."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from tidegate_protocol.log.actions import PartitionValues
from tidegate_protocol.log.statistics import statistics_reader
from tidegate_protocol.scan.predicates import Predicate, go_on

_REMEMBERED_PARTITIONS = 1_000
_REMEMBERED_LENGTH = 4_096
"""Longer ones are evaluated for each file: writers make values as long as they like."""
_PARTITION_VALUES = msgspec.json.Decoder(PartitionValues)


@dataclass(slots=True)
class Pruning:
    """Tests files by predicates, each of which names a column; a file is needed where any may
    match."""

    predicates: Sequence[Predicate]
    _left: dict[str, tuple[PartitionValues, Sequence[Predicate]]] = field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def by_partition(self) -> bool:
        """Whether every predicate names a partition column: any other needs all partitions."""
        return all(predicate.names_partition for predicate in self.predicates)

    @property
    def by_file(self) -> bool:
        """Whether knowing the partitions that are needed leaves anything to test."""
        return not self.by_partition or any(p.data_columns for p in self.predicates)

    def needs_partition(self, partition: str) -> bool:
        """False where no file of this partition is needed, whatever its statistics say. Its values
        come as a JSON object."""
        values = _PARTITION_VALUES.decode(partition)
        return any(predicate.may_match(values, None) for predicate in self.predicates)

    def needed(
        self,
        partitions: Sequence[str],
        stats: Sequence[str | None],
        *,
        pause: Callable[[], None] = go_on,
    ) -> list[int]:
        """Which of the files, by their place, are needed. `partitions` are the partition values
        as JSON objects, `stats` as adds have them. `pause` is called for each file."""
        columns = frozenset[str]().union(*(p.data_columns for p in self.predicates))
        read = statistics_reader(columns)
        found = []
        for place, (partition, text) in enumerate(zip(partitions, stats, strict=True)):
            pause()
            values, left = self._left.get(partition) or self._evaluated(partition)
            if left:
                statistics = read(text)
                if any(predicate.may_match(values, statistics) for predicate in left):
                    found.append(place)
        return found

    def _evaluated(self, partition: str) -> tuple[PartitionValues, Sequence[Predicate]]:
        """The predicates that files of a partition may match. Files of one are many."""
        values = _PARTITION_VALUES.decode(partition)
        left = [predicate for predicate in self.predicates if predicate.may_match(values, None)]
        if len(partition) <= _REMEMBERED_LENGTH:
            if len(self._left) >= _REMEMBERED_PARTITIONS:
                self._left.clear()
            self._left[partition] = values, left
        return values, left


def pruning_of(predicates: Sequence[Predicate]) -> Pruning | None:
    """None where every file is needed: there are no predicates, or one holds of all rows. What
    holds of none, whatever the file, is left out."""
    of_no_column = [p for p in predicates if not p.names_partition and not p.data_columns]
    if not predicates or any(predicate.may_match({}, None) for predicate in of_no_column):
        return None
    return Pruning([p for p in predicates if p.names_partition or p.data_columns])
