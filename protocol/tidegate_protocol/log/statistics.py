"""What a file's statistics prove (PROTOCOL.md, "Per-file Statistics").

Writers differ in what they leave out and in how they round (`bounds`). What is read here is
certain whichever writer it was, and None says that nothing is known. Columns go by physical path
(`Leaf.physical_path`).
"""

import re
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Annotated, Protocol, cast

import msgspec

from tidegate_protocol.base.memo import remember
from tidegate_protocol.base.text import excerpt
from tidegate_protocol.log.bounds import lower_bound, upper_bound
from tidegate_protocol.schema.data_types import DataType
from tidegate_protocol.schema.values import Value

_Path = Sequence[str]
_NOTHING = msgspec.Raw(b"null")
_PARTS = attrgetter("min_values", "max_values", "null_count")
_ABSENT = msgspec.Raw(b"")
_NEEDS_ESCAPES = re.compile(r'["\\\x00-\x1f]')
_BYTES_A_COLUMN = 512
"""Of what reads some columns' statistics alone."""


class InvalidStatistics(ValueError):
    """The text is not a statistics object; the message says why."""


class _Stats(msgspec.Struct, frozen=True, rename="camel"):
    num_records: int | None = None
    tight_bounds: bool | None = None
    min_values: msgspec.Raw = _NOTHING
    max_values: msgspec.Raw = _NOTHING
    null_count: msgspec.Raw = _NOTHING


class _Object(msgspec.Struct, frozen=True, gc=False):
    """Any JSON object, of which nothing is made."""


class _Counts(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    num_records: Annotated[int, msgspec.Meta(ge=0)] | None = None
    tight_bounds: bool | None = None


class _Shape(_Counts, frozen=True, gc=False, rename="camel"):
    min_values: _Object | None = None
    max_values: _Object | None = None
    null_count: _Object | None = None


_STATS = msgspec.json.Decoder(_Stats)
_SHAPE = msgspec.json.Decoder(_Shape)
_COLUMNS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_COUNT = msgspec.json.Decoder(int)


class FileStatistics:
    """What a file's statistics prove about its valid rows.

    `num_records` counts the rows of the data file, those that a deletion vector hides included.
    `tight_bounds` is False where the rows may since have become fewer than the bounds say.
    Statistics are parsed as they are asked for: a file has many columns and a predicate few.
    """

    __slots__ = ("_maxima", "_minima", "_null_counts", "num_records", "tight_bounds")

    def __init__(
        self,
        counts: "_Stats | _Counts",
        minima: "_Columns",
        maxima: "_Columns",
        null_counts: "_Columns",
    ) -> None:
        self.num_records = counts.num_records
        self.tight_bounds = counts.tight_bounds is not False
        self._minima = minima
        self._maxima = maxima
        self._null_counts = null_counts

    @classmethod
    def parse(cls, text: str) -> "FileStatistics":
        """Raises `InvalidStatistics`."""
        try:
            stats = _STATS.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise InvalidStatistics(
                f"{excerpt(text)} is not a statistics object: {error}"
            ) from None
        if stats.num_records is not None and stats.num_records < 0:
            raise InvalidStatistics(f"numRecords is {stats.num_records}; expected 0 or more")
        for name, part in (
            ("minValues", stats.min_values),
            ("maxValues", stats.max_values),
            ("nullCount", stats.null_count),
        ):
            if bytes(part)[:1] not in (b"{", b"n"):
                raise InvalidStatistics(f"{name} is {excerpt(bytes(part))}; expected an object")
        parts = (stats.min_values, stats.max_values, stats.null_count)
        return cls(stats, *map(_Part, parts))

    def minimum(self, path: _Path, data_type: DataType) -> Value | None:
        """No value of the column is below this; None where nothing is known. Nulls aside.
        `data_type` is the type that the file was written by, or one that has the same text."""
        raw = self._minima.get(path)
        return None if raw is None else lower_bound(data_type, raw)

    def maximum(self, path: _Path, data_type: DataType) -> Value | None:
        """No value of the column is above this; None where nothing is known. Nulls aside.
        `data_type` is as of `minimum`."""
        raw = self._maxima.get(path)
        return None if raw is None else upper_bound(data_type, raw)

    def null_count(self, path: _Path) -> int | None:
        """How many rows are null in the column, nulls of its structs included; None where that
        is not known. With wide bounds only 0 and `num_records` say anything: none, all."""
        raw = self._null_counts.get(path)
        if raw is None:
            return None
        try:
            count = _COUNT.decode(raw)
        except msgspec.DecodeError:
            return None
        certain = self.tight_bounds or count in (0, self.num_records)
        return count if certain and count >= 0 else None

    def all_null(self, path: _Path) -> bool:
        """True where it is proven that every row is null in the column, one of a primitive type."""
        return self.num_records is not None and self.null_count(path) == self.num_records

    def no_null(self, path: _Path) -> bool:
        """True where it is proven that no row is null in the column, one of a primitive type."""
        return self.null_count(path) == 0


def is_statistics(text: str) -> bool:
    """Whether `FileStatistics.parse` takes the text, in a fifth of its time."""
    try:
        _SHAPE.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def statistics_of(text: str | None) -> FileStatistics | None:
    """The statistics of an add; None for absent ones and those that cannot be read, which prove
    as little."""
    try:
        return None if text is None else FileStatistics.parse(text)
    except InvalidStatistics:
        return None


def statistics_reader(columns: Collection[str]) -> Callable[[str | None], FileStatistics | None]:
    """What reads statistics as `statistics_of` does, but only what they say of these top-level
    columns, by their physical names: a file has many columns and a predicate few."""
    if any(_NEEDS_ESCAPES.search(name) for name in columns):
        # No name of a struct's field.
        return statistics_of
    return _reader(frozenset(columns))


def _read_by(columns: frozenset[str]) -> Callable[[str | None], FileStatistics | None]:
    fields = {name: f"c{index}" for index, name in enumerate(sorted(columns))}

    def get(part: msgspec.Struct, path: _Path) -> msgspec.Raw | None:
        found: msgspec.Raw = getattr(part, fields[path[0]])
        if found is _ABSENT or len(path) == 1:
            return None if found is _ABSENT else found
        return _Part(found).get(path[1:])

    part = msgspec.defstruct(
        "_PartOfSome",
        [(field, msgspec.Raw, _ABSENT) for field in fields.values()],
        rename={field: name for name, field in fields.items()},
        namespace={"get": get},
        frozen=True,
        gc=False,
    )
    stats = msgspec.defstruct(
        "_StatsOfSome",
        [(name, part | None, None) for name in ("min_values", "max_values", "null_count")],
        bases=(_Counts,),
        rename="camel",
        frozen=True,
    )
    decoder: msgspec.json.Decoder[_Counts] = msgspec.json.Decoder(stats)

    nothing = cast(_Columns, part())

    def read(text: str | None) -> FileStatistics | None:
        if text is None:
            return None
        try:
            stats = decoder.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        minima, maxima, nulls = _PARTS(stats)
        return FileStatistics(stats, minima or nothing, maxima or nothing, nulls or nothing)

    return read


_reader = remember(
    _read_by, weigh=lambda columns: _BYTES_A_COLUMN * len(columns) + sum(map(len, columns))
)


class _Columns(Protocol):
    """What one of the parts of statistics says of columns, by their physical paths."""

    def get(self, path: _Path) -> msgspec.Raw | None: ...


class _Part:
    """minValues, maxValues or nullCount: a tree of objects along the columns' structs."""

    __slots__ = ("_columns", "_raw")

    def __init__(self, raw: msgspec.Raw) -> None:
        self._raw = raw
        self._columns: dict[str, msgspec.Raw] | None = None

    def get(self, path: _Path) -> msgspec.Raw | None:
        if self._columns is None:
            self._columns = _columns(self._raw)
        found: msgspec.Raw | None = None
        for depth, name in enumerate(path):
            columns = self._columns if depth == 0 else _columns(found)
            found = columns.get(name)
            if found is None:
                return None
        return found


def _columns(raw: msgspec.Raw | None) -> dict[str, msgspec.Raw]:
    try:
        return {} if raw is None else _COLUMNS.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
