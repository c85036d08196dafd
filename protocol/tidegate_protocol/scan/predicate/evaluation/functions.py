"""Spark's functions that are evaluated here, by name; every other function is foreign.

A builder gets the arguments and answers with the call's node, or None where the arguments are
not of the types that it knows: the call is foreign then, too.
"""

from collections.abc import Callable, Sequence

from tidegate_protocol.scan.predicate.evaluation import (
    arithmetic,
    comparison,
    conditionals,
    dates,
    patterns,
)
from tidegate_protocol.scan.predicate.evaluation.arithmetic import apply
from tidegate_protocol.scan.predicate.evaluation.casts import as_count, as_text, cast
from tidegate_protocol.scan.predicate.evaluation.nodes import Node, Scalar, to_scalar
from tidegate_protocol.scan.predicate.evaluation.values import UNKNOWN, Range
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

_SIDES: dict[str, Callable[[str], str]] = {
    "BOTH": lambda text: text.strip(" "),
    "LEADING": lambda text: text.lstrip(" "),
    "TRAILING": lambda text: text.rstrip(" "),
}


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


def trim(text: Node, side: str = "BOTH") -> Node | None:
    """`TRIM(side FROM text)`: spaces only; None for a side that is none."""
    strip = _SIDES.get(side)
    return None if strip is None else _of_text(strip, text)


def concat(arguments: Sequence[Node]) -> Node | None:
    """`concat(...)` and `||` of texts."""
    values = [_text(argument) for argument in arguments]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return apply(STRING, lambda *parts: "".join(parts), *known)


def _text(node: Node) -> Scalar | None:
    return as_text(to_scalar(node))


def _of_text(compute: Callable[[str], str | Range], node: Node) -> Node | None:
    value = _text(node)
    return None if value is None else apply(STRING, compute, value)


def _cased(change: Callable[[str], str]) -> Callable[[str], str | Range]:
    # Unicode versions differ in the case of some letters.
    return lambda text: change(text) if text.isascii() else UNKNOWN


def _substring(text: str, start: int, length: int = 2**31 - 1) -> str:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    last = first + length
    return text[max(first, 0) : max(last, 0)]


def _length(arguments: Sequence[Node]) -> Node | None:
    value = to_scalar(arguments[0])
    if value.type != BINARY:
        value = _text(value) or value
    return apply(INTEGER, len, value) if value.type in (STRING, BINARY) else None


def _end(cut: Callable[[str, int], str]) -> Builder:
    """`left` and `right`."""

    def build(arguments: Sequence[Node]) -> Node | None:
        value, count = _text(arguments[0]), as_count(to_scalar(arguments[1]))
        return None if value is None or count is None else apply(STRING, cut, value, count)

    return build


def _cast_to(type_: DataType) -> Builder:
    return lambda arguments: cast(to_scalar(arguments[0]), type_)


def _pattern(builder: Callable[[Node, Node], Node]) -> Builder:
    return lambda arguments: builder(arguments[0], arguments[1])


def _like(*, any_case: bool) -> Builder:
    return lambda arguments: patterns.like(arguments[0], arguments[1], any_case=any_case)


def _binary(symbol: str) -> Builder:
    return lambda arguments: arithmetic.binary(
        symbol, to_scalar(arguments[0]), to_scalar(arguments[1])
    )


_TABLE: list[tuple[str, int, int, Builder]] = [
    ("abs", 1, 1, lambda a: arithmetic.absolute(to_scalar(a[0]))),
    ("bigint", 1, 1, _cast_to(LONG)),
    ("binary", 1, 1, _cast_to(BINARY)),
    ("boolean", 1, 1, _cast_to(BOOLEAN)),
    ("char_length character_length length len", 1, 1, _length),
    ("coalesce", 1, 1000, conditionals.coalesce),
    ("concat", 1, 1000, concat),
    ("contains", 2, 2, _pattern(patterns.contains)),
    ("decimal", 1, 1, _cast_to(DecimalType(10, 0))),
    ("double", 1, 1, _cast_to(DOUBLE)),
    ("endswith", 2, 2, _pattern(patterns.ends_with)),
    ("equal_null", 2, 2, lambda a: comparison.equal_or_both_null(a[0], a[1])),
    ("float", 1, 1, _cast_to(FLOAT)),
    ("if", 3, 3, lambda a: conditionals.case([(a[0], a[1])], a[2])),
    ("ilike", 2, 2, _like(any_case=True)),
    ("int", 1, 1, _cast_to(INTEGER)),
    ("isnotnull", 1, 1, lambda a: conditionals.is_not_null(a[0])),
    ("isnull", 1, 1, lambda a: comparison.is_null(a[0])),
    ("left", 2, 2, _end(lambda text, count: text[: max(count, 0)])),
    ("like", 2, 2, _like(any_case=False)),
    ("lower lcase", 1, 1, lambda a: _of_text(_cased(str.lower), a[0])),
    ("mod", 2, 2, _binary("%")),
    ("negative", 1, 1, lambda a: arithmetic.negative(to_scalar(a[0]))),
    ("nullif", 2, 2, lambda a: conditionals.nullif(a[0], a[1])),
    ("nvl ifnull", 2, 2, conditionals.coalesce),
    ("nvl2", 3, 3, lambda a: conditionals.case([(conditionals.is_not_null(a[0]), a[1])], a[2])),
    ("right", 2, 2, _end(lambda text, count: text[-count:] if count > 0 else "")),
    ("rlike regexp regexp_like", 2, 2, _pattern(patterns.regexp)),
    ("smallint", 1, 1, _cast_to(SHORT)),
    ("startswith", 2, 2, _pattern(patterns.starts_with)),
    ("string", 1, 1, _cast_to(STRING)),
    ("substring substr", 2, 3, lambda a: substring(a[0], a[1], a[2] if len(a) > 2 else None)),
    ("tinyint", 1, 1, _cast_to(BYTE)),
    ("trim", 1, 1, lambda a: trim(a[0])),
    ("ltrim", 1, 1, lambda a: trim(a[0], "LEADING")),
    ("rtrim", 1, 1, lambda a: trim(a[0], "TRAILING")),
    ("upper ucase", 1, 1, lambda a: _of_text(_cased(str.upper), a[0])),
    *dates.FUNCTIONS,
]
_FUNCTIONS = {name: builder for names, _, _, builder in _TABLE for name in names.split()}
_ARITY = {name: (least, most) for names, least, most, _ in _TABLE for name in names.split()}
