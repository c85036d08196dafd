"""A seeded generator of Spark SQL predicates over the columns of `values`.

It is led by types, so that Spark understands most of what it makes, and leaves the types' paths
often enough to meet the implicit casts.
"""

import random
from collections.abc import Callable

from tests.spark.predicates.values import VALUES, Column, columns, quoted, sql_type

INTEGERS = ("byte", "short", "integer", "long")
DECIMALS = ("decimal(10,2)", "decimal(38,10)")
FLOATING = ("float", "double")
NUMBERS = (*INTEGERS, *DECIMALS, *FLOATING)
TIMES = ("date", "timestamp", "timestamp_ntz")
_COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_TYPES = tuple(VALUES)
_ZONES = ("", "Z", "+01:00", "-08:00", " Europe/Berlin", " America/New_York", " UTC")
_SUFFIXES = {"byte": "Y", "short": "S", "long": "L", "float": "F", "double": "D"}
_LARGEST = ("-3.4028235E38", "3.4028235E38")
"""As literals of FLOAT, Spark takes them for too large."""
_CAST_FROM: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(NUMBERS, (*NUMBERS, "string", "boolean", "timestamp")),
    "date": (*TIMES, "string"),
    "timestamp": (*TIMES, "string", *NUMBERS),
    "timestamp_ntz": (*TIMES, "string"),
    "boolean": (*NUMBERS, "string"),
    "binary": ("string",),
}
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR")
_PARTS = (
    *("year", "quarter", "month", "weekofyear", "day", "dayofmonth", "dayofyear", "dayofweek"),
    *("weekday", "hour", "minute", "second"),
)


class Grammar:
    """Predicates, one after another; the same ones for the same dice."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._columns: dict[str, list[Column]] = {type_: [] for type_ in VALUES}
        for column in columns():
            self._columns[column.type].append(column)
        self._makers: dict[str, tuple[Callable[[str, int], str], ...]] = {
            **dict.fromkeys(INTEGERS, (self._sum, self._sum, self._count, self._part, self._cast)),
            **dict.fromkeys(DECIMALS, (self._sum, self._cast)),
            **dict.fromkeys(FLOATING, (self._sum, self._cast)),
            "string": (self._text, self._text, self._text, self._cast),
            "date": (self._date, self._date, self._cast),
            "timestamp": (self._time, self._cast),
            "timestamp_ntz": (self._cast,),
            "binary": (self._cast,),
            "boolean": (lambda _, depth: f"({self.predicate(depth)})", self._cast),
        }

    def whole(self) -> str:
        """A predicate of up to three levels of connectives."""
        return self.predicate(self._dice.choice((0, 1, 1, 2, 3)))

    def predicate(self, depth: int) -> str:
        make = self._dice.choices(
            (
                self._comparison,
                self._list,
                self._between,
                self._pattern,
                self._null_test,
                self._connected,
                self._other,
            ),
            (8, 3, 3, 3, 2, 8 if depth > 0 else 0, 3),
        )[0]
        return make(depth - 1)

    def _one(self, *choices: str) -> str:
        return self._dice.choice(choices)

    def _type(self) -> str:
        return self._one(*_TYPES, "string", "integer", "double")

    def _relative(self, type_: str) -> str:
        """The type, mostly, or one that Spark compares with it."""
        if self._dice.random() < (0.95 if type_ in ("boolean", "binary") else 0.65):
            return type_
        if type_ in NUMBERS:
            return self._one(*NUMBERS, "string")
        return self._one(*TIMES, "string") if type_ in TIMES else self._one(type_, "string")

    def _comparison(self, depth: int) -> str:
        type_ = self._type()
        left, right = self.value(type_, depth), self.value(self._relative(type_), depth)
        if self._dice.random() < 0.1:
            word = self._one("IS DISTINCT FROM", "IS NOT DISTINCT FROM")
            return f"{left} {word} {right}"
        return f"{left} {self._one(*_COMPARISONS)} {right}"

    def _list(self, depth: int) -> str:
        type_ = self._type()
        choices = [self._member(type_, depth) for _ in range(self._dice.randint(1, 4))]
        word = self._one("IN", "IN", "NOT IN")
        return f"{self.value(type_, depth)} {word} ({', '.join(choices)})"

    def _member(self, type_: str, depth: int) -> str:
        if self._dice.random() < 0.1:
            return "NULL"
        found = self._relative(type_)
        return self.value(found, depth) if self._dice.random() < 0.15 else self.literal(found)

    def _between(self, depth: int) -> str:
        type_ = self._type()
        low, high = (self.value(self._relative(type_), min(depth, 1)) for _ in range(2))
        return f"{self.value(type_, depth)} {self._one('', 'NOT ')}BETWEEN {low} AND {high}"

    def _pattern(self, depth: int) -> str:
        type_ = "string" if self._dice.random() < 0.9 else self._type()
        text, word = self.value(type_, depth), self._one("", "NOT ")
        if self._dice.random() < 0.6:
            return f"{text} {word}{self._one('LIKE', 'LIKE', 'ILIKE')} {self._like_pattern()}"
        if self._dice.random() < 0.5:
            return f"{text} {word}RLIKE {self._regexp()}"
        name = self._one("startswith", "endswith", "contains")
        return f"{name}({text}, {self.value('string', 0)})"

    def _like_pattern(self) -> str:
        text = self._dice.choice(VALUES["string"])
        marks = ["%", "_", "", "%", "\\%", "\\_", "\\\\"]
        cut = self._dice.randint(0, len(text))
        made = [self._dice.choice(marks), text[:cut], self._dice.choice(marks), text[cut + 1 :]]
        self._dice.shuffle(made)
        if self._dice.random() < 0.15:
            return quoted("".join(made).replace("\\", "!")) + " ESCAPE '!'"
        return quoted("".join(made))

    def _regexp(self) -> str:
        piece = self._one("a", "abc", "[a-c]+", "\\d+", "a.c", ".*0", "[^a]", "caf.", " ", "a|b")
        return quoted(self._one("", "^") + piece + self._one("", "$"))

    def _null_test(self, depth: int) -> str:
        return f"{self.value(self._type(), depth)} IS {self._one('', 'NOT ')}NULL"

    def _connected(self, depth: int) -> str:
        parts = [self.predicate(depth) for _ in range(self._dice.choice((1, 2, 2, 3)))]
        if self._dice.random() < 0.7:
            parts = [f"({part})" for part in parts]
        if len(parts) == 1:
            word = self._one("TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NULL")
            return self._one(f"NOT {parts[0]}", f"NOT ({parts[0]})", f"({parts[0]}) IS {word}")
        return f" {self._one('AND', 'OR')} ".join(parts)

    def _other(self, depth: int) -> str:
        if depth < 0 or self._dice.random() < 0.4:
            return self._one(*self._paths("boolean"), "true", "false", "NULL")
        when, then, other = (self.predicate(depth - 1) for _ in range(3))
        return self._one(
            f"CASE WHEN {when} THEN {then} ELSE {other} END",
            f"CASE WHEN {when} THEN {then} END",
            f"if({when}, {then}, {other})",
            f"coalesce({when}, {other})",
            f"({when}) = ({other})",
        )

    def value(self, type_: str, depth: int) -> str:
        """An expression of the type, in parentheses where it is not of one piece."""
        if depth > 0 and self._dice.random() < 0.45:
            return self._made(type_, depth - 1)
        if self._dice.random() < 0.7:
            return self._one(*self._paths(type_))
        return "NULL" if self._dice.random() < 0.05 else self.literal(type_)

    def _paths(self, type_: str) -> list[str]:
        return [column.path for column in self._columns[type_]]

    def literal(self, type_: str) -> str:
        text = self._dice.choice(VALUES[type_])
        if type_ in TIMES:
            return self._time_literal(type_, text)
        if type_ == "string":
            return quoted(text)
        if type_ == "binary":
            return f"X'{text.encode().hex()}'"
        plain = self._dice.random() < 0.7
        if type_ in INTEGERS and plain:
            return text + (_SUFFIXES.get(type_, "") if self._dice.random() < 0.3 else "")
        if type_ in DECIMALS and plain:
            return text + self._one("", "BD")
        if type_ in FLOATING and plain and text[-1].isdigit() and text not in _LARGEST:
            return text + _SUFFIXES[type_]
        return f"CAST({quoted(text)} AS {sql_type(type_)})"

    def _time_literal(self, type_: str, text: str) -> str:
        if type_ == "date":
            return self._one(f"DATE '{text}'", f"DATE '{text}'", f"'{text}'", f"'{text[:7]}'")
        if type_ == "timestamp_ntz":
            return f"TIMESTAMP_NTZ '{text}'"
        zone = self._one(*_ZONES)
        return self._one(
            f"TIMESTAMP '{text}{zone}'", f"TIMESTAMP_LTZ '{text}{zone}'", f"'{text}{zone}'"
        )

    def _made(self, type_: str, depth: int) -> str:
        if self._dice.random() < 0.2:
            return self._conditional(type_, depth)
        return self._dice.choice(self._makers[type_])(type_, depth)

    def _conditional(self, type_: str, depth: int) -> str:
        one, other = self.value(type_, depth), self.value(self._relative(type_), depth)
        when = self.predicate(min(depth, 1) - 1)
        return self._one(
            f"CASE WHEN {when} THEN {one} ELSE {other} END",
            f"CASE {one} WHEN {other} THEN {self.literal(type_)} ELSE {one} END",
            f"if({when}, {one}, {other})",
            f"coalesce({one}, {other})",
            f"nvl({one}, {other})",
            f"nullif({one}, {other})",
        )

    def _cast(self, type_: str, depth: int) -> str:
        inner = self.value(self._one(*_CAST_FROM.get(type_, _TYPES)), depth)
        word = self._one("CAST", "CAST", "TRY_CAST")
        return f"{word}({inner} AS {sql_type(type_)})"

    def _sum(self, type_: str, depth: int) -> str:
        others, operators = NUMBERS, ["+", "-", "*", "/", "%"]
        if type_ not in FLOATING and self._dice.random() < 0.2:
            others, operators = (*INTEGERS, *DECIMALS), ["DIV"]
        one, other = self.value(type_, depth), self.value(self._one(type_, *others), depth)
        return self._one(
            f"({one} {self._dice.choice(operators)} {other})",
            f"({one} {self._dice.choice(operators)} {other})",
            f"(- {one})",
            f"abs({one})",
        )

    def _count(self, type_: str, depth: int) -> str:
        text = self.value("string", depth)
        return self._one(
            f"length({text})", f"char_length({text})", f"datediff({self._days(depth)})"
        )

    def _days(self, depth: int) -> str:
        return f"{self.value(self._one(*TIMES), depth)}, {self.value('date', depth)}"

    def _part(self, type_: str, depth: int) -> str:
        time, part = self.value(self._one(*TIMES, "string"), depth), self._one(*_PARTS)
        unit = self._one("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE")
        return self._one(f"{part}({time})", f"{part}({time})", f"extract({unit} FROM {time})")

    def _text(self, type_: str, depth: int) -> str:
        text, other = self.value("string", depth), self.value(self._one(*_TYPES, "string"), 0)
        at, count = self._dice.randint(-3, 4), self._dice.randint(-1, 5)
        return self._one(
            f"trim({text})",
            f"{self._one('ltrim', 'rtrim', 'upper', 'lower')}({text})",
            f"TRIM({self._one('BOTH', 'LEADING', 'TRAILING')} FROM {text})",
            f"TRIM(LEADING 'a' FROM {text})",
            f"substring({text}, {at}, {count})",
            f"substr({text}, {at})",
            f"substring({text} FROM {at} FOR {count})",
            f"{self._one('left', 'right')}({text}, {count})",
            f"concat({text}, {other})",
            f"({text} || {other})",
        )

    def _date(self, type_: str, depth: int) -> str:
        time, days = self.value(self._one(*TIMES, "string"), depth), self._dice.randint(-40, 400)
        return self._one(
            f"to_date({time})",
            f"date({time})",
            f"{self._one('date_add', 'date_sub', 'add_months')}({time}, {days})",
            f"last_day({time})",
            f"trunc({time}, '{self._one(*_UNITS)}')",
        )

    def _time(self, type_: str, depth: int) -> str:
        time = self.value(self._one(*TIMES), depth)
        return f"date_trunc('{self._one(*_UNITS)}', {time})"
