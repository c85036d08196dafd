"""Values of every type for generated predicates, in Spark's order, and files of rows of them.

A type's values stand in Spark's order, so that a file's minimum and maximum are known without
comparing values: no code under test says what is smaller.
"""

import datetime as dt
import json
import random
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import msgspec

from tests.protocol.log.roundings import cut_to_minutes, maximum_of_old_delta

SQL_NAMES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_LONG_TEXT = "prefix-of-thirty-two-characters-"
_TIMES = (
    "0001-01-01 00:00:00",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2024-01-31 12:00:00.5",
    # Europe/Berlin has no 02:30 on the first of these days and two on the other.
    "2024-03-31 00:59:59.999999",
    "2024-03-31 01:00:00",
    "2024-03-31 02:30:00",
    "2024-10-27 00:30:00",
    "2024-10-27 01:30:00.123456",
    "9999-12-31 23:59:59.999999",
)
_FLOATS = ("-Infinity", "-3.4028235E38", "-1.5", "-0.0", "0.0", "0.1", "1.0", "2.0", "1.6777216E7")

VALUES: dict[str, tuple[str, ...]] = {
    "byte": ("-128", "-1", "0", "1", "2", "5", "127"),
    "short": ("-32768", "-129", "-1", "0", "1", "2", "300", "32767"),
    "integer": ("-2147483648", "-1", "0", "1", "2", "10", "300", "20240131", "2147483647"),
    "long": (
        "-9223372036854775808",
        "-1",
        "0",
        "1",
        "2",
        "2147483648",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775807",
    ),
    "float": (*_FLOATS, "3.4028235E38", "Infinity", "NaN"),
    "double": (*_FLOATS, "1.6777217E7", "9.007199254740992E15", "1.0E300", "Infinity", "NaN"),
    "decimal(10,2)": ("-99999999.99", "-1.50", "0.00", "0.10", "1.00", "2.00", "99999999.99"),
    "decimal(38,10)": (
        "-9999999999999999999999999999.9999999999",
        "-1.5000000000",
        "0.0000000000",
        "0.1000000000",
        "1.0000000000",
        "9007199254740993.0000000001",
        "9999999999999999999999999999.9999999999",
    ),
    "boolean": ("false", "true"),
    "string": tuple(
        sorted(
            {
                " ",
                " 7 ",
                "-1",
                "0",
                "1",
                "1.0",
                "1e0",
                "10",
                "2",
                "2024",
                "2024-01-31",
                "2024-03-31 02:30:00",
                "A",
                "NaN",
                "a",
                "a ",
                "a\tb",
                "a%",
                "a'b",
                "a\\b",
                "a_c",
                "abc",
                "abc\n",
                "caf\u00e9",
                "cafe\u0301",
                "\ufb00",
                "\uffff",
                "\U0001f600",
                "true",
                "x\ny",
                "\u00df",
                "\u0130",
                f"{_LONG_TEXT}",
                f"{_LONG_TEXT}a",
                f"{_LONG_TEXT}\U0001f600",
                f"{_LONG_TEXT[1:]}\U0001f600\U0001f600",
                f"{_LONG_TEXT}\uffff",
            }
        )
    ),
    "date": (
        "0001-01-01",
        "1582-10-04",
        "1582-10-15",
        "1969-12-31",
        "1970-01-01",
        "2000-02-29",
        "2024-01-31",
        "2024-03-31",
        "9999-12-31",
    ),
    "timestamp": _TIMES,
    "timestamp_ntz": _TIMES,
    "binary": ("a", "a ", "abc", "b", "\u00e9", "\U0001f600"),
}
"""By Delta's name of the type; as a partition value has them, timestamps in UTC."""

DATA_ONLY = {"string": ("",), "binary": ("",)}
"""Values before the others that a partition column cannot have: there they are null."""

NESTED = ("integer", "string", "timestamp")


@dataclass(frozen=True, slots=True)
class Column:
    """`path` is the column as SQL names it."""

    path: str
    type: str
    is_partition: bool


def columns() -> list[Column]:
    """A partition column and a data column of each type, and fields of the struct `n`."""
    return [
        *(Column(f"p_{short_name(type_)}", type_, True) for type_ in VALUES),
        *(Column(f"d_{short_name(type_)}", type_, False) for type_ in VALUES),
        *(Column(f"n.d_{short_name(type_)}", type_, False) for type_ in NESTED),
    ]


def short_name(type_: str) -> str:
    return {"decimal(10,2)": "small_decimal", "decimal(38,10)": "large_decimal"}.get(type_, type_)


def schema_string() -> str:
    def field(name: str, type_: object) -> dict[str, object]:
        return {"name": name, "type": type_, "nullable": True, "metadata": {}}

    flat = [field(c.path, c.type) for c in columns() if "." not in c.path]
    inner = [field(c.path[2:], c.type) for c in columns() if "." in c.path]
    nested = field("n", {"type": "struct", "fields": inner})
    return json.dumps({"type": "struct", "fields": [*flat, nested]})


def sql_type(type_: str) -> str:
    return SQL_NAMES.get(type_, type_)


def quoted(text: str) -> str:
    """A text as a Spark SQL literal on one line."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


@dataclass(frozen=True, slots=True)
class DataFile:
    """What the log says of a file, and its rows: a text or null by the path of its column."""

    partition: dict[str, str | None]
    stats: str | None
    rows: tuple[dict[str, str | None], ...]


def data_file(dice: random.Random) -> DataFile:
    """A file of one row or two, described as one of several writers would."""
    known = columns()
    partition = {
        column.path: _value(dice, VALUES[column.type]) for column in known if column.is_partition
    }
    rows = []
    # A file of neighbouring values has narrow bounds.
    centers = {column.path: dice.random() for column in known}
    for _ in range(dice.choice((1, 1, 2))):
        row = {}
        for column in known:
            if column.is_partition:
                continue
            values = (*DATA_ONLY.get(column.type, ()), *VALUES[column.type])
            place = round(centers[column.path] * (len(values) - 1)) + dice.randint(-1, 1)
            near = values[min(max(place, 0), len(values) - 1)]
            if column.type in ("float", "double") and dice.random() < 0.15:
                # Beside finite numbers, too, which may be all that a writer's maximum knows.
                near = "NaN"
            row[column.path] = None if dice.random() < 0.15 else near
        rows.append({**partition, **row})
    writer = dice.choice(_WRITERS)
    stats = writer(rows)
    # Bounds are wide where a deletion vector hides rows.
    return DataFile(partition, stats, tuple(rows[1:] if writer is _wide and rows[1:] else rows))


def _value(dice: random.Random, values: tuple[str, ...]) -> str | None:
    return None if dice.random() < 0.12 else dice.choice(values)


def _without(_: list[dict[str, str | None]]) -> None:
    return None


def _as_spark(rows: list[dict[str, str | None]]) -> str:
    """As Delta for Spark: texts of 32 characters, times of milliseconds, NaN in quotes."""
    return _stats(rows, leaves_nan_out=False, tight=None)


def _as_old_spark(rows: list[dict[str, str | None]]) -> str:
    """As Delta for Spark was before 3.3, far from UTC: rounded the wrong way now and then."""
    return _stats(rows, leaves_nan_out=False, tight=None, rounded=True)


def _as_rust(rows: list[dict[str, str | None]]) -> str:
    """As delta-rs: NaN is passed over, an infinite bound is null."""
    return _stats(rows, leaves_nan_out=True, tight=None)


def _wide(rows: list[dict[str, str | None]]) -> str:
    return _stats(rows, leaves_nan_out=False, tight=False)


_WRITERS = (_as_spark, _as_old_spark, _as_rust, _wide, _without)
_FAR = ZoneInfo("Europe/Stockholm")
_LAST_YEAR = "9999"


def _stats(
    rows: list[dict[str, str | None]],
    *,
    leaves_nan_out: bool,
    tight: bool | None,
    rounded: bool = False,
) -> str:
    parts: dict[str, dict[str, object]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for column in columns():
        if column.is_partition:
            continue
        values = [row[column.path] for row in rows]
        _put(parts["nullCount"], column.path, values.count(None))
        order = (*DATA_ONLY.get(column.type, ()), *VALUES[column.type])
        present = sorted((v for v in values if v is not None), key=order.index)
        if leaves_nan_out:
            present = [value for value in present if value != "NaN"]
        if not present or column.type in ("binary", "boolean"):
            continue
        for part, value in (("minValues", present[0]), ("maxValues", present[-1])):
            bound = _bound(column.type, value, upper=part == "maxValues", rounded=rounded)
            is_left_out = leaves_nan_out and value.endswith("Infinity")
            _put(parts[part], column.path, None if is_left_out else bound)
    found: dict[str, object] = {"numRecords": len(rows), **parts}
    return msgspec.json.encode(found if tight is None else {**found, "tightBounds": tight}).decode()


def _put(tree: dict[str, object], path: str, value: object) -> None:
    *structs, name = path.split(".")
    for struct in structs:
        tree = tree.setdefault(struct, {})  # type: ignore[assignment]
    tree[name] = value


def _bound(type_: str, text: str, *, upper: bool, rounded: bool) -> object:
    if type_ == "string":
        if upper and rounded:
            return maximum_of_old_delta(text)
        cut = text[:32]
        return cut + "\U0010ffff" if upper and len(text) > 32 else cut
    if type_ == "date":
        return text
    if type_ in ("timestamp", "timestamp_ntz"):
        if type_ == "timestamp" and rounded and not text.startswith(_LAST_YEAR):
            return cut_to_minutes(dt.datetime.fromisoformat(f"{text}+00:00"), _FAR)
        day, _, time = text.partition(" ")
        whole, _, fraction = time.partition(".")
        zone = "Z" if type_ == "timestamp" else ""
        return f"{day}T{whole}.{(fraction + '000')[:3]}{zone}"
    if text in ("NaN", "Infinity", "-Infinity"):
        return text
    # The digits as they are: a double does not hold those of every decimal.
    return msgspec.Raw(text.encode())
