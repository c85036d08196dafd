"""Predicates over a column of every type, for judging beside Spark.

`exact` predicates are those that must be judged as Spark does, value by value; of the `loose`
ones some have no certain outcome (errors, differences between Spark's modes), and only what
Spark finds true must be found possible.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

VALUES: dict[str, tuple[str | None, ...]] = {
    "byte": ("-128", "-1", "0", "1", "5", "127", None),
    "short": ("-32768", "-1", "0", "1", "300", None),
    "integer": ("-2147483648", "-1", "0", "1", "10", "20", "2147483647", None),
    "long": ("-9223372036854775808", "0", "1", "9007199254740993", "9223372036854775807", None),
    "float": ("-1.5", "0.0", "0.1", "1.0", "3.4028235E38", "NaN", "Infinity", None),
    "double": ("-1.5", "-0.0", "0.1", "1.0", "16777217.0", "1.0E300", "NaN", None),
    "decimal(10,2)": ("-1.50", "0.00", "1.00", "9.99", "10.00", "99999999.99", None),
    "boolean": ("true", "false", None),
    "string": ("a", "abc", "A", "10", "2", " 7 ", "1.5", "true", "2024-01-31", "x%y", "café", None),
    "date": ("0001-01-01", "1969-12-31", "2000-02-29", "2024-01-31", "2024-12-30", None),
    # With a zone: a value without one is another instant in each session.
    "timestamp": (
        "1969-12-31T23:59:59.500000Z",
        "2000-01-01T12:00:00.000000Z",
        "2024-01-31T23:59:59.999999Z",
        "2024-02-01T00:00:00.000000Z",
        None,
    ),
    "timestamp_ntz": ("1970-01-01 00:00:00", "2024-02-01 00:00:00", None),
    "binary": ("a", "abc", "é", None),
}
"""The partition values of each type, as the log has them."""

SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}

_INTEGERS = ("0", "1", "-1", "5", "127", "300", "2147483648", "-9223372036854775808", "NULL")
_NUMBERS = (*_INTEGERS, "1.0", "9.99", "1.5BD", "0.1D", "1e300", "1S", "5L", "-128Y")
_LITERALS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), _NUMBERS),
    "float": ("0", "1.0", "0.1F", "0.1D", "1e39", "double('NaN')", "float('-inf')", "1.5", "NULL"),
    "double": ("0", "1.0", "0.1F", "0.1", "16777217", "double('NaN')", "1e300", "NULL"),
    "decimal(10,2)": ("1", "1.0", "9.990", "9.991", "-1.5", "100000000", "0.1D", "1e1", "NULL"),
    "boolean": ("true", "false", "NULL", "(1 = 1)"),
    "string": ("'a'", "'abc'", "'A'", "''", "'10'", "'x%y'", "'caf\\u00e9'", '"2"', "r'a'", "NULL"),
    "date": (
        "DATE '2024-01-31'",
        "'2024-01-31'",
        "'2024'",
        "TIMESTAMP '2024-01-31 00:00:00'",
        "DATE '1970-01-01'",
        "to_date('2000-02-29')",
        "NULL",
    ),
    "timestamp": (
        "TIMESTAMP '2024-02-01 00:00:00'",
        "'2024-02-01'",
        "'2024-02-01T00:00:00Z'",
        "TIMESTAMP '2024-02-01 01:00:00+01:00'",
        "DATE '2000-01-01'",
        "TIMESTAMP_NTZ '2024-02-01 00:00:00'",
        "NULL",
    ),
    "timestamp_ntz": ("TIMESTAMP_NTZ '2024-02-01 00:00:00'", "DATE '1970-01-01'", "NULL"),
    "binary": ("X'61'", "X'616263'", "X''", "NULL"),
}
_LOOSE_LITERALS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("byte", "short", "integer", "long", "float", "double", "decimal(10,2)"),
        (
            "'1'",
            "' 1 '",
            "'1.0'",
            "'abc'",
            "'10'",
            "9223372036854775808",
            "0.5F",
            "12345678901234567890.5",
        ),
    ),
    "boolean": ("'true'", "'0'", "'maybe'"),
    "string": ("10", "2", "1.5", "2e0", "7L", "DATE '2024-01-31'", "X'61'"),
    "date": ("'2024-1-31'", "'soon'", "'2024-01-31 12:00:00'"),
    "timestamp": ("'2024-02'", "'soon'", "'2024-02-01 00:00'"),
    "timestamp_ntz": ("'2024-02-01'", "'soon'", "TIMESTAMP '2024-02-01 00:00:00'"),
    "binary": ("'é'", "'abc'"),
}
_NUMERIC = ("byte", "short", "integer", "long", "float", "double", "decimal(10,2)")
_DATED = ("date", "timestamp", "timestamp_ntz")
_OPERATORS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True)
class Case:
    """A predicate over the column `x` of a type."""

    type: str
    text: str
    exact: bool


def cases() -> list[Case]:
    return [
        *(Case(type_, text, True) for type_ in VALUES for text in dict.fromkeys(_exact(type_))),
        *(Case(type_, text, False) for type_ in VALUES for text in dict.fromkeys(_loose(type_))),
    ]


def _pairs(literals: tuple[str, ...], count: int) -> list[tuple[str, str]]:
    pairs = list(itertools.permutations(literals, 2))
    return random.Random(7).sample(pairs, min(count, len(pairs)))


def _comparisons(literals: tuple[str, ...]) -> Iterator[str]:
    for operator, literal in itertools.product(_OPERATORS, literals):
        yield f"x {operator} {literal}"
    for literal in literals:
        yield f"{literal} < x"
        yield f"NOT (x = {literal})"
        yield f"x IS DISTINCT FROM {literal}"
        yield f"x IS NOT DISTINCT FROM {literal}"


def _lists(literals: tuple[str, ...], count: int) -> Iterator[str]:
    for one, other in _pairs(literals, count):
        yield f"x IN ({one}, {other})"
        yield f"x NOT IN ({one}, {other})"
        yield f"x BETWEEN {one} AND {other}"
        yield f"x NOT BETWEEN {one} AND {other}"


def _exact(type_: str) -> Iterator[str]:
    literals = _LITERALS[type_]
    yield from ("x IS NULL", "x IS NOT NULL", "NOT x IS NULL", "x = x", "x <=> x", "x <=> NULL")
    yield from _comparisons(literals)
    # Without ANSI mode a list that holds text is compared as text.
    yield from _lists(
        tuple(literal for literal in literals if type_ == "string" or literal[0] != "'"), 6
    )
    for literal in literals[:4]:
        for word in ("TRUE", "NOT TRUE", "FALSE", "UNKNOWN", "NOT UNKNOWN"):
            yield f"(x > {literal}) IS {word}"
        yield f"(x = {literal}) IS NULL OR x > {literal} AND NOT x < {literal}"
        yield f"CASE WHEN x = {literal} THEN 1 WHEN x IS NULL THEN 2 ELSE 3 END <> 3"
        yield f"CASE x WHEN {literal} THEN true END"
        yield f"if(x < {literal}, 'a', 'b') = 'a'"
        yield f"x = {literal} = true"
        yield f"x = {literal} IS NOT NULL"
    if type_ == "string":
        yield from _texts()
    elif type_ in _DATED:
        yield from _dates()
    elif type_ in ("byte", "short", "integer"):
        for expression in (
            "x % 3",
            "x / 2",
            "x DIV 2L",
            "x + 1L",
            "x * 1.5",
            "-(x + 1.5)",
        ):
            yield f"{expression} > 0.5"
            yield f"{expression} = 1"
        yield "CAST(x AS STRING) = '1'"
        yield "x LIKE '1%'"
        yield "CAST(x AS BIGINT) = 1 AND CAST(x AS DOUBLE) = 1 AND CAST(x AS DECIMAL(20,2)) = 1"
        yield "TRY_CAST(x AS TINYINT) IS NULL"
    elif type_ == "boolean":
        yield from ("x", "NOT x", "! x", "x AND NULL", "x OR NULL", "x IS TRUE", "x OR NOT x")
        yield from ("CAST(x AS INT) = 1", "coalesce(x, false)")


def _texts() -> Iterator[str]:
    patterns = (
        "'a%'",
        "'%c'",
        "'a_c'",
        "'%'",
        "'x\\%y'",
        "'x!%y' ESCAPE '!'",
        "'%0%'",
        "'caf_'",
        "NULL",
    )
    for pattern in patterns:
        yield f"x LIKE {pattern}"
        yield f"x NOT LIKE {pattern}"
    expressions = (
        "substring(x, 1, 1)",
        "substring(x, 2)",
        "substring(x, -2, 1)",
        "substr(x, 0, 2)",
        "substring(x FROM 2 FOR 1)",
        "coalesce(x, 'none')",
    )
    for expression, literal in itertools.product(expressions, ("'a'", "'7'", "'a!'", "'none'")):
        yield f"{expression} = {literal}"
        yield f"{expression} < {literal}"
    yield "startswith(x, 'a')"
    yield from (
        "TRY_CAST(x AS INT) IS NULL",
        "TRY_CAST(x AS INT) = 10",
        "TRY_CAST(x AS DATE) IS NULL",
    )
    yield from ("TRY_CAST(x AS BOOLEAN)", "x::string = 'a'")


def _dates() -> Iterator[str]:
    fields = "year month day dayofmonth quarter dayofyear dayofweek weekday weekofyear"
    for field, number in itertools.product(fields.split(), ("1", "31", "2024")):
        yield f"{field}(x) = {number}"
    for expression in (
        "extract(YEAR FROM x)",
        "extract(month FROM x)",
        "extract(QUARTER FROM x)",
        "extract(day FROM x)",
        "extract(hour FROM x)",
        "extract(minute FROM x)",
        "hour(x)",
        "minute(x)",
        "second(x)",
        "year(x) * 100 + month(x)",
    ):
        yield f"{expression} IN (0, 12, 30, 202401, 2024)"
        yield f"{expression} > 20"
    for expression in (
        "to_date(x)",
        "date(x)",
        "date_add(x, 1)",
        "date_sub(x, -1)",
        "trunc(x, 'MONTH')",
        "trunc(x, 'quarter')",
        "trunc(x, 'WEEK')",
        "date_trunc('MONTH', x)",
        "date_trunc('HOUR', x)",
        "CAST(x AS DATE)",
        "CAST(x AS TIMESTAMP)",
    ):
        yield f"{expression} = DATE '2024-02-01'"
        yield f"{expression} > TIMESTAMP '2000-01-01 00:00:00'"
    yield "CAST(x AS STRING) LIKE '2024-%'"


def _loose(type_: str) -> Iterator[str]:
    literals = _LOOSE_LITERALS[type_]
    yield from _comparisons(literals)
    if type_ not in ("boolean", "binary"):
        plain = tuple(literal for literal in literals if literal[:2] not in ("DA", "X'"))
        yield from _lists((*plain, *_LITERALS[type_][:2]), 8)
    if type_ in _NUMERIC:
        expressions = (
            "x + 1",
            "x - 1",
            "x * x",
            "1 / x",
            "5 % x",
            "-x",
            "abs(x)",
            "x + '1'",
            "x + 0.5F",
        )
        for expression in expressions:
            yield f"{expression} > 0"
            yield f"({expression}) IS NULL"
        names = (
            "tinyint",
            "int",
            "bigint",
            "float",
            "decimal(5,1)",
            "string",
            "boolean",
            "timestamp",
        )
    elif type_ == "string":
        names = (
            "tinyint",
            "int",
            "double",
            "decimal(5,1)",
            "boolean",
            "date",
            "timestamp",
            "binary",
        )
        yield from (
            "upper(x) = 'A'",
            "lower(x) = 'a'",
            "x ILIKE 'A%'",
            "x RLIKE 'a|b'",
        )
        yield from ("year(x) = 2024", "length(x) = 4", "x + 1 > 3", "x || 1 = 'a1'")
    else:
        names = ("string",)
    for name, cast in itertools.product(names, ("CAST", "TRY_CAST")):
        yield f"{cast}(x AS {name}) IS NULL"
        if name != "boolean":
            yield (
                f"{cast}(x AS {name}) = CAST(1 AS {name})"
                if name in ("int", "bigint", "float")
                else f"{cast}(x AS {name}) = '1'"
            )
