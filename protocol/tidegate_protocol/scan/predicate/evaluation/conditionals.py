"""CASE, IF, COALESCE and NULLIF."""

from collections.abc import Sequence

from tidegate_protocol.scan.predicate.evaluation.casts import cast
from tidegate_protocol.scan.predicate.evaluation.coercion import common
from tidegate_protocol.scan.predicate.evaluation.comparison import is_null
from tidegate_protocol.scan.predicate.evaluation.nodes import (
    Condition,
    Node,
    Row,
    Scalar,
    negation,
    scalar,
    to_condition,
    to_scalar,
    undecided,
)
from tidegate_protocol.scan.predicate.evaluation.values import TRUE, Range, Value, hull
from tidegate_protocol.schema.data_types import DataType


def is_not_null(operand: Node) -> Condition:
    return negation(is_null(operand))


def case(branches: Sequence[tuple[Node, Node]], otherwise: Node) -> Scalar:
    """`CASE WHEN ... THEN ... ELSE otherwise END`; the value of the first branch that is true."""
    conditions = [to_condition(when) for when, _ in branches]
    values = [*(to_scalar(then) for _, then in branches), to_scalar(otherwise)]
    type_ = _one_type(values)
    operands: list[Node] = [*conditions, *values]
    if type_ is None:
        return undecided(operands)
    tests = [condition.run for condition in conditions]
    runs = [cast(value, type_).run for value in values]

    def run(row: Row) -> Value:
        possible: list[Value] = []
        for test, then in zip(tests, runs, strict=False):
            truth = test(row)
            if truth & TRUE:
                possible.append(then(row))
            if truth == TRUE:
                return hull(possible)
        possible.append(runs[-1](row))
        return hull(possible)

    return scalar(type_, run, *operands)


def coalesce(arguments: Sequence[Node]) -> Scalar:
    """The first argument that is not null."""
    values = [to_scalar(argument) for argument in arguments]
    type_ = _one_type(values)
    if type_ is None:
        return undecided(values)
    runs = [cast(value, type_).run for value in values]

    def run(row: Row) -> Value:
        possible: list[Value] = []
        for run_one in runs:
            value = run_one(row)
            if isinstance(value, Range) and value.nullable:
                # An error that ends the query counts as null in a range of unknown values.
                possible.append(Range(value.low, value.high, nullable=False))
            elif value is not None:
                possible.append(value)
                return hull(possible)
        possible.append(None)
        return hull(possible)

    return scalar(type_, run, *values)


def _one_type(values: Sequence[Scalar]) -> DataType | None:
    types = [value.type for value in values if value.type is not None]
    readings = common(types) if len(types) == len(values) else ()
    return readings[0] if len(readings) == 1 else None
