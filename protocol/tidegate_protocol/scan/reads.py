"""What a transaction read, evaluated against files that others added."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge

from tidegate_protocol.base.memo import remember
from tidegate_protocol.log.actions import Add, Metadata, Partition
from tidegate_protocol.log.statistics import statistics_of
from tidegate_protocol.proposal.transaction import Reads
from tidegate_protocol.scan.predicates import (
    InvalidPredicate,
    Predicate,
    go_on,
    parse_predicate,
    terms_of,
    work_of,
)
from tidegate_protocol.schema.data_types import StructType
from tidegate_protocol.schema.table_schema import parse_schema

MOST_WORK = 1_000_000
"""Terms of predicates times partitions, or files, that they are evaluated for (`work_of`); about a
second."""
_REMEMBERED_BYTES = 1024 * 1024
"""Of partitions that a transaction was judged by, some five thousand: winners add files to the same
ones again and again."""
_PARTITION_BYTES = 128
_ITEM_BYTES = 64
_PLACE_BYTES = 40
_VALUE_CHARACTERS = 4
"""As which a partition value counts besides."""


@dataclass(slots=True)
class _Work:
    """What may still be evaluated, and which of the predicates rows of a partition may match, by
    their places."""

    left: int = MOST_WORK
    _known: dict[Partition, Sequence[int]] = field(default_factory=dict)
    _room: int = _REMEMBERED_BYTES

    def known(self, partition: Partition) -> Sequence[int] | None:
        return self._known.get(partition)

    def charge(self, terms: int, partition: Partition) -> bool:
        """Charge for one more partition, or file of it. False where that is more than is left."""
        # Each predicate goes through all values, empty ones, too.
        self.left -= work_of(terms, _characters(partition) + _VALUE_CHARACTERS * len(partition))
        return self.left >= 0

    def remember(self, partition: Partition, matching: Sequence[int]) -> None:
        """A partition that is remembered costs nothing. One whose values are very long is not."""
        size = _PARTITION_BYTES + _ITEM_BYTES * len(partition) + _characters(partition)
        size += _PLACE_BYTES * len(matching)
        if size > _REMEMBERED_BYTES:
            return
        if size > self._room:
            self._known.clear()
            self._room = _REMEMBERED_BYTES
        self._known[partition] = matching
        self._room -= size


def _characters(partition: Partition) -> int:
    return sum([len(text or "") for _, text in partition])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPredicates:
    """The parsed predicates of a transaction, over the table at its read version.

    Judging by them is bounded (`MOST_WORK`): whatever is beyond may match. `terms` are those of
    all of them.
    """

    whole_table: bool
    predicates: tuple[Predicate, ...]
    is_partitioned: bool
    terms: int = 0
    _work: _Work = field(default_factory=_Work, init=False, repr=False, compare=False)

    @classmethod
    def parse(
        cls,
        reads: Reads,
        schema: StructType,
        partition_columns: Sequence[str],
        *,
        pause: Callable[[], None] = go_on,
    ) -> "ReadPredicates":
        """`pause` as of `parse_predicate`. Raises `InvalidPredicate`, naming the predicate."""
        return cls._of(
            reads,
            partition_columns,
            lambda text: parse_predicate(text, schema, partition_columns, pause=pause),
        )

    @classmethod
    def over(
        cls, reads: Reads, metadata: Metadata, *, pause: Callable[[], None] = go_on
    ) -> "ReadPredicates":
        """`parse`, over the columns of the table, which remembers short predicates: whoever
        overwrites a partition does so again and again. The reads remember all of theirs, as
        long as they live. Raises `InvalidSchema`, too."""
        columns = tuple(metadata.partition_columns)
        return cls._of(reads, columns, lambda text: parse_once(reads, text, metadata, pause=pause))

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
            terms=sum(map(terms_of, reads.predicates)),
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
        of_partition: dict[Partition, list[int]] = {}
        for place, add in enumerate(adds):
            of_partition.setdefault(tuple(add.partition_values.items()), []).append(place)
        matched: dict[int, list[Sequence[int]]] = {}
        for partition, places in of_partition.items():
            matching = self._matching(partition)
            if matching is None:
                return adds[places[0]]
            for index in matching:
                matched.setdefault(index, []).append(places)
        # As Delta asks them: the first predicate that any file matches, of all files.
        for index in sorted(matched):
            for place in merge(*matched[index]):
                if not use_statistics or self._may_match(self.predicates[index], adds[place]):
                    return adds[place]
        return None

    def _may_match(self, predicate: Predicate, add: Add) -> bool:
        is_judged = self._work.charge(self.terms, tuple(add.partition_values.items()))
        return not is_judged or predicate.may_match(add.partition_values, statistics_of(add.stats))

    def _matching(self, partition: Partition) -> Sequence[int] | None:
        """Which predicates rows of the partition may match, by their places; None where judging it
        would be too much."""
        known = self._work.known(partition)
        if known is None and self._work.charge(self.terms, partition):
            predicates = enumerate(self.predicates)
            known = [index for index, each in predicates if each.may_match_files_of(partition)]
            self._work.remember(partition, known)
        return known

    def covers_everything(self, *, use_statistics: bool) -> bool:
        """Whether every file counts, whatever it says of itself."""
        evaluated = self.is_partitioned or (use_statistics and self.predicates)
        return self.whole_table or not evaluated

    def covered(self, partitions: Iterable[Partition]) -> Iterator[Partition]:
        """Those of the partitions whose rows a predicate may match; `first_match` is of such a one,
        where not every file counts."""
        for partition in partitions:
            matching = self._matching(partition)
            if matching is None or matching:
                yield partition


_SHORT = 256
"""Characters of a predicate that is remembered. Parsed, it may take a hundred times as much."""


@dataclass(frozen=True, slots=True)
class _Key:
    """A predicate, and what it is parsed over; `pause` as of `parse_predicate`."""

    text: str
    schema_string: str
    partition_columns: tuple[str, ...]
    pause: Callable[[], None] = field(default=go_on, compare=False)


def parse_once(
    reads: Reads, text: str, metadata: Metadata, *, pause: Callable[[], None] = go_on
) -> Predicate:
    """A predicate of the reads over the columns of the table; `pause` as of `parse_predicate`.
    Raises what `ReadPredicates.over` does, the same again for the same text."""
    key = _key(text, metadata, pause)
    found = reads.parsed.get(key)
    if found is None:
        try:
            found = _remembered(key) if len(text) <= _SHORT else _parse(key)
        except InvalidPredicate as error:
            found = error
        reads.parsed[key] = found
    if isinstance(found, InvalidPredicate):
        raise InvalidPredicate(found.detail, position=found.position)
    assert isinstance(found, Predicate)
    return found


def is_parsed(reads: Reads, metadata: Metadata) -> bool:
    """Whether the predicates of the reads have been parsed over the columns of the table, the
    first invalid one included: none is parsed behind it."""
    for text in reads.predicates:
        found = reads.parsed.get(_key(text, metadata))
        if not isinstance(found, Predicate):
            return found is not None
    return True


def _key(text: str, metadata: Metadata, pause: Callable[[], None] = go_on) -> _Key:
    return _Key(text, metadata.schema_string, tuple(metadata.partition_columns), pause)


def _parse(key: _Key) -> Predicate:
    schema = parse_schema(key.schema_string)
    return parse_predicate(key.text, schema, key.partition_columns, pause=key.pause)


_remembered = remember(
    _parse, weigh=lambda key: len(key.schema_string) + sum(map(len, key.partition_columns))
)
