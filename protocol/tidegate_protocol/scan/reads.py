"""What a transaction read, judged against files that others added."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidegate_protocol.actions import Add, Metadata, Partition
from tidegate_protocol.data_types import StructType
from tidegate_protocol.memo import remember
from tidegate_protocol.predicates import InvalidPredicate, Predicate, parse_predicate
from tidegate_protocol.schema import parse_schema
from tidegate_protocol.statistics import statistics_of
from tidegate_protocol.transaction import Reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPredicates:
    """The parsed predicates of a transaction, over the table at its read version."""

    whole_table: bool
    predicates: tuple[Predicate, ...]
    is_partitioned: bool

    @classmethod
    def parse(
        cls, reads: Reads, schema: StructType, partition_columns: Sequence[str]
    ) -> "ReadPredicates":
        """Raises `InvalidPredicate`, naming the predicate."""
        return cls._of(
            reads, partition_columns, lambda text: parse_predicate(text, schema, partition_columns)
        )

    @classmethod
    def over(cls, reads: Reads, metadata: Metadata) -> "ReadPredicates":
        """`parse`, over the columns of the table, which remembers short predicates: whoever
        overwrites a partition does so again and again. Raises `InvalidSchema`, too."""
        columns = tuple(metadata.partition_columns)

        def parse(text: str) -> Predicate:
            key = (text, metadata.schema_string, columns)
            return _remembered(key) if len(text) <= _SHORT else _parse(key)

        return cls._of(reads, columns, parse)

    @classmethod
    def _of(
        cls, reads: Reads, partition_columns: Sequence[str], parse: Callable[[str], Predicate]
    ) -> "ReadPredicates":
        parsed: list[Predicate] = []
        for index, text in enumerate(reads.predicates):
            try:
                parsed.append(parse(text))
            except InvalidPredicate as error:
                raise InvalidPredicate(
                    f"reads.predicates[{index}]: {error.detail}", position=error.position
                ) from None
        return cls(
            whole_table=reads.whole_table,
            predicates=tuple(parsed),
            is_partitioned=bool(partition_columns),
        )

    def first_match(self, adds: Sequence[Add], *, use_statistics: bool) -> Add | None:
        """The first added file that the transaction would have read (Delta:
        `getFirstFileMatchingPartitionPredicates`); not to be asked of blind appends.

        Every file, where the whole table was read or the table has no partitions. Without
        predicates none of a partitioned table. `use_statistics` has files spared whose
        statistics prove that no row matches, which Delta does not do.
        """
        if not adds:
            return None
        if self.covers_everything(use_statistics=use_statistics):
            return adds[0]
        for predicate in self.predicates:
            for add in adds:
                if predicate.matches_partition(add.partition_values) and (
                    not use_statistics
                    or predicate.may_match(add.partition_values, statistics_of(add.stats))
                ):
                    return add
        return None

    def covers_everything(self, *, use_statistics: bool) -> bool:
        """Whether every file counts, whatever it says of itself."""
        judged = self.is_partitioned or (use_statistics and self.predicates)
        return self.whole_table or not judged

    def covered(self, partitions: Iterable[Partition]) -> Iterator[Partition]:
        """Those of the partitions whose rows a predicate may match; `first_match` is of such a one,
        where not every file counts."""
        judges = [predicate.may_match_files_of for predicate in self.predicates]
        for partition in partitions:
            for may_match in judges:
                if may_match(partition):
                    yield partition
                    break


_SHORT = 256
"""Characters of a predicate that is remembered. Parsed, it may take a hundred times as much."""
_Key = tuple[str, str, tuple[str, ...]]
"""A predicate, a schema string and the partition columns."""


def _parse(key: _Key) -> Predicate:
    text, schema_string, partition_columns = key
    return parse_predicate(text, parse_schema(schema_string), partition_columns)


_remembered = remember(_parse, weigh=lambda key: len(key[1]) + sum(map(len, key[2])))
