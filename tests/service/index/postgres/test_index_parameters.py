"""Parameters that are packed here are what Postgres takes them for, and so are its rows."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import msgspec
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate_service.index.postgres.parameters import Parameter, byteas, int8s, jsons, texts, uuids
from tidegate_service.index.postgres.pipeline import (
    Query,
    Row,
    Statement,
    as_int,
    as_text,
    as_uuid,
    run,
)

LEAST, MOST = -(2**63), 2**63 - 1
Decode = Callable[[bytes | None], Any]

_texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=30)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(LEAST, MOST) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
KINDS: dict[str, tuple[Callable[[Sequence[Any]], Parameter], Decode, st.SearchStrategy[Any]]] = {
    "bigint": (
        int8s,
        as_int,
        st.none() | st.sampled_from([LEAST, MOST, -1, 0]) | st.integers(LEAST, MOST),
    ),
    "text": (texts, as_text, st.none() | st.just("") | _texts),
    "bytea": (byteas, lambda value: value, st.none() | st.just(b"") | st.binary(max_size=30)),
    "uuid": (uuids, as_uuid, st.uuids()),
}
ONE: dict[str, Any] = {
    "bigint": 7,
    "text": "ü" * 100,
    "boolean": True,
    "bytea": b"\0" * 100,
    "uuid": UUID(int=5),
}
SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


Ask = Callable[[Query], list[Row]]


@pytest.fixture
def ask(database_url: str) -> Iterator[Ask]:
    """What the database answers, in one transaction."""
    with asyncio.Runner() as runner:
        driver = runner.run(psycopg.AsyncConnection.connect(database_url))
        yield lambda query: runner.run(run(driver, [query]))[0]
        runner.run(driver.close())


def back(ask: Ask, kind: str, values: Sequence[Any]) -> list[Any]:
    """What the database has of the elements, one by one."""
    pack, decode, _ = KINDS[kind]
    statement = Statement(
        f"SELECT value, CAST(pg_typeof(value) AS text) FROM unnest($1) AS value /* {kind} */"
    )
    rows = ask(Query(statement, pack(values)))
    assert {as_text(name) for _, name in rows} <= {kind}
    return [None if value is None else decode(value) for value, _ in rows]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(data=st.data())
def test_what_goes_in_comes_out(ask, kind, data):
    values = data.draw(st.lists(KINDS[kind][2], max_size=20))
    assert back(ask, kind, values) == values


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(values=st.lists(_json, max_size=10))
def test_json_keeps_its_bytes(ask, values):
    lines = [msgspec.json.encode(value) for value in values]
    statement = Statement("SELECT CAST(value AS text) FROM unnest($1) AS value")
    assert [text for (text,) in ask(Query(statement, jsons(lines)))] == lines


@pytest.mark.parametrize("kind", KINDS)
def test_none_and_many_elements(ask, kind):
    assert back(ask, kind, []) == []
    values = [ONE[kind]] * 5_000
    assert back(ask, kind, values) == values


@pytest.mark.parametrize("values", [["a\0b"], [None, "\0"], ["fine", "a\0"]])
def test_what_postgres_cannot_hold_in_a_text_is_refused_before(values):
    with pytest.raises(psycopg.DataError, match="NUL"):
        texts(values)


@pytest.mark.parametrize("value", [LEAST - 1, MOST + 1, 10**30])
@pytest.mark.parametrize("other", [[], [None], [1]])
def test_integers_of_more_than_64_bits_are_refused(value, other):
    with pytest.raises(psycopg.DataError, match="out of range"):
        int8s([*other, value])
