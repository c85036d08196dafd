"""Predicates over a table's columns, evaluated for whole files.

A predicate is Spark SQL text, the whole filter of one scan. It is evaluated from what the log says
of a file: its partition values, and its statistics where they are asked for. The answer is "may
match": False only where it is proven that no row of the file can make the predicate true, in
either of Spark's modes (ANSI or not), with the session's time zone at UTC.

A timestamp without a zone among the partition values is one of the session's zone, too, as engines
on Spark read it. A predicate that names points in time by their zone, or as numbers, may be of a
session of any zone, and so may one that names several columns of timestamps: for these such a
value is any instant that it may be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import partial

from tidegate_protocol.log.actions import Partition, PartitionValues
from tidegate_protocol.log.statistics import FileStatistics
from tidegate_protocol.scan.predicate.binding import bind
from tidegate_protocol.scan.predicate.columns import column_node, is_column
from tidegate_protocol.scan.predicate.errors import InvalidPredicate
from tidegate_protocol.scan.predicate.evaluation import nodes
from tidegate_protocol.scan.predicate.evaluation.datetimes import from_date, from_datetime
from tidegate_protocol.scan.predicate.evaluation.values import (
    TRUE,
    UNKNOWN,
    Plain,
    Range,
    Truth,
    Value,
)
from tidegate_protocol.scan.predicate.syntax.names import changing, makes_instants, opaque
from tidegate_protocol.scan.predicate.syntax.parsing import parse
from tidegate_protocol.scan.predicate.syntax.queries import is_expression
from tidegate_protocol.scan.predicate.syntax.terms import terms_of
from tidegate_protocol.schema.data_types import (
    LENGTH_KEY,
    TIMESTAMP,
    TYPE_CHANGES,
    DataType,
    DecimalType,
    Field,
    Leaf,
    PrimitiveType,
    StructType,
)
from tidegate_protocol.schema.partition_values import InvalidValue, is_local, parse_value
from tidegate_protocol.schema.values import WIDEST_OFFSET
from tidegate_protocol.schema.values import Value as TypedValue

__all__ = [
    "InvalidPredicate",
    "Predicate",
    "check_expression",
    "go_on",
    "parse_predicate",
    "terms_of",
    "work_of",
]

_REMEMBERED_PARTITIONS = 512
# Of a partition, about: writers may name many columns, and make values as long as they like.
_REMEMBERED_BYTES = 512
_ITEM_BYTES = 64
_ANY_ZONE = WIDEST_OFFSET // timedelta(microseconds=1)
_CHARACTERS_A_VALUE = 64
_LOOKED_INTO = 16 * 1024
"""Characters of a partition value; a longer one is unknown. Each term may go through all of it."""
# Text of these columns is compared by other rules.
_COLLATIONS = "__COLLATIONS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A parsed predicate. It belongs to the schema and partition columns it was parsed over, and
    is equal to another of the same text over the same columns."""

    text: str
    _columns: tuple["_Column", ...] = field(repr=False)
    may_match_files_of: Callable[[Partition], bool] = field(repr=False, compare=False)
    """`matches_partition`, by the items of a file's partition values."""
    _whole: Callable[[nodes.Row], Truth] = field(repr=False, compare=False)

    @property
    def names_partition(self) -> bool:
        """Whether it names a partition column."""
        return any(column.is_partition for column in self._columns)

    @property
    def data_columns(self) -> frozenset[str]:
        """The top-level data columns that it names, by their physical names."""
        return frozenset(column.name for column in self._columns if not column.is_partition)

    def matches_partition(self, partition_values: PartitionValues) -> bool:
        """Whether rows of this partition may match, as Delta's conflict detection evaluates it.

        Of the operands of the AND at the top, those that name a data column are left out. In the
        rest, what holds a function that is unknown here or not deterministic counts as true,
        inside AND and OR by itself, else with all around it. `partition_values` are an add's.
        """
        return self.may_match_files_of(tuple(partition_values.items()))

    def may_match(self, partition_values: PartitionValues, stats: FileStatistics | None) -> bool:
        """Whether rows of a file with these partition values and statistics may match: the whole
        predicate is looked at. Where `matches_partition` says no, this does, too."""
        row = nodes.Row([column.value(partition_values, stats) for column in self._columns])
        return self._whole(row) & TRUE != 0


def go_on() -> None:
    """For work that nobody waits beside."""


def work_of(terms: int, characters: int) -> int:
    """How much work it is to judge a file by predicates of so many terms, in terms, where its
    partition values have so many characters: each term may go through all of them."""
    return terms * (1 + characters // _CHARACTERS_A_VALUE)


def parse_predicate(
    text: str,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    pause: Callable[[], None] = go_on,
) -> Predicate:
    """A predicate over the columns of a table. `pause` is called every few microseconds, so that
    whoever reads a long one can let others have the interpreter. Raises `InvalidPredicate`."""
    partition_fields = {name.lower() for name in partition_columns}
    columns: dict[Leaf, int] = {}

    def slot(path: Sequence[str]) -> nodes.Scalar | None:
        return column_node(schema, path, columns)

    tree = parse(text, is_column=partial(is_column, schema), pause=pause)
    try:
        bound = bind(tree, slot, pause=pause)
    except RecursionError:
        raise InvalidPredicate("the predicate is nested too deeply") from None
    # Beside a column of timestamps that have a zone, too.
    moments = sum(leaf.type == TIMESTAMP for leaf in columns)
    in_any_zone = bound.names_instants or moments > 1
    described = tuple(
        _Column(
            leaf=leaf,
            is_partition=leaf.path[0].lower() in partition_fields,
            is_plain=_is_plain(schema, leaf),
            in_any_zone=in_any_zone,
        )
        for leaf in columns
    )
    of_partition = nodes.conjunction(
        [
            conjunct
            for conjunct in bound.conjuncts
            if all(described[index].is_partition for index in conjunct.columns)
        ]
    )
    return Predicate(
        text=text,
        _columns=described,
        may_match_files_of=_partition_test(of_partition, described),
        _whole=nodes.conjunction(bound.conjuncts).run,
    )


def depends_on_zone(text: str, schema: StructType) -> bool:
    """Whether sessions of other time zones may read the predicate in another way: it names a column
    of instants, or makes one of something else. Raises `InvalidPredicate`."""
    named: dict[Leaf, int] = {}
    tree = parse(text, is_column=partial(is_column, schema), pause=go_on)
    opaque(tree, lambda path: column_node(schema, path, named))
    return makes_instants(tree) or any(leaf.type == TIMESTAMP for leaf in named)


def check_expression(
    text: str, schema: StructType, *, is_condition: bool, pause: Callable[[], None] = go_on
) -> None:
    """Raise `InvalidPredicate` unless the text is an expression over these columns: a condition, or
    what computes a column, which has to give the same value for a row every time. One that is too
    complex to tell is refused, too. `pause` is that of `parse_predicate`.

    Of what is read by Spark's whole grammar alone, the names are not looked at.
    """

    def slot(path: Sequence[str]) -> nodes.Scalar | None:
        return column_node(schema, path, {})

    known = partial(is_column, schema)
    try:
        tree = parse(text, is_column=known, pause=pause, must_be_read=True)
    except InvalidPredicate:
        if is_expression(text, pause=pause):
            return
        raise
    try:
        if is_condition:
            bind(tree, slot, pause=pause)
            return
        opaque(tree, slot)
        found = changing(tree, slot)
    except RecursionError:
        raise InvalidPredicate("it is nested too deeply") from None
    if found is not None:
        raise InvalidPredicate(f"{found} may have another value each time")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column that a predicate names. `is_plain` says that its values are what the log says,
    `in_any_zone` that those without a zone may be of any."""

    leaf: Leaf
    is_partition: bool
    is_plain: bool
    in_any_zone: bool

    @property
    def name(self) -> str:
        return self.leaf.physical_path[0]

    def value(self, partition_values: PartitionValues, stats: FileStatistics | None) -> Value:
        if self.is_partition:
            if self.name not in partition_values:
                return UNKNOWN
            return self.of_text(partition_values[self.name])
        return UNKNOWN if stats is None else self._of_statistics(stats)

    def of_text(self, text: str | None) -> Value:
        """What a partition value says."""
        if text is not None and len(text) > _LOOKED_INTO:
            return UNKNOWN
        if not self.is_plain:
            return UNKNOWN if text else None
        try:
            value = parse_value(self.leaf.type, text)
        except InvalidValue:
            return UNKNOWN
        if value is None:
            return None
        known = _value(value)
        if self.in_any_zone and is_local(self.leaf.type, text):
            assert isinstance(known, int)
            return Range(known - _ANY_ZONE, known + _ANY_ZONE, nullable=False)
        return known

    def _of_statistics(self, stats: FileStatistics) -> Value:
        path, type_ = self.leaf.physical_path, self.leaf.type
        if not isinstance(type_, PrimitiveType | DecimalType):
            return UNKNOWN
        nulls = stats.null_count(path)
        if nulls is not None and nulls == stats.num_records:
            return None
        nullable = nulls != 0
        if not self.is_plain:
            return Range(None, None, nullable)
        low, high = stats.minimum(path, type_), stats.maximum(path, type_)
        return Range(
            None if low is None else _value(low), None if high is None else _value(high), nullable
        )


def _partition_test(
    condition: nodes.Condition, columns: Sequence[_Column]
) -> Callable[[Partition], bool]:
    """Tests whether files of a partition may match. Partitions are many: answers are remembered,
    but for those of partitions whose values are long."""
    used = [(index, columns[index]) for index in sorted(condition.columns)]
    names = frozenset(column.name for _, column in used)

    def test(partition: Partition) -> bool:
        values = dict(partition)
        row = nodes.Row([UNKNOWN] * len(columns))
        for index, column in used:
            if column.name not in values:
                return True
            row[index] = column.of_text(values[column.name])
        return condition.widened(row) & TRUE != 0

    known: dict[Partition, bool] = {}

    def remembering(partition: Partition) -> bool:
        if len(partition) > len(names):
            # Those that differ in nothing that it asks for are one.
            partition = tuple([item for item in partition if item[0] in names])
        found = known.get(partition)
        if found is None:
            found = test(partition)
            if sum([_ITEM_BYTES + len(text or "") for _, text in partition]) <= _REMEMBERED_BYTES:
                if len(known) >= _REMEMBERED_PARTITIONS:
                    known.clear()
                known[partition] = found
        return found

    return remembering


def _is_plain(schema: StructType, leaf: Leaf) -> bool:
    struct: DataType = schema
    for name in leaf.path:
        found = struct.field(name) if isinstance(struct, StructType) else None
        if found is None:
            return False
        # Spark pads what it reads of CHAR columns.
        if str(found.metadata.get(LENGTH_KEY, "")).lower().startswith("char"):
            return False
        if _COLLATIONS in found.metadata or _was_float(found):
            return False
        struct = found.type
    return True


def _was_float(field: Field) -> bool:
    """Whether older files hold `float`, whose shortest text is not its value as a `double`."""
    changes = field.metadata.get(TYPE_CHANGES, [])
    return not isinstance(changes, list) or any(
        not isinstance(change, dict) or change.get("fromType") == "float" for change in changes
    )


def _value(value: TypedValue) -> Plain:
    """Dates as days and timestamps as microseconds, see `scan.predicate.evaluation.values`."""
    if isinstance(value, datetime):
        return from_datetime(value)
    return from_date(value) if isinstance(value, date) else value
