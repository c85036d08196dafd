"""Predicates judged in few words, through their public face alone."""

import json
from collections.abc import Mapping, Sequence

import pytest

from tidegate_protocol.log.statistics import FileStatistics
from tidegate_protocol.scan.predicates import InvalidPredicate, Predicate, parse_predicate
from tidegate_protocol.schema.table_schema import StructType, parse_schema

UNDECIDED = "undecided"

Columns = Mapping[str, object] | str


def schema(columns: Mapping[str, object], **metadata: object) -> StructType:
    """A schema from names and types, the types as the log has them; all columns have the
    metadata."""
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": metadata}
        for name, type_ in columns.items()
    ]
    return parse_schema(json.dumps({"type": "struct", "fields": fields}))


def predicate(
    text: str,
    columns: Columns = "integer",
    partition_by: Sequence[str] = ("x",),
    **metadata: object,
) -> Predicate:
    """A predicate over a table; by default over the partition column `x` of a type, beside the
    data columns `v` (integer) and `s` (string)."""
    if isinstance(columns, str):
        columns = {"x": columns, "v": "integer", "s": "string"}
    return parse_predicate(text, schema(columns, **metadata), partition_by)


def matches(text: str, value: str | None = "1", type_: str = "integer") -> bool:
    """Whether a partition of this value of `x` may match."""
    return predicate(text, type_).matches_partition({"x": value})


def truth(text: str, value: str | None = "1", type_: str = "integer") -> bool | str | None:
    """The one outcome that the predicate can have, or `UNDECIDED` where there are more."""
    outcomes = {
        True: matches(text, value, type_),
        False: matches(f"NOT ({text})", value, type_),
        None: matches(f"({text}) IS NULL", value, type_),
    }
    found = [outcome for outcome, possible in outcomes.items() if possible]
    return found[0] if len(found) == 1 else UNDECIDED


def check(text: str, value: str | None, type_: str, expected: bool | str | None) -> None:
    """Assert that the predicate has this one outcome for this value of `x`."""
    found = truth(text, value, type_)
    assert found == expected, (text, value, type_)
    assert type(found) is type(expected)


def refusal(text: str, columns: Columns = "integer") -> InvalidPredicate:
    """The error that the text is refused with."""
    with pytest.raises(InvalidPredicate) as caught:
        predicate(text, columns)
    return caught.value


def statistics(
    *,
    low: Mapping[str, object] | None = None,
    high: Mapping[str, object] | None = None,
    nulls: Mapping[str, object] | None = None,
    records: int = 10,
    **fields: object,
) -> FileStatistics:
    """A file's statistics from minValues, maxValues and nullCount."""
    parts = {"minValues": low, "maxValues": high, "nullCount": nulls}
    known = {name: part for name, part in parts.items() if part is not None}
    return FileStatistics.parse(json.dumps({"numRecords": records, **known, **fields}))
