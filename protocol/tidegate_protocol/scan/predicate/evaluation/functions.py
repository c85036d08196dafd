"""Spark's functions that are evaluated here, by name; every other function is foreign.

They are those that filters of generated columns are made of, and that Delta's own tests ask of
partitions. A foreign one may have any value, so that a predicate with it may match.

A builder gets the arguments and answers with the call's node, or None where the arguments are
not of the types that it knows: the call is foreign then, too.
"""

from collections.abc import Callable, Sequence

from tidegate_protocol.scan.predicate.evaluation import (
    comparison,
    conditionals,
    dates,
    patterns,
)
from tidegate_protocol.scan.predicate.evaluation.arithmetic import apply
from tidegate_protocol.scan.predicate.evaluation.casts import as_count, as_text, cast
from tidegate_protocol.scan.predicate.evaluation.nodes import Node, Scalar, to_scalar
from tidegate_protocol.schema.data_types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    DataType,
    DecimalType,
)

Builder = Callable[[Sequence[Node]], Node | None]


def is_known(name: str, count: int) -> bool:
    """Whether a function of this name (in lower case) takes so many arguments."""
    least, most = _ARITY.get(name, (1, 0))
    return least <= count <= most


def build(name: str, arguments: Sequence[Node]) -> Node | None:
    """A call of a known function; None where the arguments make it foreign."""
    return _FUNCTIONS[name](arguments)


def substring(text: Node, start: Node, length: Node | None) -> Node | None:
    """`substring(text, start, length)`: counts from 1, from the end where negative."""
    operands = [_text(text), as_count(to_scalar(start))]
    if length is not None:
        operands.append(as_count(to_scalar(length)))
    known = [operand for operand in operands if operand is not None]
    return apply(STRING, _substring, *known) if len(known) == len(operands) else None


def _text(node: Node) -> Scalar | None:
    return as_text(to_scalar(node))


def _substring(text: str, start: int, length: int = 2**31 - 1) -> str:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = first + length
    return text[max(first, 0) : max(last, 0)]


def _cast_to(type_: DataType) -> Builder:
    return lambda arguments: cast(to_scalar(arguments[0]), type_)


_TABLE: list[tuple[str, int, int, Builder]] = [
    ("bigint", 1, 1, _cast_to(LONG)),
    ("binary", 1, 1, _cast_to(BINARY)),
    ("boolean", 1, 1, _cast_to(BOOLEAN)),
    ("coalesce", 1, 1000, conditionals.coalesce),
    ("decimal", 1, 1, _cast_to(DecimalType(10, 0))),
    ("double", 1, 1, _cast_to(DOUBLE)),
    ("float", 1, 1, _cast_to(FLOAT)),
    ("if", 3, 3, lambda a: conditionals.case([(a[0], a[1])], a[2])),
    ("int", 1, 1, _cast_to(INTEGER)),
    ("isnotnull", 1, 1, lambda a: conditionals.is_not_null(a[0])),
    ("isnull", 1, 1, lambda a: comparison.is_null(a[0])),
    ("like", 2, 2, lambda a: patterns.like(a[0], a[1])),
    ("nvl ifnull", 2, 2, conditionals.coalesce),
    ("smallint", 1, 1, _cast_to(SHORT)),
    ("startswith", 2, 2, lambda a: patterns.starts_with(a[0], a[1])),
    ("string", 1, 1, _cast_to(STRING)),
    ("substring substr", 2, 3, lambda a: substring(a[0], a[1], a[2] if len(a) > 2 else None)),
    ("tinyint", 1, 1, _cast_to(BYTE)),
    *dates.FUNCTIONS,
]
_FUNCTIONS = {name: builder for names, _, _, builder in _TABLE for name in names.split()}
_ARITY = {name: (least, most) for names, least, most, _ in _TABLE for name in names.split()}
