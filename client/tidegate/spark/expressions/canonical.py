"""Conditions in the form that the service reads, whatever a session's settings are.

Spark says what a condition means: its analyzer has resolved names and types, and its optimizer
computes what names no column and takes casts off columns. What is left is written here from
Catalyst's tree, with literals of one kind each. A part that has no such form is left out.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pyspark.sql import SparkSession

from tidegate.spark.expressions.catalyst import Node, flat, tree_of
from tidegate.spark.expressions.resolution import conjuncts
from tidegate.spark.storage.hadoop import JavaObject
from tidegate.spark.tables.zones import is_utc

_DEEPEST = 20
"""Levels; the service reads 24."""
_COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "StartsWith": "startswith",
}
_ARITHMETIC = {"Add": "+", "Subtract": "-", "Multiply": "*", "Remainder": "%"}
_OF_DATES = {
    "Year": "year",
    "Quarter": "quarter",
    "Month": "month",
    "DayOfMonth": "day",
    "DayOfYear": "dayofyear",
    "DayOfWeek": "dayofweek",
    "WeekDay": "weekday",
    "WeekOfYear": "weekofyear",
}
_INTEGRAL = {"byte": ("TINYINT", 3), "short": ("SMALLINT", 5)} | {
    "integer": ("INT", 10),
    "long": ("BIGINT", 20),
}
"""The type's name in SQL, and its digits in decimals; narrowest first."""
_COMPARED = (
    *(*_INTEGRAL, "boolean", "double", "float", "string"),
    *("date", "timestamp", "timestamp_ntz"),
)
"""Types whose values the service compares as Spark does, beside decimals. Text with a collation has
another type."""
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def implied(spark: SparkSession, expression: JavaObject, *, longest: int) -> list[str]:
    """Conditions each of which is true wherever the resolved expression is. A list that would have
    more than so many bytes is the range of its values."""
    tree = _Tree.of(spark, expression, longest=longest)
    if tree is not None:
        return tree.parts(tree.root)
    # What has no tree may be one part of many.
    trees = (_Tree.of(spark, part, longest=longest) for part in conjuncts(expression))
    return [text for each in trees if each is not None for text in each.parts(each.root)]


def exact(spark: SparkSession, expression: JavaObject) -> str | None:
    """A condition that is true, false and null where the resolved expression is; None where it has
    no such form."""
    tree = _Tree.of(spark, expression)
    return None if tree is None else tree.condition(tree.root, is_exact=True)


def column_text(path: Sequence[str]) -> str:
    """A column, or a field of a struct."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)


def literal(data_type: str, value: str | None) -> str | None:
    """A value of a type (`integer`, `decimal(10,2)`) as Catalyst and the log write it; None for one
    that the service may take for another, and for types of which that is not known."""
    match data_type:
        case _ if value is None:
            return "NULL"
        case _ if data_type in _INTEGRAL:
            return value
        case "boolean":
            return value.lower()
        case "date":
            return f"DATE'{value}'" if _DATE.fullmatch(value) else None
        case "string":
            return _text(value)
        case "float" | "double":
            suffix = "F" if data_type == "float" else "D"
            return None if value.endswith(("NaN", "Infinity")) else value + suffix
        case _ if _DECIMAL.fullmatch(data_type):
            return f"{value}BD"
    return None


def _text(value: str) -> str | None:
    # The second stands for bytes that are no UTF-8, too.
    if "\0" in value or "\ufffd" in value:
        return None
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """An expression in the service's words, and its type."""

    text: str
    type: str

    @property
    def is_comparable(self) -> bool:
        return self.type in _COMPARED or _DECIMAL.fullmatch(self.type) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tree:
    """A resolved condition. `computes` is whether sums may be written: those of `try_add` look like
    others in it. `longest` is that of `implied`."""

    root: Node
    computes: bool
    longest: int

    @classmethod
    def of(cls, spark: SparkSession, expression: JavaObject, *, longest: int = 0) -> Self | None:
        root = tree_of(spark, expression)
        computes = "try_" not in str(expression.sql()).lower()
        return None if root is None else cls(root=root, computes=computes, longest=longest)

    def parts(self, node: Node) -> list[str]:
        """Of AND: those that have a form, or that something with a form follows from."""
        texts = (self.condition(part, is_exact=False) for part in flat(node, "And"))
        return [text for text in texts if text is not None]

    def condition(self, node: Node, *, is_exact: bool, depth: int = 0) -> str | None:
        """None where it has no form. Without `is_exact` it may be true of more."""
        if depth > _DEEPEST:
            return None
        if node.kind in ("And", "Or"):
            texts = [
                self.condition(each, is_exact=is_exact, depth=depth + 1)
                for each in flat(node, node.kind)
            ]
            known = [text for text in texts if text is not None]
            if not known or (len(known) < len(texts) and (is_exact or node.kind == "Or")):
                return None
            return f"({f' {node.kind.upper()} '.join(known)})"
        if node.kind == "Not":
            negated = self.condition(node.children[0], is_exact=True, depth=depth + 1)
            return None if negated is None else f"(NOT {negated})"
        values = [self._value(child, depth + 1) for child in node.children]
        if node.kind in ("IsNull", "IsNotNull"):
            (value,) = values
            word = "NULL" if node.kind == "IsNull" else "NOT NULL"
            return None if value is None else f"({value.text} IS {word})"
        if node.kind in (*_COMPARISONS, "In"):
            text = _comparison(node, values)
            is_short = text is None or is_exact or len(text.encode()) <= self.longest
            return text if is_short else _range(node, values)
        found = self._value(node, depth)
        return None if found is None or found.type != "boolean" else found.text

    def _value(self, node: Node, depth: int) -> _Value | None:
        if depth > _DEEPEST:
            return None
        if node.kind == "Literal":
            return _of_literal(node)
        if (path := _path(node)) is not None:
            names, data_type = path
            return _Value(text=column_text(names), type=str(data_type))
        if node.kind in ("And", "Or", "Not", "IsNull", "IsNotNull", "In", *_COMPARISONS):
            text = self.condition(node, is_exact=True, depth=depth)
            return None if text is None else _Value(text=text, type="boolean")
        values = [self._value(child, depth + 1) for child in node.children]
        if not values or any(value is None for value in values):
            return None
        return self._computed(node, [value for value in values if value is not None])

    def _computed(self, node: Node, values: Sequence[_Value]) -> _Value | None:
        first, types = values[0], [value.type for value in values]
        arguments = ", ".join(value.text for value in values)
        if node.kind == "Cast":
            return _cast(node, first)
        if node.kind in _ARITHMETIC and self.computes and types in (["integer"] * 2, ["long"] * 2):
            text = f" {_ARITHMETIC[node.kind]} ".join(value.text for value in values)
            return _Value(text=f"({text})", type=first.type)
        if node.kind in _OF_DATES and types == ["date"]:
            return _Value(text=f"{_OF_DATES[node.kind]}({arguments})", type="integer")
        if node.kind == "Substring" and types == ["string", "integer", "integer"]:
            return _Value(text=f"substring({arguments})", type="string")
        if node.kind == "Coalesce" and first.is_comparable and len(set(types)) == 1:
            return _Value(text=f"coalesce({arguments})", type=first.type)
        return None


def _comparison(node: Node, values: Sequence[_Value | None]) -> str | None:
    known = [value for value in values if value is not None and value.is_comparable]
    if len(known) < len(values) or len({value.type for value in known}) > 1:
        return None
    first, *others = (value.text for value in known)
    match node.kind:
        case "In":
            return f"({first} IN ({', '.join(others)}))"
        case "StartsWith":
            return f"startswith({first}, {others[0]})"
    return f"({first} {_COMPARISONS[node.kind]} {others[0]})"


def _range(node: Node, values: Sequence[_Value | None]) -> str | None:
    """What follows from a list of literals of an ordered type."""
    value, listed = values[0], node.children[1:]
    if value is None or value.type not in (*_INTEGRAL, "date", "string"):
        return None
    if any(each.kind != "Literal" for each in listed):
        return None
    known = [each.fields["value"] for each in listed if each.fields["value"] is not None]
    if not known:
        return None
    order: Callable[[str], int | bytes] = int if value.type in _INTEGRAL else str.encode
    bounds = (literal(value.type, each) for each in (min(known, key=order), max(known, key=order)))
    low, high = bounds
    if low is None or high is None:
        return None
    return f"({value.text} >= {low} AND {value.text} <= {high})"


def _of_literal(node: Node) -> _Value | None:
    if not isinstance(node.fields["dataType"], str):
        return None
    if "text" in node.fields:
        text = node.fields["text"]
    else:
        value = node.fields["value"]
        text = literal(node.fields["dataType"], None if value is None else str(value))
    return None if text is None else _Value(text=text, type=node.fields["dataType"])


def _cast(node: Node, value: _Value) -> _Value | None:
    """One that no setting has a say in and that never fails."""
    target = str(node.fields["dataType"])
    if target == value.type:
        return value
    if value.type in _INTEGRAL and target in _INTEGRAL:
        ranks = list(_INTEGRAL)
        if ranks.index(target) > ranks.index(value.type):
            return _Value(text=f"CAST({value.text} AS {_INTEGRAL[target][0]})", type=target)
    whole = _whole_digits(target)
    if value.type in _INTEGRAL and whole is not None and whole >= _INTEGRAL[value.type][1]:
        return _Value(text=f"CAST({value.text} AS {target})", type=target)
    is_in_utc = value.type == "timestamp" and is_utc(str(node.fields.get("timeZoneId")))
    if target == "date" and (is_in_utc or value.type == "timestamp_ntz"):
        return _Value(text=f"CAST({value.text} AS DATE)", type=target)
    return None


def _whole_digits(data_type: str) -> int | None:
    """Of a decimal before the point."""
    found = _DECIMAL.fullmatch(data_type)
    return None if found is None else int(found[1]) - int(found[2])


def _path(node: Node) -> tuple[list[str], Any] | None:
    """The names and the type of a column, or of a field of a struct."""
    if node.kind == "AttributeReference":
        return [str(node.fields["name"])], node.fields["dataType"]
    if node.kind != "GetStructField":
        return None
    found = _path(node.children[0])
    if found is None or not isinstance(found[1], dict):
        return None
    names, data_type = found
    field = data_type["fields"][node.fields["ordinal"]]
    return [*names, str(field["name"])], field["type"]
