"""B29: how time grows with what a caller writes: predicates, values, names, lists."""

import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from benchmarks.frame import Bench, Figure, Pair, Result, Scale, at_most
from benchmarks.rig.world import World
from tidegate_protocol.log.actions import Add
from tidegate_protocol.proposal.transaction import Reads
from tidegate_protocol.scan.predicates import InvalidPredicate, parse_predicate, terms_of
from tidegate_protocol.scan.reads import ReadPredicates
from tidegate_protocol.schema.table_schema import parse_schema
from tidegate_protocol.schema.values import InvalidValue, parse_double
from tidegate_service.core.access.locations import canonical_url
from tidegate_service.core.errors import Refused
from tidegate_service.index.reading.listed import spans_of

_TIMES = 8
"""The long text's length, of the short one's. A time that grows with the square is 64 times as
long."""
_MOST = 2.0 * _TIMES
_SHORT = 400
_COLUMNS = parse_schema(
    json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": name, "type": type_, "nullable": True, "metadata": {}}
                for name, type_ in {"x": "string", "v": "integer", "s": "string"}.items()
            ],
        }
    )
)

Work = Callable[[], object]
Form = Callable[[int], Work]
"""What is done with a text, by how often its part stands in it."""


def _read(text: str) -> object:
    with suppress(InvalidPredicate):
        return parse_predicate(text, _COLUMNS, ("x",))
    return None


def _repeated(before: str, again: str, after: str) -> Form:
    def form(times: int) -> Work:
        text = before + again * times + after
        return lambda: _read(text)

    return form


def _nested(before: str, within: str, after: str) -> Form:
    """Sixteen words in each other, and two in the short text."""

    def form(times: int) -> Work:
        depth = 16 * times // (_SHORT * _TIMES)
        text = before + within * depth + "1" + ")" * depth + after
        return lambda: _read(text)

    return form


_READ = {
    f"{before}{again}{again}...{after}": _repeated(before, again, after)
    for before, again, after in (
        ("CAST(x AS interval", " a", "!) = 1"),
        ("CAST(x AS timestamp", " a", "(1)!) = 1"),
        ("CAST(x AS timestamp(1)", " a", "!) = 1"),
        ("CAST(x AS interval", "  ", "!) = 1"),
        ("CAST(x AS array<", "a<", ") = 1"),
        ("x = 1", " OR x = 1", ""),
        ("x IN (1", ", 1", ")"),
        ("s = ", "'a' ", ""),
        ("s = '", "''", "'"),
        ("s = '", "\\\\", "'"),
        ("s = ", "'a' ", "'"),
        ("concat(s", ", s", ") = 'a'"),
        ("s", ".a", " = 1"),
        ("x", "[0]", " = 1"),
        ("s LIKE '", "%a_", "'"),
        ("s", ".f()", " = 1"),
        ("s", ".f(x)[0]", " = 1"),
        ("x IN (SELECT 1", ", 1", ")"),
        ("x IN (SELECT s", ".f()", ")"),
        ("x = 1", " OR ((VALUES 1) = x)", ""),
        ("x = 1", " OR x IN (SELECT 1)", ""),
        ("x = 1", " OR x IN (SELECT 1", ""),
        ("x = 1", " OR rank() OVER (", ""),
        ("x = ", "(", ""),
        ("s RLIKE '", "a*", "'"),
        ("x = ", "11111", "_"),
        ("x = 1.", "11111", "q"),
        ("x = .", "11111", "q"),
        ("x = CAST('", "11111", "x' AS double)"),
        ("x IN (SELECT 1 FROM t", " |> SELECT a", ")"),
        ("x IN (SELECT * FROM t PIVOT (sum(a) FOR", " b IN (1, 2)", "))"),
        ("x IN (SELECT * FROM t PIVOT (sum(a)", ", sum(a) AS s", " FOR b IN (1, 2)))"),
    )
} | {
    "a hint": _nested("x > (SELECT /*+ ", "object(", " */ 1)"),
    "a type in quotes": _nested("x = (SELECT CAST(1 AS `struct<a: decimal(", "object(", ")>`))"),
}


def _judged(text: str, value: str) -> Work:
    predicate = parse_predicate(text, _COLUMNS, ("x",))
    return lambda: predicate.matches_partition({"x": value})


def _long_value(pattern: str) -> Form:
    return lambda times: _judged(f"x LIKE '%{pattern}%'", "ab" * times)


def _files_of_one_partition(count: int) -> Work:
    texts = tuple(f"x = {number}" for number in range(100, 600))
    reads = ReadPredicates.parse(Reads(predicates=texts), _COLUMNS, ("x",))
    files = [
        Add(
            path=f"{number}",
            partition_values={"x": "1"},
            size=1,
            modification_time=1,
            data_change=True,
        )
        for number in range(count)
    ]
    return lambda: [reads.first_match([file], use_statistics=False) for file in files]


_JUDGED: Mapping[str, Form] = {
    "a pattern of many gaps": lambda times: _judged(f"x LIKE '{'%a_' * times}b'", "a" * 300),
    **{
        f"a long value LIKE '%{pattern}%'": _long_value(pattern)
        for pattern in ("_b", "b_", "__c", "a_b", "ba__b", "a_a_b", "a%a%a%a%a%a%b")
    },
    "a list of constants beside a column": lambda times: _judged(
        f"x IN ({','.join(map(str, range(times)))}, concat(x, 'a'))", "b"
    ),
    "files of one partition": _files_of_one_partition,
}


def _passed(work: Callable[[str], object], before: str, again: str, after: str = "") -> Form:
    def form(times: int) -> Work:
        text = before + again * times + after

        def passed() -> None:
            with suppress(InvalidValue, Refused):
                work(text)

        return passed

    return form


def _scopes_of_a_caller(count: int) -> Work:
    scopes = [f"main.s{number}" for number in range(count)]
    return lambda: spans_of(scopes, prefix="", after=None)


_OTHERS: Mapping[str, Form] = {
    "a number with a wrong end": _passed(parse_double, "", "11111", "x"),
    "a fraction with a wrong end": _passed(parse_double, ".", "11111", "x"),
    **{
        f"words of {part}": _passed(terms_of, "", part)
        for part in ("'\\'", '"\\"', "`", "'\"", "\\", "1,", "a ", "rlike ")
    },
    **{
        f"a location of {part}": _passed(canonical_url, "s3://lake/", part)
        for part in ("a", "%zz", "a/", "\u00e9")
    },
    "scopes of a caller": _scopes_of_a_caller,
}


def run(_: World, scale: Scale) -> Result:
    repeated = scale.pick(quick=2, full=5)
    figures, notes = [], []
    with _no_collections():
        for name, forms in {
            "predicates read": _READ,
            "predicates judged": _JUDGED,
            "other texts": _OTHERS,
        }.items():
            worst = [_worst(forms, repeated) for _ in range(scale.runs)]
            pairs = tuple(pair for _, pair in worst)
            forms_told = f"{name}, the worst of {len(forms)} forms"
            figures.append(Figure(name=forms_told, unit="ms", pairs=pairs, floor=at_most(_MOST)))
            notes.append(f"Of {name}, `{max(worst, key=lambda each: each[1].ratio)[0]}` grew most.")
    return Result(figures=tuple(figures), notes=tuple(notes))


def _worst(forms: Mapping[str, Form], repeated: int) -> tuple[str, Pair]:
    found = {
        name: Pair(
            measured=_least_ms(form(_SHORT * _TIMES), repeated),
            against=_least_ms(form(_SHORT), repeated),
        )
        for name, form in forms.items()
    }
    return max(found.items(), key=lambda each: each[1].ratio)


def _least_ms(work: Work, repeated: int) -> float:
    return min(_taken_ms(work) for _ in range(repeated))


def _taken_ms(work: Work) -> float:
    began = time.thread_time()
    work()
    return 1000 * (time.thread_time() - began)


@contextmanager
def _no_collections() -> Iterator[None]:
    """A collection of garbage goes through all objects, and counts as this thread's time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


BENCH = Bench(
    id="b29",
    title="long texts",
    measured="CPU time of a text that is eight times as long",
    against="the same of the short one; linear is 8, a square 64",
    run=run,
)
