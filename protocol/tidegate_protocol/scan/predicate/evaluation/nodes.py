"""Expressions compiled to closures, with what their users must know of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tidegate_protocol.scan.predicate.evaluation.values import (
    AND,
    ANY,
    FALSE,
    NOT,
    OR,
    TRUE,
    UNKNOWN,
    Truth,
    Value,
    as_truth,
    as_value,
)
from tidegate_protocol.schema.data_types import BOOLEAN, DataType


class Row(list[Value]):
    """One file's values of the columns that a predicate names, by slot. `seen` are values that
    were computed from them (`once`)."""

    __slots__ = ("seen",)

    def __init__(self, values: Iterable[Value] = ()) -> None:
        super().__init__(values)
        self.seen: dict[Callable[[Row], Value], Value] = {}


_NO_ROW = Row()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """An expression with a value.

    `type` is None where it is not known. `columns` are the slots of the columns it names.
    `foreign` says that it holds a function that is not known here or not deterministic.
    `is_integer_literal`: Spark gives a literal the fewest digits when it meets a decimal.
    """

    type: DataType | None
    run: Callable[[Row], Value]
    columns: frozenset[int] = frozenset()
    foreign: bool = False
    is_integer_literal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """An expression with a truth.

    `widened` is the truth that Delta's conflict detection goes by: operands of AND and OR that
    hold something foreign are taken for true, and nothing else is looked into.
    """

    run: Callable[[Row], Truth]
    widened: Callable[[Row], Truth]
    columns: frozenset[int] = frozenset()
    foreign: bool = False


Node = Scalar | Condition


def scalar(type_: DataType | None, run: Callable[[Row], Value], *operands: Node) -> Scalar:
    """An expression over the operands; computed once where they name no column."""
    columns = _columns(operands)
    foreign = _foreign(operands)
    if not columns and not foreign:
        return constant(type_, run(Row()))
    return Scalar(type=type_, run=run, columns=columns, foreign=foreign)


def condition(run: Callable[[Row], Truth], *operands: Node) -> Condition:
    """A predicate over the operands, neither AND nor OR."""
    columns = _columns(operands)
    foreign = _foreign(operands)
    if not columns and not foreign:
        truth = run(Row())
        return certain(truth)
    return Condition(run=run, widened=_true if foreign else run, columns=columns, foreign=foreign)


def constant(type_: DataType | None, value: Value) -> Scalar:
    return Scalar(type=type_, run=lambda _: value)


def known(constant: Scalar) -> Value:
    """The value of an expression that names no column and holds nothing foreign."""
    return constant.run(_NO_ROW)


def certain(truth: Truth) -> Condition:
    def run(_: Row) -> Truth:
        return truth

    return Condition(run=run, widened=run)


def foreign(operands: Sequence[Node], type_: DataType | None = None) -> Scalar:
    """A value that nobody here can compute."""
    return Scalar(type=type_, run=_unknown, columns=_columns(operands), foreign=True)


def undecided(operands: Sequence[Node]) -> Scalar:
    """A value that depends on the engine's settings alone, not on what it cannot repeat."""
    return Scalar(type=None, run=_unknown, columns=_columns(operands), foreign=_foreign(operands))


def to_condition(node: Node) -> Condition:
    """A boolean expression (or one of unknown type) as a predicate."""
    if isinstance(node, Condition):
        return node
    run = node.run
    return condition(lambda row: as_truth(run(row)), node)


def to_scalar(node: Node) -> Scalar:
    if isinstance(node, Scalar):
        return node
    run = node.run
    return scalar(BOOLEAN, lambda row: as_value(run(row)), node)


def once(node: Scalar) -> Scalar:
    """The same, for whoever asks for its value several times a row: it is computed the first time.
    Asked for twice at each level, an expression in an expression would take twice as long with each
    level more."""
    if not node.columns and not node.foreign:
        return node
    compute = node.run

    def run(row: Row) -> Value:
        seen = row.seen
        if compute not in seen:
            seen[compute] = compute(row)
        return seen[compute]

    return replace(node, run=run)


def negation(operand: Condition) -> Condition:
    run = operand.run
    return condition(lambda row: NOT[run(row)], operand)


def conjunction(operands: Sequence[Condition]) -> Condition:
    """AND of any number of operands; of none, true."""
    return Condition(
        run=_all([operand.run for operand in operands]),
        widened=_all([operand.widened for operand in operands]),
        columns=_columns(operands),
        foreign=_foreign(operands),
    )


def alternative(operands: Sequence[Condition]) -> Condition:
    """OR of any number of operands."""
    return Condition(
        run=_any([operand.run for operand in operands]),
        widened=_any([operand.widened for operand in operands]),
        columns=_columns(operands),
        foreign=_foreign(operands),
    )


def either(first: Condition, second: Condition) -> Condition:
    """The same predicate in two readings, either of which the writer's engine may have taken."""
    one, other = first.run, second.run
    return condition(lambda row: one(row) | other(row), first, second)


def _all(runs: Sequence[Callable[[Row], Truth]]) -> Callable[[Row], Truth]:
    if len(runs) == 1:
        return runs[0]

    def run(row: Row) -> Truth:
        truth = TRUE
        for part in runs:
            truth = AND[truth][part(row)]
            if truth == FALSE:
                break
        return truth

    return run


def _any(runs: Sequence[Callable[[Row], Truth]]) -> Callable[[Row], Truth]:
    def run(row: Row) -> Truth:
        truth = runs[0](row)
        for part in runs[1:]:
            if truth == TRUE:
                break
            truth = OR[truth][part(row)]
        return truth

    return run


def _columns(operands: Sequence[Node]) -> frozenset[int]:
    return frozenset().union(*(operand.columns for operand in operands))


def _foreign(operands: Sequence[Node]) -> bool:
    return any(operand.foreign for operand in operands)


def _true(_: Row) -> Truth:
    return TRUE


def _unknown(_: Row) -> Value:
    return UNKNOWN


def anything(operands: Sequence[Node]) -> Condition:
    """A predicate of which nothing is known without anything foreign in it."""
    return condition(lambda _: ANY, *operands) if operands else certain(ANY)
