"""Pages of tables by name: what a caller may read is looked up, and not found on a walk through
what everybody has."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ARRAY, Select, String, collate, func, literal, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from tidegate_service.core.ports.records import PAGE_BYTES, TableRecord
from tidegate_service.index.reading.reads import lower
from tidegate_service.index.rows.pages import bounded, bytes_of
from tidegate_service.index.rows.records import table_record
from tidegate_service.index.schema.tables import tables

_BEHIND_A_NAME = "!"
_BEHIND_A_DOT = "/"
# In the order of bytes. A name has letters, digits, `_`, `-` and `.`, which come behind the first,
# and only the last two of them before the second.


async def tables_page(
    connection: AsyncConnection,
    *,
    prefix: str,
    after: str | None,
    limit: int,
    within: Sequence[str] | None = None,
    most_bytes: int = PAGE_BYTES,
) -> list[TableRecord]:
    """The first tables behind a name whose names begin so; `within` has scopes that they lie in."""
    page = page_of(prefix=prefix, after=after, limit=limit, within=within, most_bytes=most_bytes)
    return [table_record(row) for row in await connection.execute(page)]


def page_of(
    *, prefix: str, after: str | None, limit: int, within: Sequence[str] | None, most_bytes: int
) -> Select[Any]:
    """The query of `tables_page`."""
    name = func.lower(tables.c.name)
    found = select(tables).where(func.starts_with(name, lower(prefix))).order_by(name).limit(limit)
    if after is not None:
        found = found.where(name > lower(after))
    if within is None:
        query, size = found, bytes_of(tables.c.metadata) + bytes_of(tables.c.protocol)
    else:
        spans = spans_of(within, prefix=prefix, after=after)
        lows, highs = ([span[end] for span in spans] for end in (0, 1))
        texts = ARRAY(String)
        span = (
            func.unnest(literal(lows, texts), literal(highs, texts))
            .table_valued("low", "high", name="span")
            .render_derived()
        )
        # The first ones of each scope, by the index.
        inside = found.where(
            name >= collate(span.c.low, "C"), name < collate(span.c.high, "C")
        ).lateral("found")
        query = (
            select(inside)
            .select_from(span)
            .join(inside, true())
            .order_by(func.lower(inside.c.name))
            .limit(limit)
        )
        size = bytes_of(inside.c.metadata) + bytes_of(inside.c.protocol)
    return bounded(
        query, size=size, order=lambda columns: func.lower(columns.name), most=most_bytes
    )


def spans_of(scopes: Sequence[str], *, prefix: str, after: str | None) -> list[tuple[str, str]]:
    """Where in the order of names, all in lower case, those of these scopes are that begin so and
    come behind `after`: each from the first name on and before the second, no two of them with a
    name in common."""
    begin = _folded(prefix)
    least = max(begin, _folded(after or ""))
    spans = []
    outermost = set(scopes)
    for scope in sorted(outermost):
        if not outermost.isdisjoint(_around(scope)):
            continue
        for low, high in (
            (scope, f"{scope}{_BEHIND_A_NAME}"),
            (f"{scope}.", f"{scope}{_BEHIND_A_DOT}"),
        ):
            first = max(low, least)
            # What is behind the prefix without beginning so is behind all that do.
            if first < high and first.startswith(begin):
                spans.append((first, high))
    return spans


def _around(scope: str) -> list[str]:
    """The catalog and the schema that it lies in."""
    parts = scope.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _folded(name: str) -> str:
    # ASCII letters alone, as Postgres does it in the column's collation.
    return name.encode().lower().decode()
